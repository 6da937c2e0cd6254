/* statistics.c - the counters' rows, and the sums that a reader makes of the numbers. */
#include "statistics.h"

#include <stddef.h>

#define ROW(of, name, type, unit, line, help)                                                      \
    {#name, STATISTICS_##type, unit, line, help, offsetof(struct of, name)},

const struct statistics_row statistics_slot_rows[] = {
#define SLOT(...) ROW(statistics_slot, __VA_ARGS__)
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
    [POOL_DROP_HEALTH] = "health",
};

void statistics_add_up(struct statistics_slot *slot)
{
    uint64_t gone_bytes, filled_bytes = statistic_read(&slot->filled_bytes);
    for (unsigned i = 0; i < POOL_LINES; i++) {
        statistic_add(&slot->pool_draws, statistic_read(&slot->lines[i].draws));
        statistic_add(&slot->pool_drawn_bytes, statistic_read(&slot->lines[i].drawn_bytes));
    }
    gone_bytes = statistic_read(&slot->pool_drawn_bytes) + statistic_read(&slot->expired_bytes) +
                 statistic_read(&slot->dropped_bytes);
    /* The numbers are not all of one instant. */
    statistic_set(&slot->held_bytes, filled_bytes > gone_bytes ? filled_bytes - gone_bytes : 0);
}
