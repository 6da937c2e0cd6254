/* times.c - many durations, counted by their size, and the quantiles of them. */
#include "bench/bench.h"

#include <math.h>

void times_add(struct times *times, int64_t ns)
{
    times->count++;
    times->places[ns > 0 ? (size_t)(log2((double)ns + 1) * TIMES_STEPS) : 0]++;
}

void times_merge(struct times *times, const struct times *more)
{
    times->count += more->count;
    for (size_t i = 0; i < TIMES_PLACES; i++)
        times->places[i] += more->places[i];
}

int64_t times_quantile(const struct times *times, double share)
{
    uint64_t wanted = (uint64_t)ceil(share * (double)times->count), seen = times->places[0];
    size_t place = 0;
    while (place < TIMES_PLACES - 1 && (seen < wanted || seen == 0))
        seen += times->places[++place];
    return times->count > 0 ? (int64_t)(exp2((double)(place + 1) / TIMES_STEPS) - 1) : 0;
}
