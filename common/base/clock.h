/* clock.h - the clocks: a cheap one for every draw, an exact one to time calls. */
#ifndef P11_PROXY_CLOCK_H
#define P11_PROXY_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS 1000000LL
#define NS_PER_S  1000000000LL

static inline int64_t clock_read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Time since boot without suspend, in steps of a scheduler tick: never later than the true time, and
 * at most a tick earlier. No system call. */
static inline int64_t clock_ticks_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC_COARSE);
}

/* The length of such a step. */
static inline int64_t clock_tick_ns(void)
{
    struct timespec tick = {.tv_nsec = 10 * NS_PER_MS};
    clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    return tick.tv_nsec;
}

/* The same clock, exact. */
static inline int64_t clock_exact_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}

/*
 * Wall time minus time since boot. It steps when the machine slept, when the clock was set, and when the
 * process was restored from a checkpoint. Otherwise it stays within a tick or two, because slewing moves
 * both clocks alike.
 */
static inline int64_t clock_offset_ns(void)
{
    int64_t before_ns;
    int64_t wall_ns;
    do {
        before_ns = clock_ticks_ns();
        wall_ns = clock_read_ns(CLOCK_REALTIME_COARSE);
        /* Read again if the thread was not scheduled in between, because that looks like a step. */
    } while (clock_ticks_ns() - before_ns > 20 * NS_PER_MS);
    return wall_ns - before_ns;
}

#endif
