/* tokens.c - the target as an application meets it: interfaces, slots, tokens, random bytes. */
#include "check/check.h"

#include <string.h>

#include "base/clock.h"

enum { INTERFACES_MOST = 64, SLOTS_MOST = 64, DRAW_BYTES = 32, DRAWS = 4, NAME_BYTES = 64 };

/* What programs really ask a token for: they make the digest themselves. */
static const struct {
    CK_MECHANISM_TYPE mechanism;
    enum mechanism_use kind;
    const char *use;
} needs[] = {
    {CKM_RSA_PKCS, USE_SIGN, "OpenSSH, GnuTLS, NSS and OpenSSL's engine sign with RSA keys"},
    {CKM_RSA_PKCS_PSS, USE_SIGN, "TLS 1.3 is signed with RSA keys"},
    {CKM_ECDSA, USE_SIGN, "OpenSSH, GnuTLS, NSS and OpenSSL's engine sign with EC keys"},
    {CKM_ECDH1_DERIVE, USE_OTHER, "keys are agreed on with EC keys"},
};

static void report_library(const struct token_module *module, const char *path)
{
    CK_INTERFACE interfaces[INTERFACES_MOST] = {0};
    CK_ULONG count = INTERFACES_MOST;
    CK_INFO info = {0};
    char maker[sizeof info.manufacturerID + 1], library[sizeof info.libraryDescription + 1];
    char offers[512] = "";
    if (module->list->C_GetInfo(&info) == CKR_OK) {
        token_text(maker, info.manufacturerID, sizeof info.manufacturerID);
        token_text(library, info.libraryDescription, sizeof info.libraryDescription);
        report_add(MARK_OK, "target", "the target is %s %d.%d of %s: %s", library,
                   info.libraryVersion.major, info.libraryVersion.minor, maker, path);
    }
    if (module->interfaces == NULL || module->interfaces(interfaces, &count) != CKR_OK) {
        interfaces[0] = (CK_INTERFACE){(CK_UTF8CHAR *)"PKCS 11", module->list, 0};
        count = 1;
    }
    for (CK_ULONG i = 0; i < count && i < INTERFACES_MOST; i++) {
        const CK_VERSION *version = interfaces[i].pFunctionList;
        size_t used = strlen(offers);
        if (version != NULL && interfaces[i].pInterfaceName != NULL)
            snprintf(offers + used, sizeof offers - used, "%s%s %d.%d", used > 0 ? ", " : "",
                     (const char *)interfaces[i].pInterfaceName, version->major, version->minor);
    }
    report_add(MARK_OK, "target", "the target offers %s", offers);
}

/* Draws a few times, and says how long that takes on average. Returns what C_GenerateRandom or C_OpenSession, as
 * *function says, answers. */
static CK_RV draw(CK_FUNCTION_LIST *list, CK_SLOT_ID slot, const char **function, double *mean_ns)
{
    CK_SESSION_HANDLE session;
    CK_BYTE bytes[DRAW_BYTES];
    *function = "C_OpenSession";
    CK_RV rv = list->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &session);
    if (rv != CKR_OK)
        return rv;
    *function = "C_GenerateRandom";
    rv = list->C_GenerateRandom(session, bytes, sizeof bytes); /* the first may be slower */
    int64_t begin_ns = clock_exact_ns();
    for (int i = 0; i < DRAWS && rv == CKR_OK; i++)
        rv = list->C_GenerateRandom(session, bytes, sizeof bytes);
    *mean_ns = (double)(clock_exact_ns() - begin_ns) / DRAWS;
    explicit_bzero(bytes, sizeof bytes);
    list->C_CloseSession(session);
    return rv;
}

/* What the policy refuses of the token's mechanisms although common programs need it. */
static void report_needs(const struct policy *policy, CK_FUNCTION_LIST *list, CK_SLOT_ID slot,
                         const char *label)
{
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        const struct policy_rule *rule =
            policy_mechanism(policy, needs[i].mechanism, needs[i].kind);
        CK_MECHANISM_INFO info;
        char name[NAME_BYTES];
        if (rule == NULL || list->C_GetMechanismInfo(slot, needs[i].mechanism, &info) != CKR_OK)
            continue;
        report_add(MARK_NOTE, "policy",
                   "%s:%u: %s %s %s of token '%s', with which %s\n"
                   "if these programs are to go on, refuse a digest or small keys "
                   "instead, such as SHA1, RSA keySize < 2048 or EC keySize < 256",
                   rule->file, rule->line, rule->text,
                   policy_is_audit(policy) ? "would refuse" : "refuses",
                   mechanism_name(needs[i].mechanism, name, sizeof name), label, needs[i].use);
    }
}

