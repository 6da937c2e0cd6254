/* stats.h - the parts of p11-proxy stats: the ways to show counters, and what they share. */
#ifndef P11_PROXY_STATS_H
#define P11_PROXY_STATS_H

#include "counters/counters.h"

/* "enforce", "audit" or "none". */
const char *stats_policy_word(const struct statistics *counters);

/* For programs: JSON, one object on one line, or OpenMetrics, which Prometheus' older text format can be
 * read as too. */
void stats_json(const struct counted_list *list);
void stats_metrics(const struct counted_list *list);

#endif
