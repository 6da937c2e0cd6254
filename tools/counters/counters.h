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
    pid_t pid;
    char program[PROGRAM_BYTES];
    struct statistics *counters; /* the copy; see above */
};

/* What looking at a process came to. For one with several proxies it is the last that is true. */
enum counted { COUNTED_GONE, COUNTED_UNUSED, COUNTED_FORBIDDEN, COUNTED_STRANGE, COUNTED };

/* Is all zero before the first process is added, and ends with counters_free(). */
struct counted_list {
    struct counted_proxy *proxies;
    size_t count;
    size_t forbidden; /* processes that we may not look at */
    size_t strange;   /* whose counters have another layout, or were not made by a proxy */
};

/* Adds the proxies of a process. */
enum counted counters_add(struct counted_list *list, pid_t pid);

/* Adds those of all processes. */
void counters_add_all(struct counted_list *list);

void counters_free(struct counted_list *list);

#endif
