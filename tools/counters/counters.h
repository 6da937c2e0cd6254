/* counters.h - the counters of other processes: found, copied, and made harmless.
 *
 * A counted process may be hostile. Its counters are copied first; in the copy every text ends and is
 * printable, every count is within its array, and no slot, mechanism or refusal stands twice.
 */
#ifndef P11_PROXY_TOOL_COUNTERS_H
#define P11_PROXY_TOOL_COUNTERS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/message.h"
#include "statistics.h"

enum { PROGRAM_BYTES = 64 };

/* One proxy in one process. */
struct counted_proxy {
    pid_t pid;
    char program[PROGRAM_BYTES];
    dev_t device; /* of the memfd, and so is the next */
    ino_t inode;
    int64_t read_ns;             /* when, on clock_exact_ns() */
    struct statistics *counters; /* the copy; see above. Mechanisms come sorted, most used first */
};

struct counted_list {
    struct counted_proxy *proxies; /* by PID */
    size_t count;
    size_t forbidden; /* processes that we may not look at */
    size_t strange;   /* whose counters have another layout, or were not made by a proxy */
};

/*
 * Finds the processes that use the proxy: all, or with count > 0 those in pids. Writes to complaints,
 * if that is not NULL, why one in pids cannot be shown. False if that is so for one of them.
 * The caller ends *list with counters_free() in any case.
 */
bool counters_find(struct counted_list *list, const pid_t *pids, size_t count, FILE *complaints);

void counters_free(struct counted_list *list);

/* What inspecting a process came to. For a process with several descriptors it is the last that is true. */
enum counters_result {
    COUNTERS_GONE,
    COUNTERS_UNUSED,
    COUNTERS_INHERITED, /* a forked child holds its parent's descriptor, and has no counters */
    COUNTERS_STARTING,  /* C_Initialize is under way */
    COUNTERS_STRANGE,   /* another layout, or not made by a proxy; *message says so */
    COUNTERS_FORBIDDEN,
    COUNTERS_READ
};

/*
 * Copies the counters in fd. own_pid is the PID of their process in its innermost PID namespace. Answers
 * COUNTERS_INHERITED, _STARTING, _STRANGE, or _READ, and then the caller ends *counters with free().
 */
enum counters_result counters_read(struct statistics **counters, int fd, uint64_t own_pid,
                                   struct message *message);

/* What to say of processes that list only counts: nothing, or lines, each after prefix. */
void counters_put_notes(FILE *out, const char *prefix, const struct counted_list *list);

#endif
