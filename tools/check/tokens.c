/* check_tokens.c - the target as an application meets it: interfaces, slots, tokens, random bytes. */
#include "check/check_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tool.h"

enum {
    INTERFACES_MOST = 64,
    SLOTS_MOST = 64,
    DRAW_BYTES = 32,
    DRAWS = 5, /* the median of these is told */
    FAST_NS = 2000,
    FEW_SESSIONS = 4
};

static void find_interfaces(struct findings *findings, const struct token_module *module)
{
    CK_INTERFACE interfaces[INTERFACES_MOST] = {0};
    CK_ULONG count = INTERFACES_MOST;
    char line[512] = "";
    const CK_VERSION *version = &module->list->version;

    findings_at(findings, "in C_GetInterfaceList");
    if (module->interfaces == NULL || module->interfaces(interfaces, &count) != CKR_OK) {
        found(findings, MARK_OK, "target", "it offers PKCS#11 %d.%d and no list of interfaces",
              version->major, version->minor);
        return;
    }
    for (CK_ULONG i = 0; i < count && i < INTERFACES_MOST; i++) {
        size_t used = strlen(line);
        version = interfaces[i].pFunctionList;
        if (version != NULL && interfaces[i].pInterfaceName != NULL)
            snprintf(line + used, sizeof line - used, "%s%s %d.%d", used > 0 ? ", " : "",
                     (const char *)interfaces[i].pInterfaceName, version->major, version->minor);
    }
    found(findings, MARK_OK, "target", "it offers the interfaces %s", line);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Draws without a login, since the tool has no PIN and wants none. */
static void find_random(struct findings *findings, CK_FUNCTION_LIST *list, CK_SLOT_ID slot,
                        const char *label)
{
    CK_SESSION_HANDLE session;
    CK_BYTE bytes[DRAW_BYTES];
    int64_t took_ns[DRAWS];
    CK_RV rv;

    findings_at(findings, "in C_OpenSession");
    rv = list->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &session);
    if (rv != CKR_OK) {
        found(findings, MARK_PROBLEM, "token", "token '%s': C_OpenSession answers %s", label,
              token_code(rv));
        advise(findings, "see whether other programs hold all its sessions");
        return;
    }
    findings_at(findings, "in C_GenerateRandom");
    for (int i = 0; i < DRAWS && rv == CKR_OK; i++) {
        int64_t begin_ns = clock_exact_ns();
        rv = list->C_GenerateRandom(session, bytes, sizeof bytes);
        took_ns[i] = clock_exact_ns() - begin_ns;
    }
    explicit_bzero(bytes, sizeof bytes);
    if (rv == CKR_USER_NOT_LOGGED_IN) {
        found(findings, MARK_NOTE, "token", "token '%s' makes random bytes after a login only",
              label);
        advise(findings, "nothing to do: the pool is filled once the application has logged in");
    } else if (rv != CKR_OK) {
        found(findings, MARK_PROBLEM, "token", "token '%s': C_GenerateRandom answers %s", label,
              token_code(rv));
        advise(findings, "ask the token's maker; the proxy would hand that answer on");
    } else {
        qsort(took_ns, DRAWS, sizeof *took_ns, compare);
        found(findings, MARK_OK, "token",
              "token '%s' makes %d random bytes in %.3f ms, with no login", label, DRAW_BYTES,
              (double)took_ns[DRAWS / 2] / NS_PER_MS);
        if (took_ns[DRAWS / 2] < FAST_NS)
            advise(findings, "so fast that the pool gains little: p11-proxy bench measures it");
    }
    findings_at(findings, "in C_CloseSession");
    list->C_CloseSession(session);
}