/* False if the token cannot be used as it is. */
static bool report_token(const struct policy *policy, CK_FUNCTION_LIST *list, CK_SLOT_ID slot)
{
    CK_TOKEN_INFO info = {0};
    char label[sizeof info.label + 1];
    const char *function = "";
    double mean_ns = 0;
    CK_RV rv = list->C_GetTokenInfo(slot, &info);
    if (rv != CKR_OK) {
        report_add(MARK_NOTE, "token",
                   "slot %lu: C_GetTokenInfo answers %s\n"
                   "see whether the token sits well in its slot, and is of a kind that "
                   "the module knows",
                   slot, token_code(rv));
        return false;
    }
    bool is_initialised = (info.flags & CKF_TOKEN_INITIALIZED) != 0;
    bool has_generator = (info.flags & CKF_RNG) != 0;
    token_text(label, info.label, sizeof info.label);
    /* Without a login, because the tool has no PIN. */
    rv = has_generator || !is_initialised ? draw(list, slot, &function, &mean_ns) : CKR_OK;
    if (!is_initialised) {
        report_add(MARK_OK, "token", "slot %lu has a token that is not initialised%s", slot,
                   rv == CKR_OK ? "; it makes random bytes all the same" : "");
        return rv == CKR_OK;
    }
    report_needs(policy, list, slot, label);
    if (!has_generator)
        report_add(MARK_NOTE, "token",
                   "token '%s' in slot %lu has no random number generator\n"
                   "nothing to do: for this token the proxy passes every call on",
                   label, slot);
    else if (rv == CKR_USER_NOT_LOGGED_IN)
        report_add(MARK_NOTE, "token",
                   "token '%s' makes random bytes only after a login\n"
                   "nothing to do: the pool is filled once the application has logged in",
                   label);
    else if (rv != CKR_OK)
        report_add(MARK_PROBLEM, "token",
                   "token '%s': %s answers %s\n"
                   "see whether other programs hold all its sessions; else ask the "
                   "token's maker, since the proxy passes that answer on",
                   label, function, token_code(rv));
    else
        report_add(MARK_OK, "token", "token '%s' makes %d random bytes in %.3f ms, without a login",
                   label, DRAW_BYTES, mean_ns / NS_PER_MS);
    return true;
}

static void report_slots(const struct checked *checked, CK_FUNCTION_LIST *list)
{
    CK_SLOT_ID slots[SLOTS_MOST] = {0};
    CK_ULONG count = SLOTS_MOST, usable = 0;
    CK_RV rv = list->C_GetSlotList(CK_TRUE, slots, &count);
    if (rv != CKR_OK) {
        report_add(rv == CKR_BUFFER_TOO_SMALL ? MARK_NOTE : MARK_PROBLEM, "token",
                   "the slots cannot be looked at: C_GetSlotList answers %s", token_code(rv));
        return;
    }
    if (token_is_started(checked->module_path)) {
        report_add(
            MARK_PROBLEM, "target",
            "the target loads this proxy in turn, so the pool would be filled from itself: %s\n"
            "add the line disable-in: p11-kit-proxy to %s, or set x-target to the "
            "token's own module",
            checked->config->target, checked->config->expected_file);
        return;
    }
    report_add(count > 0 ? MARK_OK : MARK_NOTE, "token", "slots with a token: %lu%s", count,
               count > 0 ? "" : "\nplug the token in, or see why the module does not find it");
    for (CK_ULONG i = 0; i < count; i++) {
        report_stage("with a token");
        usable += report_token(checked->policy, list, slots[i]);
    }
    if (count > 0 && usable == 0)
        report_add(MARK_NOTE, "token",
                   "no token can be used yet\n"
                   "initialise one with its maker's tool, or with pkcs11-tool --module %s "
                   "--slot %lu --init-token --label NAME",
                   checked->config->target, slots[0]);
}

static void find_all(void *context)
{
    const struct checked *checked = context;
    const struct config *config = checked->config;
    struct token_module module;
    struct message message;
    bool locks;
    report_stage("while it was loaded");
    if (token_load(&module, config->target, &message) != 0) {
        report_add(MARK_PROBLEM, "target",
                   "the target %s\n"
                   "ldd %s shows which libraries it needs and does not find, and file for which "
                   "machine it is made",
                   message.text, config->target);
        return;
    }
    report_stage("in C_Initialize");
    CK_RV rv = token_start(&module, config->target_init, &locks);
    if (rv != CKR_OK) {
        report_add(MARK_PROBLEM, "target",
                   "the target does not start: C_Initialize answers %s\n"
                   "see its maker's manual for what it needs: a daemon, a file, a "
                   "variable in the environment, x-target-init",
                   token_code(rv));
        return;
    }
    report_stage("after C_Initialize");
    report_library(&module, config->target);
    report_slots(checked, module.list);
    report_stage("in C_Finalize");
    module.list->C_Finalize(NULL);
}

bool check_tokens(struct checked *checked)
{
    return report_from_child("target", find_all, checked);
}
