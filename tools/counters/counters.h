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

struct counted_list {
    struct counted_proxy *proxies;
    size_t count;
    size_t forbidden; /* processes that we may not look at */
    size_t strange;   /* whose counters have another layout, or were not made by a proxy */
};

/*
 * Finds the processes that use the proxy: all, or with count > 0 those in pids. With complains says on
 * stderr why one in pids cannot be shown. False if that is so for one of them.
 * The caller ends *list with counters_free() in any case.
 */
bool counters_find(struct counted_list *list, const pid_t *pids, size_t count, bool complains);

void counters_free(struct counted_list *list);

#endif
