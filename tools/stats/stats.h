/* stats.h - the parts of p11-proxy stats: whose counters can be read, and how they are shown.
 *
 * What is read belongs to somebody else's process, which may be hostile: it is copied before
 * anything is made of it, and in the copy every text ends and is printable, every count is within
 * its array, and no slot, mechanism or refusal comes twice.
 */
#ifndef P11_PROXY_STATS_H
#define P11_PROXY_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/message.h"
#include "statistics.h"

enum {
    STATS_PROGRAM_BYTES = 64,
    STATS_COPIES_MOST = 16 /* of the proxy in one process; further ones are left out */
};

/* One proxy in one process. */
struct stats_proxy {
    pid_t pid;
    char program[STATS_PROGRAM_BYTES];
    unsigned depth; /* so many PID namespaces below ours is the process */
    dev_t device;   /* of the memfd, and so is the next */
    ino_t inode;
    int64_t read_ns; /* when, on clock_exact_ns() */

    /* The copy; see above. slot_count and refusal_count may be relied on. Mechanisms come sorted,
     * the most used first, and end with a free place or with the array. */
    struct statistics *counters;
};

struct stats_list {
    struct stats_proxy *proxies; /* by PID */
    size_t count;
    size_t forbidden; /* processes that we may not look at */
    size_t closed;    /* that closed the descriptor of their counters, and we are not root */
    size_t strange;   /* whose counters we cannot read: another layout, or no proxy made them */
};

/*
 * Finds the processes that use the proxy: all, or with count > 0 those in pids. Of those it writes
 * to complaints, if that is not NULL, why one cannot be shown. False if that is so for one of them.
 * The caller ends *list with stats_list_free() in any case.
 */
bool stats_find(struct stats_list *list, const pid_t *pids, size_t count, FILE *complaints);

void stats_list_free(struct stats_list *list);

/* Where the counters of a process lie, as its maps have it. */
struct stats_mapping {
    uint64_t begin;
    uint64_t end;
    dev_t device;
    ino_t inode;
};

/*
 * Finds and opens the counters of the process whose /proc directory is open at process_fd: one for
 * each copy of the proxy. Returns how many, or a negative errno value if we may not look. Each
 * fds[i] that is negative is one, too: -EACCES or -EPERM if no descriptor leads there, and the
 * mapping itself is for root. The caller ends them with stats_close().
 */
int stats_open(int fds[STATS_COPIES_MOST], struct stats_mapping mappings[STATS_COPIES_MOST],
               int process_fd);

void stats_close(const int fds[], int count);

enum stats_read {
    STATS_READ,
    STATS_INHERITED, /* a forked child has its parent's mapping, and no counters */
    STATS_STARTING,  /* C_Initialize is under way */
    STATS_STRANGE    /* another layout, or no proxy made it; *message says so */
};

/*
 * Copies the counters that fd leads to. own_pid is the PID of their process in its innermost PID
 * namespace. On STATS_READ the caller ends *counters with stats_free().
 */
enum stats_read stats_read(struct statistics **counters, int fd, uint64_t own_pid,
                           struct message *message);

/* NULL is fine. */
void stats_free(struct statistics *counters);

/* What the application drew by way of one slot. */
struct stats_draws {
    uint64_t pool;
    uint64_t pool_bytes;
    uint64_t token;
    uint64_t token_bytes;
    uint64_t failed;
};

struct stats_draws stats_draws(const struct statistics_slot *slot);

/* What a draw as long as the pool's on average would last at the token, in ns. 0: not known. */
uint64_t stats_call_ns(const struct statistics_slot *slot);

/* How long the draws that the pool served would have waited for the token, in ns. 0: not known. */
uint64_t stats_saved_ns(const struct statistics_slot *slot);

bool stats_has(const struct statistics *counters, enum statistics_flag flag);

/* "enforce", "audit" or "none". */
const char *stats_policy_word(const struct statistics *counters);

/* "trusted", "suspect" or "latched". */
const char *stats_trust_word(const struct statistics_slot *slot);

/* 1234567 as 1,234,567; stats_put_right() with blanks before it, up to the width. */
void stats_put_number(FILE *out, uint64_t value);
void stats_put_right(FILE *out, uint64_t value);

enum { STATS_NUMBER_WIDTH = 13 };

/* "12.3 ms", "2 h 5 min": the two units that tell most. */
void stats_put_duration(FILE *out, uint64_t ns);

/* How long ago began_s was, in seconds since 1970. */
void stats_put_age(FILE *out, uint64_t began_s);

/* For people. before: what was found a while ago, for rates; NULL for none. */
void stats_table(FILE *out, const struct stats_list *list, const struct stats_list *before,
                 bool coloured);

/* One line with one JSON object. */
void stats_json(FILE *out, const struct stats_list *list);

/* OpenMetrics text, which Prometheus' older text format can be read as too. */
void stats_metrics(FILE *out, const struct stats_list *list);

/* What to say of those that list only counts: nothing, or lines, each after prefix. */
void stats_put_notes(FILE *out, const char *prefix, const struct stats_list *list);

struct stats_watch {
    const pid_t *pids; /* as for stats_find() */
    size_t pids_count;
    int64_t period_ns;
    bool json;
};

/*
 * Shows it again and again, on stdout: on a terminal redrawn in place, until q or Ctrl-C; else one
 * after another, until nobody reads it. With pids, until none of them can be shown. An exit code.
 */
int stats_watch(const struct stats_watch *watch);

#endif
