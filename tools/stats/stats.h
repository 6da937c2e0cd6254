/* stats.h - the parts of p11-proxy stats: the ways to show counters, and what they share. */
#ifndef P11_PROXY_STATS_H
#define P11_PROXY_STATS_H

#include "counters/counters.h"

enum { MECHANISM_BYTES = 64 };

/* "enforce", "audit" or "none". */
const char *stats_policy_word(const struct statistics *counters);

/* A mechanism's name, or "key" for NO_MECHANISM; text may hold it. */
const char *stats_mechanism(uint64_t mechanism, char text[MECHANISM_BYTES]);

/* For programs: JSON, one object on one line, or OpenMetrics, which Prometheus' older text format can be
 * read as too. */
void stats_json(const struct counted_list *list);
void stats_metrics(const struct counted_list *list);

#endif
