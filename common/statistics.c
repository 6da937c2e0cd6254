/* statistics.c - sums and estimates over the counters, and words for causes. */
#include "statistics.h"

#include <stddef.h>

#include "pool/pool.h"

_Static_assert((unsigned)POOL_DROP_CAUSES <= STATISTICS_DROPS, "each cause has a place");

void statistics_served(const struct statistics_pool *pool, uint64_t *draws, uint64_t *bytes)
{
    *draws = statistic_read(&pool->draws);
    *bytes = statistic_read(&pool->drawn_bytes);
    for (unsigned i = 0; i < STATISTICS_STRIPES; i++) {
        *draws += statistic_read(&pool->stripes[i].draws);
        *bytes += statistic_read(&pool->stripes[i].drawn_bytes);
    }
}

uint64_t statistics_held(const struct statistics_pool *pool)
{
    uint64_t held = statistic_read(&pool->held_bytes);
    for (unsigned i = 0; i < STATISTICS_STRIPES; i++)
        held += statistic_read(&pool->stripes[i].held_bytes);
    return held;
}

unsigned statistics_size(uint64_t len_bytes)
{
    unsigned size = 0;
    while (size < STATISTICS_SIZES - 1 && (UINT64_C(1) << size) < len_bytes)
        size++;
    return size;
}

/* The shortest that a call of that size or a larger one lasted, 0 if there was none. */
static uint64_t least_from(const struct statistics_slot *slot, unsigned size)
{
    uint64_t least_ns = 0;
    for (; size < STATISTICS_SIZES; size++) {
        uint64_t ns = statistic_read(&slot->least_ns[size]);
        if (ns != 0 && (least_ns == 0 || ns < least_ns))
            least_ns = ns;
    }
    return least_ns;
}

/* The first size from that one on which was seen, STATISTICS_SIZES if none was. */
static unsigned seen_from(const struct statistics_slot *slot, unsigned size)
{
    while (size < STATISTICS_SIZES && statistic_read(&slot->least_ns[size]) == 0)
        size++;
    return size;
}

uint64_t statistics_call_ns(const struct statistics_slot *slot, uint64_t len_bytes)
{
    unsigned wanted = statistics_size(len_bytes);
    unsigned first = seen_from(slot, 0);
    while (wanted > first && seen_from(slot, wanted) == STATISTICS_SIZES)
        wanted--; /* longer than any that was seen */
    unsigned second = seen_from(slot, first + 1);
    uint64_t first_ns = least_from(slot, wanted > first ? wanted : first);
    if (wanted >= first || second >= STATISTICS_SIZES)
        return first_ns;
    double first_bytes = (double)(UINT64_C(1) << first);
    double more_bytes = (double)(UINT64_C(1) << second) - first_bytes;
    double byte_ns = (double)(least_from(slot, second) - first_ns) / more_bytes;
    double call_ns = (double)first_ns - byte_ns * (first_bytes - (double)len_bytes);
    return call_ns > 1 ? (uint64_t)call_ns : 1;
}

const char *statistics_drop_word(unsigned cause)
{
    static const char *const words[POOL_DROP_CAUSES] = {
        [POOL_DROP_SEED] = "seed",         [POOL_DROP_LOGIN] = "login",
        [POOL_DROP_SESSIONS] = "sessions", [POOL_DROP_TOKEN] = "token",
        [POOL_DROP_FINALIZE] = "finalize", [POOL_DROP_CLOCK] = "clock",
        [POOL_DROP_SENTINEL] = "memory",   [POOL_DROP_CLONE] = "clone",
        [POOL_DROP_HEALTH] = "health"};
    return cause < POOL_DROP_CAUSES ? words[cause] : NULL;
}
