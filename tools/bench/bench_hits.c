/* bench_hits.c - which share of a process's draws the pool served, by the process's own counters. */
#include "bench/bench.h"

#include "stats/stats.h"

double pool_share(pid_t pid)
{
    struct stats_list list;
    uint64_t pool = 0, all = 0;

    stats_find(&list, &pid, 1, /* complaints= */ NULL);
    for (size_t i = 0; i < list.count; i++) {
        const struct statistics *counters = list.proxies[i].counters;
        for (size_t slot = 0; slot < counters->slot_count; slot++) {
            const struct statistics_slot *drawn = &counters->slots[slot];
            pool += drawn->pool.pool_draws;
            all += drawn->pool.pool_draws + drawn->calls.token_draws + drawn->calls.failed_draws;
        }
    }
    stats_list_free(&list);
    return all > 0 ? (double)pool / (double)all : -1;
}
