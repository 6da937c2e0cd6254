/* proxy.c - whether an application would get the proxy started, and p11-kit's programs its tokens. */
#include "check/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "counters/counters.h"
#include "registered.h"

enum { SLOTS_MOST = 64, DRAW_BYTES = 32, DRAWS_MOST = 100 * 1000 };

/* Long enough for a token of 20 ms to be asked for a few sizes. */
static const int64_t DRAW_NS = 300 * NS_PER_MS;

bool check_proxy_file(const char *module_path)
{
    char real[PATH_MAX];
    if (access(module_path, R_OK) != 0) {
        report_add(MARK_PROBLEM, "proxy",
                   "the proxy is not there (%m): %s\n"
                   "install it, or say where it is: --module PATH",
                   module_path);
        return false;
    }
    if (is_link_to_other(module_path, real)) {
        report_add(MARK_PROBLEM, "proxy",
                   "%s is a link to %s: the loader takes both for one module, so a program that "
                   "uses both gets one configuration for both\n"
                   "replace the link by a copy: cp --remove-destination %s %s",
                   module_path, real, real, module_path);
        return false;
    }
    return true;
}

/* Without a login: a token that wants one is learned when an application logs in. */
static void draw_for_a_moment(CK_FUNCTION_LIST *list, CK_SLOT_ID slot)
{
    CK_SESSION_HANDLE session;
    CK_BYTE bytes[DRAW_BYTES];
    CK_RV rv = list->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &session);
    int64_t until_ns = clock_exact_ns() + DRAW_NS;
    if (rv != CKR_OK)
        return;
    for (unsigned i = 0; i < DRAWS_MOST && rv == CKR_OK && clock_exact_ns() < until_ns; i++)
        rv = list->C_GenerateRandom(session, bytes, sizeof bytes);
    explicit_bzero(bytes, sizeof bytes);
    list->C_CloseSession(session);
}

static void report_learned(const struct statistics_slot *slot)
{
    if (slot->pool.trust != STATISTICS_TRUSTED)
        report_add(
            MARK_PROBLEM, "token",
            "token '%s': its random generator fails the health test, so C_GenerateRandom %s\n"
            "do not use its random bytes, nor keys that it generates; ask its maker",
            slot->token, slot->pool.trust == STATISTICS_LATCHED ? "fails" : "may fail soon");
    else if (slot->pool.fills > 0)
        report_add(MARK_OK, "token", "the pool asks token '%s' for %zu bytes in a call%s",
                   slot->token, (size_t)slot->pool.chunk_bytes,
                   slot->pool.chunk_bytes >= slot->pool.capacity_bytes / 2
                       ? ""
                       : ", because more was refused, was slow or was not needed");
}

static void report_all_learned(CK_FUNCTION_LIST *list, const char *module_path)
{
    CK_SLOT_ID slots[SLOTS_MOST] = {0};
    CK_ULONG count = SLOTS_MOST;
    struct counted_list own;
    pid_t pid = getpid();
    if (list->C_GetSlotList(CK_TRUE, slots, &count) != CKR_OK)
        return;
    for (CK_ULONG i = 0; i < count; i++) {
        report_stage("with a token through the proxy");
        draw_for_a_moment(list, slots[i]);
    }
    counters_find(&own, &pid, 1, /* complaints= */ NULL);
    /* A copy for a second target belongs to no package, so an upgrade leaves it as it is. */
    if (own.strange > 0 ||
        (own.count > 0 && strcmp(own.proxies[0].counters->version, VERSION) != 0))
        report_add(MARK_NOTE, "proxy",
                   "the proxy is of another version than this program, which is " VERSION ": %s\n"
                   "if it is a copy, copy the module anew: cp --remove-destination p11-proxy.so %s",
                   module_path, module_path);
    for (size_t slot = 0; own.count > 0 && slot < own.proxies[0].counters->slot_count; slot++)
        report_learned(&own.proxies[0].counters->slots[slot]);
    counters_free(&own);
}

static void start(void *context)
{
    const char *module_path = ((const struct checked *)context)->module_path;
    struct token_module module;
    struct message message;
    char logged[MESSAGE_BYTES] = "";
    int log = memfd_create("log", MFD_CLOEXEC);
    bool locks;
    setenv("P11_PROXY_LOG", "stderr error", /* overwrite= */ 1);
    report_stage("while the proxy was loaded");
    if (token_load(&module, module_path, &message) != 0) {
        report_add(MARK_PROBLEM, "proxy",
                   "the proxy %s\n"
                   "install it, or say where it is: --module PATH",
                   message.text);
        return;
    }
    report_stage("in the proxy's C_Initialize");
    dup2(log, STDERR_FILENO);
    CK_RV rv = token_start(&module, NULL, &locks);
    if (rv == CKR_OK) {
        report_add(MARK_OK, "proxy", "the proxy starts: %s", module_path);
        report_all_learned(module.list, module_path);
        report_stage("in the proxy's C_Finalize");
        module.list->C_Finalize(NULL);
    } else {
        ssize_t len = pread(log, logged, sizeof logged - 1, 0);
        logged[len > 0 ? strcspn(logged, "\n") : 0] = '\0';
        report_add(MARK_PROBLEM, "proxy",
                   "the proxy does not start: C_Initialize answers %s, and the proxy logs: %s\n"
                   "correct what it logs",
                   token_code(rv), logged);
    }
}

void check_proxy(struct checked *checked)
{
    report_from_child("proxy", start, checked);
}

static void report_doubles(const struct registered *registered, const char *folder)
{
    for (size_t i = 0; i < registered->double_count; i++) {
        const char *name = registered->doubles[i].name;
        report_add(MARK_NOTE, "p11-kit",
                   "p11-kit has token '%s' by another module too (%s), so programs see it twice\n"
                   "add the line enable-in: nothing to %s/%s.module, which may be a new file",
                   registered->doubles[i].label, name, folder, name);
    }
    if (registered->token_count == 0)
        report_add(MARK_NOTE, "p11-kit",
                   "p11-kit's programs see no initialised token through the proxy");
    else if (registered->double_count == 0)
        report_add(MARK_OK, "p11-kit", "p11-kit has the target's tokens only through the proxy");
}

void check_p11_kit(const struct checked *checked, bool target_works)
{
    struct registered registered;
    struct config_places places;
    char folder[PATH_MAX];
    config_places_default(&places, checked->module_path);
    registered_folder(folder, &places);
    if (!registered_find(&registered, checked->module_path, /* target= */ NULL))
        report_add(MARK_NOTE, "p11-kit",
                   "the modules that p11-kit has registered cannot be listed: one of them crashes "
                   "or hangs");
    else if (!registered.has_proxy)
        report_add(
            MARK_OK, "p11-kit",
            "p11-kit does not load the proxy into this program; applications can be pointed "
            "at %s\n"
            "p11-proxy setup registers it for all; if it is registered, its enable-in: names "
            "other programs, or p11-kit reads other folders than %s and %s",
            checked->module_path, places.package_modules, places.system_modules);
    else if (target_works)
        report_doubles(&registered, folder);
}
