/* stats.h - the parts of p11-proxy stats: whose counters can be read, and how they are shown.
 *
 * The counters belong to another process, which may be hostile. They are copied first; in the copy
 * every text ends and is printable, every count is within its array, and no slot, mechanism or refusal
 * stands twice.
 */
#ifndef P11_PROXY_STATS_H
#define P11_PROXY_STATS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/message.h"
#include "statistics.h"

enum { STATS_PROGRAM_BYTES = 64 };

/* One proxy in one process. */
struct stats_proxy {
    pid_t pid;
    char program[STATS_PROGRAM_BYTES];
    dev_t device; /* of the memfd, and so is the next */
    ino_t inode;
    int64_t read_ns;             /* when, on clock_exact_ns() */
    struct statistics *counters; /* the copy; see above. Mechanisms come sorted, most used first */
};

struct stats_list {
    struct stats_proxy *proxies; /* by PID */
    size_t count;
    size_t forbidden; /* processes that we may not look at */
    size_t strange;   /* whose counters have another layout, or were not made by a proxy */
};

/*
 * Finds the processes that use the proxy: all, or with count > 0 those in pids. Writes to complaints,
 * if that is not NULL, why one in pids cannot be shown. False if that is so for one of them.
 * The caller ends *list with stats_list_free() in any case.
 */
bool stats_find(struct stats_list *list, const pid_t *pids, size_t count, FILE *complaints);

void stats_list_free(struct stats_list *list);

enum stats_read {
    STATS_READ,
    STATS_INHERITED, /* a forked child holds its parent's descriptor, and has no counters */
    STATS_STARTING,  /* C_Initialize is under way */
    STATS_STRANGE    /* another layout, or not made by a proxy; *message says so */
};

/*
 * Copies the counters in fd. own_pid is the PID of their process in its innermost PID namespace. On
 * STATS_READ the caller ends *counters with free().
 */
enum stats_read stats_read(struct statistics **counters, int fd, uint64_t own_pid,
                           struct message *message);

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
void stats_table(FILE *out, const struct stats_list *list, const struct stats_list *before,
                 bool coloured);

/* One line with one JSON object. */
void stats_json(FILE *out, const struct stats_list *list);

/* OpenMetrics text, which Prometheus' older text format can be read as too. */
void stats_metrics(FILE *out, const struct stats_list *list);

/* What to say of processes that list only counts: nothing, or lines, each after prefix. */
void stats_put_notes(FILE *out, const char *prefix, const struct stats_list *list);

struct stats_watch {
    const pid_t *pids; /* as for stats_find() */
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
