/* lock.h - a mutex that is held until a block ends; and a lock for a few nanoseconds of work, which callers try and do
 * not wait for.
 *
 * Both are free when their bytes are zero, as in a mutex's initialiser with glibc and musl: a forked child finds them
 * free in memory that fork wipes.
 */
#ifndef P11_PROXY_LOCK_H
#define P11_PROXY_LOCK_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Stands among the declarations of a block: locks the mutex, and unlocks it wherever the block is left. */
#define HOLD(mutex)                                                                                \
    __attribute__((cleanup(lock_end), unused)) pthread_mutex_t *const held_mutex = lock_begin(mutex)

static inline pthread_mutex_t *lock_begin(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    return mutex;
}

static inline void lock_end(pthread_mutex_t *const *mutex)
{
    pthread_mutex_unlock(*mutex);
}

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
