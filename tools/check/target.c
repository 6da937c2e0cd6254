/* target.c - the target's file, and the target as an application meets it: slots, tokens, random bytes. */
#include "check/check.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { SLOTS_MOST = 64, DRAW_BYTES = 32 };

static const int64_t DRAW_NS = 10 * NS_PER_MS;

static void report_library(CK_FUNCTION_LIST *list, const char *path)
{
    CK_INFO info = {0};
    char maker[sizeof info.manufacturerID + 1], library[sizeof info.libraryDescription + 1];
    if (list->C_GetInfo(&info) != CKR_OK)
        return;
    token_text(maker, info.manufacturerID, sizeof info.manufacturerID);
    token_text(library, info.libraryDescription, sizeof info.libraryDescription);
    report_add(MARK_OK, "target", "the target is %s %d.%d of %s: %s", library,
               info.libraryVersion.major, info.libraryVersion.minor, maker, path);
}

CK_RV check_draws(CK_FUNCTION_LIST *list, CK_SLOT_ID slot, int64_t for_ns, double *mean_ns)
{
    CK_SESSION_HANDLE session;
    CK_BYTE bytes[DRAW_BYTES];
    int draws = 0;
    CK_RV rv = list->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &session);
    if (rv != CKR_OK)
        return rv;
    rv = list->C_GenerateRandom(session, bytes, sizeof bytes); /* the first may be slower */
    int64_t begin_ns = clock_exact_ns(), now_ns = begin_ns;
    for (; rv == CKR_OK && now_ns < begin_ns + for_ns; draws++) {
        rv = list->C_GenerateRandom(session, bytes, sizeof bytes);
        now_ns = clock_exact_ns();
    }
    *mean_ns = (double)(now_ns - begin_ns) / draws;
    explicit_bzero(bytes, sizeof bytes);
    list->C_CloseSession(session);
    return rv;
}

/* False if the token cannot be used as it is. */
static bool report_token(CK_FUNCTION_LIST *list, CK_SLOT_ID slot)
{
    CK_TOKEN_INFO info = {0};
    char label[sizeof info.label + 1];
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
    if ((info.flags & CKF_TOKEN_INITIALIZED) == 0) {
        report_add(MARK_OK, "token", "slot %lu has a token that is not initialised", slot);
        return false;
    }
    token_text(label, info.label, sizeof info.label);
    /* Without a login, because the tool has no PIN. */
    rv = check_draws(list, slot, DRAW_NS, &mean_ns);
    if ((info.flags & CKF_RNG) == 0)
        report_add(
            MARK_NOTE, "token",
            "token '%s' in slot %lu has no random number generator, so every call is handed on",
            label, slot);
    else if (rv == CKR_USER_NOT_LOGGED_IN)
        report_add(MARK_NOTE, "token",
                   "token '%s' makes random bytes only after a login, and then the pool is filled",
                   label);
    else if (rv != CKR_OK)
        report_add(MARK_PROBLEM, "token",
                   "token '%s': C_OpenSession or C_GenerateRandom answers %s\n"
                   "see whether other programs hold all its sessions; else ask the "
                   "token's maker, since the proxy passes that answer on",
                   label, token_code(rv));
    else
        report_add(MARK_OK, "token", "token '%s' makes %d random bytes in %.3f ms, without a login",
                   label, DRAW_BYTES, mean_ns / NS_PER_MS);
    return true;
}

static void report_slots(CK_FUNCTION_LIST *list)
{
    CK_SLOT_ID slots[SLOTS_MOST] = {0};
    CK_ULONG count = SLOTS_MOST, usable = 0;
    CK_RV rv = list->C_GetSlotList(CK_TRUE, slots, &count);
    if (rv != CKR_OK) {
        report_add(rv == CKR_BUFFER_TOO_SMALL ? MARK_NOTE : MARK_PROBLEM, "token",
                   "the slots cannot be looked at: C_GetSlotList answers %s", token_code(rv));
        return;
    }
    if (token_is_started(checked.module_path)) {
        report_add(
            MARK_PROBLEM, "target",
            "the target loads this proxy in turn, so the pool would be filled from itself: %s\n"
            "add the line disable-in: p11-kit-proxy to %s, or set x-target to the "
            "token's own module",
            checked.config->target, checked.config->system_file);
        return;
    }
    report_add(count > 0 ? MARK_OK : MARK_NOTE, "token", "slots with a token: %lu%s", count,
               count > 0 ? "" : "\nplug the token in, or see why the module does not find it");
    for (CK_ULONG i = 0; i < count; i++) {
        report_stage("with a token");
        usable += report_token(list, slots[i]);
    }
    if (count > 0 && usable == 0)
        report_add(MARK_NOTE, "token",
                   "no token can be used yet\n"
                   "initialise one with its maker's tool, or with pkcs11-tool --module %s "
                   "--slot %lu --init-token --label NAME",
                   checked.config->target, slots[0]);
}

static void look(void)
{
    const struct config *config = checked.config;
    CK_FUNCTION_LIST *list;
    if (!report_start(&list, "target", config->target, config->target_init))
        return;
    report_stage("after C_Initialize");
    report_library(list, config->target);
    report_slots(list);
    report_stage("in C_Finalize");
    list->C_Finalize(NULL);
}

void check_target(void)
{
    const struct config *config = checked.config;
    const char *target = config->target;
    struct message message;
    char real[PATH_MAX];
    if (target == NULL && config->mistake_count > 0)
        return; /* one of them may be its line */
    if (config_check_target(config, &message) != 0) {
        report_add(MARK_PROBLEM, "target",
                   "%s\n"
                   "p11-proxy setup PATH writes it, with the path of the token's own PKCS#11 "
                   "module; or write x-target: PATH into %s",
                   message.text, config->system_file);
    } else {
        /* Of the file, not of a link to it. */
        check_writers("target", "the target", realpath(target, real) != NULL ? real : target);
        report_from_child("target", look);
    }
}
