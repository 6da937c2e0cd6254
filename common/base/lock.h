/* lock.h - a lock for a few nanoseconds of work, which callers try and do not wait for.
 *
 * It is free when its bytes are zero, so a forked child finds it free in memory that fork wipes. All other
 * locks are pthread mutexes; theirs is the initialiser of all zero bytes that zero_is_unlocked() checks.
 */
#ifndef P11_PROXY_LOCK_H
#define P11_PROXY_LOCK_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

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

/* True where a mutex and a condition of zero bytes are initialised ones, as with glibc and musl. */
static inline bool zero_is_unlocked(void)
{
    static const pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static const pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    static const char zeros[sizeof mutex + sizeof cond];
    return memcmp(&mutex, zeros, sizeof mutex) == 0 && memcmp(&cond, zeros, sizeof cond) == 0;
}

#endif
