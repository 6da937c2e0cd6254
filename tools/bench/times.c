/* times.c - many durations, counted by their size, and the quantiles of them. */
#include "bench/times.h"

#include <math.h>
#include <stddef.h>

/* One duration, or several that lie between the two. */
static void widen(struct times *times, int64_t min_ns, int64_t max_ns)
{
    if (times->count == 0 || min_ns < times->min_ns)
        times->min_ns = min_ns;
    if (max_ns > times->max_ns)
        times->max_ns = max_ns;
}

void times_add(struct times *times, int64_t ns)
{
    ns = ns > 0 ? ns : 0;
    widen(times, ns, ns);
    times->count++;
    times->places[(size_t)(log2((double)ns + 1) * TIMES_STEPS)]++;
}

void times_merge(struct times *times, const struct times *more)
{
    if (more->count == 0)
        return;
    widen(times, more->min_ns, more->max_ns);
    times->count += more->count;
    for (size_t i = 0; i < TIMES_PLACES; i++)
        times->places[i] += more->places[i];
}

int64_t times_quantile(const struct times *times, double share)
{
    uint64_t before = (uint64_t)(share * (double)times->count);
    size_t place = 0;
    while (place < TIMES_PLACES && before >= times->places[place])
        before -= times->places[place++];
    double ns = exp2(((double)place + 0.5) / TIMES_STEPS) - 1;
    return (int64_t)fmin(fmax(ns, (double)times->min_ns), (double)times->max_ns);
}
