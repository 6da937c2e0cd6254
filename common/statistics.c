/* statistics.c - sums and estimates over the counters, and words for causes. */
#include "statistics.h"

#include <stddef.h>

#include "pool.h"

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

uint64_t statistics_call_ns(const struct statistics_slot *slot, uint64_t len_bytes)
{
    uint64_t small_bytes = statistic_read(&slot->small_bytes);
    uint64_t small_ns = statistic_read(&slot->small_ns);
    uint64_t larger_ns = statistic_read(&slot->larger_ns);
    if (small_bytes == 0 || larger_ns <= small_ns || len_bytes >= small_bytes)
        return small_ns;
    /* Between small_bytes and twice as many lie small_bytes more. */
    double byte_ns = (double)(larger_ns - small_ns) / (double)small_bytes;
    double call_ns = (double)small_ns - byte_ns * (double)(small_bytes - len_bytes);
    return call_ns > 0 ? (uint64_t)call_ns : 0;
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
