/* times.h - many durations, counted by their size, and the quantiles of them. */
#ifndef P11_PROXY_TIMES_H
#define P11_PROXY_TIMES_H

#include <stdint.h>

enum {
    TIMES_STEPS = 100, /* for each power of two, so that a step is 0.7 % */
    TIMES_PLACES = 64 * TIMES_STEPS
};

/* Begins as zeros. */
struct times {
    uint64_t count;
    uint64_t places[TIMES_PLACES]; /* how many durations there are of each step */
};

void times_add(struct times *times, int64_t ns);
void times_merge(struct times *times, const struct times *more);

/* The duration that at least this share (0 to 1) of them does not exceed, up to a percent more than it was. */
int64_t times_quantile(const struct times *times, double share);

#endif
