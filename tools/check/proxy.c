/* proxy.c - whether an application would get the proxy started, and what it learns of the tokens. */
#include "check/check.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "counters/counters.h"

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
    report_stage("in the proxy's C_GenerateRandom");
    for (unsigned i = 0; i < DRAWS_MOST && rv == CKR_OK && clock_exact_ns() < until_ns; i++)
        rv = list->C_GenerateRandom(session, bytes, sizeof bytes);
    explicit_bzero(bytes, sizeof bytes);
    report_stage("in the proxy's C_CloseSession");
    list->C_CloseSession(session);
}

static void report_learned(const struct statistics_slot *slot)
{
    uint64_t most_bytes = slot->pool.capacity_bytes / 2;
    if (slot->pool.trust != STATISTICS_TRUSTED) {
        report_add(
            MARK_PROBLEM, "token",
            "token '%s': its random generator fails the health test, so C_GenerateRandom %s\n"
            "do not use its random bytes, nor keys that it generates; ask its maker",
            slot->token, slot->pool.trust == STATISTICS_LATCHED ? "fails" : "may fail soon");
    } else if (slot->pool.fills > 0)
        report_add(MARK_OK, "token", "the pool asks token '%s' for %zu bytes in a call%s",
                   slot->token, (size_t)slot->pool.chunk_bytes,
                   slot->pool.chunk_bytes >= most_bytes
                       ? ""
                       : ", because more was refused, was slow or was not needed");
}

/* A copy for a second target belongs to no package, so an upgrade leaves it as it is. */
static void report_version(const struct counted_list *own, const char *module_path)
{
    if (own->strange > 0 ||
        (own->count > 0 && strcmp(own->proxies[0].counters->version, VERSION) != 0))
        report_add(MARK_NOTE, "proxy",
                   "the proxy is of another version than this program, which is " VERSION ": %s\n"
                   "if it is a copy, copy the module anew: cp --remove-destination p11-proxy.so %s",
                   module_path, module_path);
}

static void report_all_learned(CK_FUNCTION_LIST *list, const char *module_path)
{
    CK_SLOT_ID slots[SLOTS_MOST] = {0};
    CK_ULONG count = SLOTS_MOST;
    struct counted_list own;
    pid_t pid = getpid();
    report_stage("in the proxy's C_GetSlotList");
    if (list->C_GetSlotList(CK_TRUE, slots, &count) != CKR_OK)
        return;
    for (CK_ULONG i = 0; i < count; i++)
        draw_for_a_moment(list, slots[i]);
    counters_find(&own, &pid, 1, /* complaints= */ NULL);
    report_version(&own, module_path);
    for (size_t i = 0; i < own.count; i++)
        for (size_t slot = 0; slot < own.proxies[i].counters->slot_count; slot++)
            report_learned(&own.proxies[i].counters->slots[slot]);
    counters_free(&own);
}

/* The first line that the proxy logged. */
static void read_line(int fd, char *line, size_t line_bytes)
{
    ssize_t len = pread(fd, line, line_bytes - 1, 0);
    line[len > 0 ? len : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
}

static void start(const void *context)
{
    const char *module_path = context;
    struct token_module module;
    struct message message;
    char logged[MESSAGE_BYTES] = "";
    int log = memfd_create("log", MFD_CLOEXEC);
    bool locks;
    CK_RV rv;
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
    rv = token_start(&module, NULL, &locks);
    read_line(log, logged, sizeof logged);
    if (rv != CKR_OK) {
        report_add(MARK_PROBLEM, "proxy",
                   "the proxy does not start: C_Initialize answers %s%s%s\n"
                   "correct what it logs",
                   token_code(rv), logged[0] != '\0' ? ", and the proxy logs: " : "", logged);
        return;
    }
    report_add(MARK_OK, "proxy", "the proxy starts: %s", module_path);
    report_all_learned(module.list, module_path);
    report_stage("in the proxy's C_Finalize");
    module.list->C_Finalize(NULL);
}

void check_proxy(const char *module_path)
{
    report_from_child("proxy", start, module_path);
}
