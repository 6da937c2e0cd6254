/* statistics.c - the counters' rows, and what a reader computes of the numbers. */
#include "statistics.h"

#include <stddef.h>

enum {
    TIMES_LEAST = 8,      /* fewer calls of a size may all have been held up, by other programs */
    SURE_NS = 500 * 1000, /* a call that takes as long hardly takes longer because of them */
    CALL_SHARE = 8        /* a call's own price below this part of the quickest fill's is noise */
};

#define ROW(of, name, type, unit, line, help)                                                      \
    {#name, STATISTICS_##type, unit, line, help, offsetof(struct of, name)},

const struct statistics_row statistics_call_rows[] = {
#define CALL(...) ROW(statistics_calls, __VA_ARGS__)
#include "statistics.def"
    {0}};

const struct statistics_row statistics_pool_rows[] = {
#define POOL(...) ROW(statistics_pool, __VA_ARGS__)
#include "statistics.def"
    {0}};

const struct statistics_row statistics_process_rows[] = {
#define PROCESS(...) ROW(statistics, __VA_ARGS__)
#include "statistics.def"
    {0}};

const char *const statistics_drop_words[POOL_DROP_CAUSES] = {
    [POOL_DROP_SEED] = "seed",         [POOL_DROP_LOGIN] = "login",
    [POOL_DROP_SESSIONS] = "sessions", [POOL_DROP_TOKEN] = "token",
    [POOL_DROP_FINALIZE] = "finalize", [POOL_DROP_CLOCK] = "clock",
    [POOL_DROP_MEMORY] = "memory",     [POOL_DROP_HEALTH] = "health",
};

void statistics_add_up(struct statistics_pool *pool)
{
    uint64_t gone_bytes, filled_bytes = statistic_read(&pool->filled_bytes);
    for (unsigned i = 0; i < POOL_LINES; i++) {
        statistic_add(&pool->pool_draws, statistic_read(&pool->lines[i].draws));
        statistic_add(&pool->pool_drawn_bytes, statistic_read(&pool->lines[i].drawn_bytes));
    }
    gone_bytes = statistic_read(&pool->pool_drawn_bytes) + statistic_read(&pool->expired_bytes) +
                 statistic_read(&pool->dropped_bytes);
    /* The numbers are not all of one instant. */
    statistic_set(&pool->held_bytes, filled_bytes > gone_bytes ? filled_bytes - gone_bytes : 0);
}

uint64_t statistics_call_ns(const struct statistics_pool *pool)
{
    const struct statistics_time *quickest = NULL, *largest = NULL;
    for (const struct statistics_time *size = pool->fill_times;
         size < pool->fill_times + STATISTICS_SIZES; size++) {
        if (size->times == 0 || (size->times < TIMES_LEAST && size->least_ns < SURE_NS))
            continue;
        if (quickest == NULL || size->least_ns < quickest->least_ns)
            quickest = size;
        largest = size;
    }
    if (quickest == largest || pool->pool_draws == 0)
        return 0;
    double quickest_ns = (double)quickest->least_ns;
    double quickest_bytes = (double)(UINT64_C(1) << (quickest - pool->fill_times));
    double more_bytes = (double)(UINT64_C(1) << (largest - pool->fill_times)) - quickest_bytes;
    double byte_ns = ((double)largest->least_ns - quickest_ns) / more_bytes;
    double call_ns = quickest_ns - byte_ns * quickest_bytes;
    if (call_ns < 1 || call_ns < quickest_ns / CALL_SHARE)
        return 0;
    return (uint64_t)(call_ns +
                      byte_ns * (double)pool->pool_drawn_bytes / (double)pool->pool_draws);
}