static void find_token(struct findings *findings, const struct policy *policy,
                       CK_FUNCTION_LIST *list, CK_SLOT_ID slot)
{
    CK_TOKEN_INFO info = {0};
    char label[sizeof info.label + 1];
    CK_RV rv;

    findings_at(findings, "in C_GetTokenInfo");
    rv = list->C_GetTokenInfo(slot, &info);
    if (rv != CKR_OK) {
        found(findings, MARK_NOTE, "token", "slot %lu: C_GetTokenInfo answers %s", slot,
              token_code(rv));
        advise(findings,
               "see whether the token is plugged in well, and of a kind the module knows");
        return;
    }
    token_text(label, info.label, sizeof info.label);
    if ((info.flags & CKF_TOKEN_INITIALIZED) == 0) {
        found(findings, MARK_OK, "token", "slot %lu has a token that is not initialised", slot);
        return;
    }
    check_needs(findings, policy, list, slot, label);
    if ((info.flags & CKF_RNG) == 0) {
        found(findings, MARK_NOTE, "token", "token '%s' in slot %lu has no random number generator",
              label, slot);
        advise(findings, "nothing to do: for this token the proxy hands every call on");
        return;
    }
    find_random(findings, list, slot, label);
    /* 0 and all ones: no limit, and not told. */
    if (info.ulMaxSessionCount - 1 < FEW_SESSIONS) {
        found(findings, MARK_NOTE, "token", "token '%s' has %lu sessions in all", label,
              info.ulMaxSessionCount);
        advise(findings, "the pool may have to do without a session of its own, and fill on the "
                         "application's calls");
    }
}

static void find_slots(struct findings *findings, const struct policy *policy,
                       CK_FUNCTION_LIST *list)
{
    CK_SLOT_ID slots[SLOTS_MOST] = {0};
    CK_ULONG all = SLOTS_MOST, count = SLOTS_MOST;
    CK_RV rv;

    findings_at(findings, "in C_GetSlotList");
    rv = list->C_GetSlotList(CK_FALSE, NULL, &all);
    if (rv == CKR_OK)
        rv = list->C_GetSlotList(CK_TRUE, slots, &count);
    if (rv == CKR_BUFFER_TOO_SMALL) {
        found(findings, MARK_NOTE, "token", "it has %lu slots, too many to look at each", count);
        return;
    }
    if (rv != CKR_OK) {
        found(findings, MARK_PROBLEM, "token", "C_GetSlotList answers %s", token_code(rv));
        return;
    }
    found(findings, count > 0 ? MARK_OK : MARK_NOTE, "token", "slots: %lu, with a token: %lu", all,
          count);
    if (count == 0)
        advise(findings, "plug the token in, or see why the module does not find it");
    for (CK_ULONG i = 0; i < count; i++)
        find_token(findings, policy, list, slots[i]);
}

static void find_all(struct findings *findings, const void *context)
{
    const struct config *config = context;
    struct token_module module;
    struct policy *policy;
    struct message message;
    CK_INFO info = {0};
    char maker[sizeof info.manufacturerID + 1], library[sizeof info.libraryDescription + 1];
    bool locks;
    CK_RV rv;

    findings_at(findings, "while it was loaded");
    if (token_load(&module, config->target, &message) != 0) {
        found(findings, MARK_PROBLEM, "target", "the target %s", message.text);
        advise(findings, "ldd %s shows what it needs and does not find", config->target);
        return;
    }
    findings_at(findings, "in C_Initialize");
    rv = token_start(&module, config->target_init, &locks);
    if (rv != CKR_OK) {
        found(findings, MARK_PROBLEM, "target",
              "the target does not start: C_Initialize answers %s", token_code(rv));
        advise(findings,
               "see its maker's manual for what it needs: a daemon, a file, a variable in "
               "the environment, x-target-init");
        return;
    }
    findings_at(findings, "in C_GetInfo");
    if (module.list->C_GetInfo(&info) == CKR_OK) {
        token_text(maker, info.manufacturerID, sizeof info.manufacturerID);
        token_text(library, info.libraryDescription, sizeof info.libraryDescription);
        found(findings, MARK_OK, "target", "the target is %s %d.%d of %s: %s", library,
              info.libraryVersion.major, info.libraryVersion.minor, maker, config->target);
    }
    find_interfaces(findings, &module);
    if (!locks) {
        found(findings, MARK_NOTE, "target", "the target is not for several threads");
        advise(findings, "nothing to do: the pool is filled on the application's calls");
    }
    /* One that is wrong was found already. */
    if (load_policy(&policy, config, /* warn= */ NULL, NULL, &message) != 0)
        policy = NULL;
    find_slots(findings, policy, module.list);
    policy_free(policy);
    findings_at(findings, "in C_Finalize");
    module.list->C_Finalize(NULL);
}

void check_tokens(struct findings *findings, const struct config *config)
{
    findings_in_child(findings, "target", find_all, config);
}
