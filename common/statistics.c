/* statistics.c - the counters' rows, and the sums that a reader makes of the numbers. */
#include "statistics.h"

#include <stddef.h>

#define ROW(name, of, member, type, unit, line, help)                                              \
    {#name, STATISTICS_##type, unit, line, help, offsetof(of, member)},

const struct statistics_row statistics_slot_rows[] = {
#define SLOT(name, ...) ROW(name, struct statistics_slot, name, __VA_ARGS__)
#define POOL(name, ...) ROW(name, struct statistics_slot, pool.name, __VA_ARGS__)
#include "statistics.def"
    {0}};

const struct statistics_row statistics_process_rows[] = {
#define PROCESS(name, ...) ROW(name, struct statistics, name, __VA_ARGS__)
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
    const struct pool_counts *pool = &slot->pool;
    for (unsigned i = 0; i < POOL_LINES; i++) {
        slot->pool_draws += pool->lines[i].draws;
        slot->pool_drawn_bytes += pool->lines[i].drawn_bytes;
    }
    slot->alarms = pool->drops[POOL_DROP_HEALTH];
    /* The numbers are not all of one instant. */
    uint64_t gone_bytes = slot->pool_drawn_bytes + pool->expired_bytes + pool->dropped_bytes;
    slot->held_bytes = pool->filled_bytes > gone_bytes ? pool->filled_bytes - gone_bytes : 0;
}
