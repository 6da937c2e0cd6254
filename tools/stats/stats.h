/* stats.h - the parts of p11-proxy stats: the ways to show counters, and what they share. */
#ifndef P11_PROXY_STATS_H
#define P11_PROXY_STATS_H

#include "counters/counters.h"

/* What a draw as long as the pool's on average would last at the token, in ns. 0: not known. */
uint64_t stats_call_ns(const struct statistics_pool *pool);

/* How long the draws that the pool served would have waited for the token, in ns. 0: not known. */
uint64_t stats_saved_ns(const struct statistics_pool *pool);

bool stats_has(const struct statistics *counters, enum statistics_flag flag);

/* "enforce", "audit" or "none". */
const char *stats_policy_word(const struct statistics *counters);

/* "trusted", "suspect" or "latched". */
const char *stats_trust_word(uint64_t trust);

/* For people. before: what was found a while ago, for rates; NULL for none. */
void stats_table(FILE *out, const struct counted_list *list, const struct counted_list *before,
                 bool coloured);

/* One line with one JSON object. */
void stats_json(FILE *out, const struct counted_list *list);

/* OpenMetrics text, which Prometheus' older text format can be read as too. */
void stats_metrics(FILE *out, const struct counted_list *list);

struct stats_watch {
    const pid_t *pids; /* as for counters_find() */
    size_t pids_count;
    int64_t period_ns;
    bool json;
};

/*
 * Shows it again and again on stdout: on a terminal in place, until q or a signal; else one after
 * another, until stdout is closed. With pids, until none of them can be shown. An exit code.
 */
int stats_watch(const struct stats_watch *watch);

#endif
