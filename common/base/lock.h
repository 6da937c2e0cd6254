/* lock.h - a lock for a few nanoseconds of work, which callers try and do not wait for.
 *
 * It is free when its bytes are zero, so a forked child finds it free in memory that fork wipes. All other
 * locks are pthread mutexes, whose initialiser has all zero bytes with glibc and musl.
 */
#ifndef P11_PROXY_LOCK_H
#define P11_PROXY_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

struct try_lock {
    atomic_uint held;
};

static inline bool try_lock_acquire(struct try_lock *lock)
{
    return atomic_exchange_explicit(&lock->held, 1, memory_order_acquire) == 0;
}

static inline void try_lock_release(struct try_lock *lock)
{
    atomic_store_explicit(&lock->held, 0, memory_order_release);
}

/* For the rare caller that must have it: the holder copies a few bytes and never sleeps. */
static inline void try_lock_wait(struct try_lock *lock)
{
    while (!try_lock_acquire(lock))
        sched_yield();
}

#endif
