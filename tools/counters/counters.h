/* counters.h - the counters of other processes: found, copied, and made harmless.
 *
 * A counted process may be hostile. Its counters are copied first; in the copy every text ends and is
 * printable, and every count is within its array.
 */
#ifndef P11_PROXY_TOOL_COUNTERS_H
#define P11_PROXY_TOOL_COUNTERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "statistics.h"

enum { PROGRAM_BYTES = 64 };

/* One proxy in one process. */
struct counted_proxy {
    struct counted_proxy *next;
    pid_t pid;
    char program[PROGRAM_BYTES];
    struct statistics counters; /* the copy; of its slots and refusals, those that are in use */
};

/* What looking at a process came to. For one with several proxies it is the last that is true. */
enum counted {
    COUNTED_GONE,
    COUNTED_UNUSED,
    COUNTED_FORBIDDEN, /* we may not look at it */
    COUNTED_STRANGE,   /* its counters have another layout, or were not made by a proxy */
    COUNTED,
    COUNTED_OUTCOMES
};

/* Is all zero before the first process is added, and ends with counters_free(). */
struct counted_list {
    struct counted_proxy *first;
    size_t processes[COUNTED_OUTCOMES]; /* how many came to that */
};

/* Adds the proxies of a process. */
enum counted counters_add(struct counted_list *list, pid_t pid);

/* Adds those of all processes. */
void counters_add_all(struct counted_list *list);

void counters_free(struct counted_list *list);

#endif
