/* latencies.h - how long many calls took, in little memory: counts on a scale of equal ratios. */
#ifndef P11_PROXY_LATENCIES_H
#define P11_PROXY_LATENCIES_H

#include <stdint.h>

enum {
    LATENCY_STEPS = 32,     /* to each doubling, so that a value is told to within 3% */
    LATENCY_DOUBLINGS = 40, /* from 32 ns on; what is below counts exactly */
    LATENCY_PLACES = LATENCY_STEPS * LATENCY_DOUBLINGS
};

/* All zero: empty. Belongs to one thread at a time. */
struct latencies {
    uint64_t count;
    int64_t min_ns, max_ns; /* exact */
    uint64_t place[LATENCY_PLACES];
};

void latencies_add(struct latencies *latencies, int64_t ns);

/* Adds all that other has. */
void latencies_join(struct latencies *latencies, const struct latencies *other);

/* What share (0 to 1) of the calls took at most; 0 if there was none. */
int64_t latencies_quantile(const struct latencies *latencies, double share);

/* The longest time that counts at a place. */
int64_t latencies_place_ns(unsigned place);

#endif
