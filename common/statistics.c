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
#define DROP(place, word) [POOL_DROP_##place] = word,
#include "statistics.def"
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

uint64_t statistics_call_ns(const struct statistics_pool *pool, uint64_t len_bytes)
{
    uint64_t quickest_ns = UINT64_MAX, largest_ns = 0, times = 0;
    unsigned quickest = 0, largest = 0;
    for (unsigned i = 0; i < STATISTICS_SIZES; i++) {
        uint64_t ns = statistic_read(&pool->fill_times[i].least_ns);
        uint64_t size_times = statistic_read(&pool->fill_times[i].times);
        times += size_times;
        if (size_times == 0 || (size_times < TIMES_LEAST && ns < SURE_NS))
            continue;
        if (ns < quickest_ns) {
            quickest = i;
            quickest_ns = ns;
        }
        largest = i;
        largest_ns = ns;
    }
    if (times < TIMES_LEAST || largest <= quickest)
        return 0;
    double quickest_bytes = (double)(UINT64_C(1) << quickest);
    double more_bytes = (double)(UINT64_C(1) << largest) - quickest_bytes;
    double byte_ns = ((double)largest_ns - (double)quickest_ns) / more_bytes;
    double call_ns = (double)quickest_ns - byte_ns * quickest_bytes;
    if (call_ns < 1 || call_ns < (double)quickest_ns / CALL_SHARE)
        return 0;
    return (uint64_t)(call_ns + byte_ns * (double)len_bytes);
}
