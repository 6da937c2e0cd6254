/* stats_sums.c - what is made of counters, for all ways to show them. */
#include "stats/stats.h"

struct stats_draws stats_draws(const struct statistics_slot *slot)
{
    struct stats_draws draws = {
        .token = statistic_read(&slot->calls.token_draws),
        .token_bytes = statistic_read(&slot->calls.token_bytes),
        .failed = statistic_read(&slot->calls.failed_draws),
    };

    statistics_served(&slot->pool, &draws.pool, &draws.pool_bytes);
    return draws;
}

uint64_t stats_call_ns(const struct statistics_slot *slot)
{
    struct stats_draws draws = stats_draws(slot);

    return draws.pool > 0 ? statistics_call_ns(slot, draws.pool_bytes / draws.pool) : 0;
}

uint64_t stats_saved_ns(const struct statistics_slot *slot)
{
    uint64_t saved_ns;

    if (__builtin_mul_overflow(stats_call_ns(slot), stats_draws(slot).pool, &saved_ns))
        saved_ns = UINT64_MAX;
    return saved_ns;
}

bool stats_has(const struct statistics *counters, enum statistics_flag flag)
{
    return (statistic_read(&counters->flags) & flag) != 0;
}

const char *stats_policy_word(const struct statistics *counters)
{
    return stats_has(counters, STATISTICS_AUDIT)    ? "audit"
           : stats_has(counters, STATISTICS_POLICY) ? "enforce"
                                                    : "none";
}

const char *stats_trust_word(const struct statistics_slot *slot)
{
    switch (statistic_read(&slot->suspect)) {
    case STATISTICS_TRUSTED:
        return "trusted";
    case STATISTICS_SUSPECT:
        return "suspect";
    default:
        return "latched";
    }
}
