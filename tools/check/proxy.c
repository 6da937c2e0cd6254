/* proxy.c - whether an application would get the proxy started, and p11-kit's programs its tokens. */
#include "check/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "counters/counters.h"

enum { SLOTS_MOST = 64 };

/* Long enough for a token of 20 ms to be asked for a few sizes. */
static const int64_t DRAW_NS = 300 * NS_PER_MS;

static void report_distrust(const struct statistics_slot *slot)
{
    if (slot->trust != HEALTH_OK)
        report_add(
            MARK_PROBLEM, "token",
            "token '%s': its random generator fails the health test, so C_GenerateRandom %s\n"
            "do not use its random bytes, nor keys that it generates; ask its maker",
            slot->token, slot->trust == HEALTH_FAILED ? "fails" : "may fail soon");
}

static void report_tokens(CK_FUNCTION_LIST *list)
{
    CK_SLOT_ID slots[SLOTS_MOST] = {0};
    CK_ULONG count = SLOTS_MOST;
    struct counted_list own = {0};
    double mean_ns;
    if (list->C_GetSlotList(CK_TRUE, slots, &count) != CKR_OK)
        return;
    for (CK_ULONG i = 0; i < count; i++) {
        report_stage("with a token through the proxy");
        check_draws(list, slots[i], DRAW_NS, &mean_ns);
    }
    counters_add(&own, getpid());
    /* A copy for a second target belongs to no package, so an upgrade leaves it as it is. */
    if (own.strange > 0 ||
        (own.count > 0 && strcmp(own.proxies[0].counters->version, VERSION) != 0))
        report_add(MARK_NOTE, "proxy",
                   "the proxy is of another version than this program, which is " VERSION ": %s\n"
                   "if it is a copy, copy the module anew: cp --remove-destination p11-proxy.so %s",
                   checked.module_path, checked.module_path);
    for (size_t slot = 0; own.count > 0 && slot < own.proxies[0].counters->slot_count; slot++)
        report_distrust(&own.proxies[0].counters->slots[slot]);
    counters_free(&own);
}

static void look(void)
{
    const char *module_path = checked.module_path;
    CK_FUNCTION_LIST *list;
    if (!report_start(&list, "proxy", module_path, NULL))
        return;
    report_add(MARK_OK, "proxy", "the proxy starts: %s", module_path);
    report_tokens(list);
    report_stage("in the proxy's C_Finalize");
    list->C_Finalize(NULL);
}

void check_proxy(void)
{
    const char *path = checked.module_path;
    char real[PATH_MAX];
    if (access(path, R_OK) != 0)
        report_add(MARK_PROBLEM, "proxy",
                   "the proxy is not there (%m): %s\n"
                   "install it, or say where it is: --module PATH",
                   path);
    else if (is_link_to_other(path, real))
        report_add(MARK_PROBLEM, "proxy",
                   "%s is a link to %s: the loader takes both for one module, so a program that "
                   "uses both gets one configuration for both\n"
                   "replace the link by a copy: cp --remove-destination %s %s",
                   path, real, real, path);
    else if (report_problems() == 0) /* it would only report the same again */
        report_from_child("proxy", look);
}

void check_p11_kit(void)
{
    struct registered registered;
    char folder[PATH_MAX];
    registered_folder(folder, &checked.places);
    if (!registered_find(&registered, checked.module_path, /* target= */ NULL))
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
            checked.module_path, checked.places.package_modules, checked.places.system_modules);
    else if (report_problems() > 0)
        return;
    else if (registered.double_count == 0)
        report_add(MARK_OK, "p11-kit",
                   "p11-kit gives programs the proxy, and no token of it through another module");
    for (size_t i = 0; i < registered.double_count; i++)
        report_add(MARK_NOTE, "p11-kit",
                   "p11-kit has a token of the target by another module too (%s), so programs see "
                   "it twice\n"
                   "add the line enable-in: nothing to %s/%s.module, which may be a new file",
                   registered.doubles[i], folder, registered.doubles[i]);
}
