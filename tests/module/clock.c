/* clock.c - what time it is for this program, the proxy in it and the target behind that: as the test likes. */
#include "clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { A_LOOK_NS = 100 };

static _Atomic int64_t ahead_ns, wall_ahead_ns, stopped_ns; /* stopped_ns: 0 while it goes */

static void put(struct timespec *time, int64_t ns)
{
    time->tv_sec = (time_t)(ns / NS_PER_S);
    time->tv_nsec = (long)(ns % NS_PER_S);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (atomic_load(&stopped_ns) != 0) {
        put(now, atomic_fetch_add(&stopped_ns, A_LOOK_NS));
        return 0;
    }
    int rc = (int)syscall(SYS_clock_gettime, clock, now);
    bool is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    put(now, now->tv_sec * NS_PER_S + now->tv_nsec + atomic_load(&ahead_ns) +
                 (is_wall ? atomic_load(&wall_ahead_ns) : 0));
    return rc;
}

int nanosleep(const struct timespec *duration, struct timespec *left)
{
    if (atomic_load(&stopped_ns) == 0)
        return (int)syscall(SYS_nanosleep, duration, left);
    atomic_fetch_add(&stopped_ns, duration->tv_sec * NS_PER_S + duration->tv_nsec);
    return 0;
}

void clock_step(int64_t all_ns, int64_t wall_ns)
{
    atomic_fetch_add(&ahead_ns, all_ns);
    atomic_fetch_add(&wall_ahead_ns, wall_ns);
}

void clock_stop(void)
{
    atomic_store(&stopped_ns, 1000 * NS_PER_S);
}

void clock_true(void)
{
    atomic_store(&ahead_ns, 0);
    atomic_store(&wall_ahead_ns, 0);
    atomic_store(&stopped_ns, 0);
}
