/* statistics.c - the counters' rows, and the sums that a reader makes of the numbers. */
#include "statistics.h"

#include <stddef.h>

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
