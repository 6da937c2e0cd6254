/* clock.h - the time on the serve path: cheap, and never later than the true time. */
#ifndef P11_PROXY_CLOCK_H
#define P11_PROXY_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS 1000000LL
#define NS_PER_S  1000000000LL

/* Looks at two clocks that are so near, two ticks, are one look. */
#define CLOCK_AT_ONCE_NS (20 * NS_PER_MS)

static inline int64_t clock_read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Time since boot without suspend, in steps of a scheduler tick. No system call. */
static inline int64_t clock_ticks_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC_COARSE);
}

/* The same clock, exact: to measure how long a call took. */
static inline int64_t clock_exact_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}

/*
 * Wall time minus time since boot. It steps when the machine slept, when the clock was set and when
 * the process was restored from a checkpoint, and stands still (within a tick or two) otherwise,
 * since slewing moves both clocks alike.
 */
static inline int64_t clock_offset_ns(void)
{
    int64_t before_ns;
    int64_t wall_ns;
    do {
        before_ns = clock_ticks_ns();
        wall_ns = clock_read_ns(CLOCK_REALTIME_COARSE);
        /* Again, if the machine let us wait in between: that would look like a step. */
    } while (clock_ticks_ns() - before_ns > CLOCK_AT_ONCE_NS);
    return wall_ns - before_ns;
}

#endif
