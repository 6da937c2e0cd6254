/* simulate.c - a target that takes longer for random bytes than it does, as a slower token would. */
#include "bench/bench.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    SLEEP_LEAST_NS =
        200 * 1000, /* sleeping wakes some 50 us late, so short waits are spent awake */
    INTERFACES_MOST = 64
};

static CK_C_GenerateRandom below;
static int64_t wait_ns;

static CK_RV slow_C_GenerateRandom(CK_SESSION_HANDLE session, CK_BYTE_PTR bytes, CK_ULONG len_bytes)
{
    int64_t until_ns = clock_exact_ns() + wait_ns;
    if (wait_ns >= SLEEP_LEAST_NS) {
        struct timespec until = {until_ns / NS_PER_S, until_ns % NS_PER_S};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
            ;
    }
    while (clock_exact_ns() < until_ns)
        ;
    return below(session, bytes, len_bytes);
}

/* In place: the proxy asks the target for its table itself. The page may have been made read-only
 * after loading; this process only draws and ends, so it stays writable. */
static bool replace_in(CK_FUNCTION_LIST *list)
{
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t at = (uintptr_t)&list->C_GenerateRandom & ~(page_bytes - 1);
    uintptr_t end = (uintptr_t)(&list->C_GenerateRandom + 1);
    if (mprotect((void *)at, end - at, PROT_READ | PROT_WRITE) != 0)
        return false;
    list->C_GenerateRandom = slow_C_GenerateRandom;
    return true;
}

bool simulate_delay(const struct token_module *module, int64_t delay_ns)
{
    CK_INTERFACE interfaces[INTERFACES_MOST] = {0};
    CK_ULONG count = INTERFACES_MOST;
    bool replaced;
    below = module->list->C_GenerateRandom;
    wait_ns = delay_ns;
    replaced = replace_in(module->list);
    if (module->interfaces == NULL || module->interfaces(interfaces, &count) != CKR_OK)
        return replaced;
    /* All standard lists begin alike; a vendor's may be anything. */
    for (CK_ULONG i = 0; replaced && i < count && i < INTERFACES_MOST; i++) {
        CK_FUNCTION_LIST *list = interfaces[i].pFunctionList;
        if (list != NULL && list->C_GenerateRandom == below)
            replaced = replace_in(list);
    }
    return replaced;
}
