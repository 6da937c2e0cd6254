/* latencies.c - how long many calls took, in little memory. */
#include "bench/latencies.h"

static unsigned place_of(int64_t ns)
{
    unsigned doublings;

    if (ns < LATENCY_STEPS)
        return ns > 0 ? (unsigned)ns : 0;
    doublings = 63 - (unsigned)__builtin_clzll((unsigned long long)ns) - 4; /* 1 at 32 ns */
    if (doublings >= LATENCY_DOUBLINGS)
        return LATENCY_PLACES - 1;
    return doublings * LATENCY_STEPS + (unsigned)(ns >> (doublings - 1)) - LATENCY_STEPS;
}

int64_t latencies_place_ns(unsigned place)
{
    unsigned doublings = place / LATENCY_STEPS;
    int64_t step = place % LATENCY_STEPS;

    if (doublings == 0)
        return step;
    return ((step + LATENCY_STEPS + 1) << (doublings - 1)) - 1;
}

void latencies_add(struct latencies *latencies, int64_t ns)
{
    if (latencies->count++ == 0 || ns < latencies->min_ns)
        latencies->min_ns = ns;
    if (ns > latencies->max_ns)
        latencies->max_ns = ns;
    latencies->place[place_of(ns)]++;
}

void latencies_join(struct latencies *latencies, const struct latencies *other)
{
    if (other->count == 0)
        return;
    if (latencies->count == 0 || other->min_ns < latencies->min_ns)
        latencies->min_ns = other->min_ns;
    if (other->max_ns > latencies->max_ns)
        latencies->max_ns = other->max_ns;
    latencies->count += other->count;
    for (unsigned i = 0; i < LATENCY_PLACES; i++)
        latencies->place[i] += other->place[i];
}

int64_t latencies_quantile(const struct latencies *latencies, double share)
{
    uint64_t wanted = (uint64_t)(share * (double)latencies->count);
    uint64_t seen = 0;

    for (unsigned i = 0; i < LATENCY_PLACES - 1; i++) { /* the last place has no upper end */
        seen += latencies->place[i];
        if (seen > wanted && latencies_place_ns(i) < latencies->max_ns)
            return latencies_place_ns(i);
    }
    return latencies->max_ns;
}
