/* lock.h - locks that are free when all their bytes are zero, so that they may lie in memory that fork wipes.
 *
 * A mutex that a forked child inherits held, with its owner gone, hangs that child for ever. These
 * two live in wiped pages: the child finds them free. Neither allocates, logs or touches errno, and
 * none of their functions is a cancellation point.
 */
#ifndef P11_PROXY_LOCK_H
#define P11_PROXY_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A mutual exclusion lock that sleeps when contended. Not recursive. */
struct lock {
    atomic_uint word; /* 0 free, 1 held, 2 held and somebody may sleep */
};

/* Sleeps on word while it holds seen, for at most timeout_ns (negative: for ever). May wake early. */
void wait_on_word(atomic_uint *word, unsigned seen, int64_t timeout_ns);

/* Wakes all who sleep on word. */
void wake_word(atomic_uint *word);

void lock_contended(struct lock *lock);
void lock_wake(struct lock *lock);

static inline void lock_acquire(struct lock *lock)
{
    unsigned free_word = 0;
    if (!atomic_compare_exchange_strong_explicit(&lock->word, &free_word, 1, memory_order_acquire,
                                                 memory_order_relaxed))
        lock_contended(lock);
}

static inline void lock_release(struct lock *lock)
{
    if (atomic_exchange_explicit(&lock->word, 0, memory_order_release) == 2)
        lock_wake(lock);
}

/* A lock that nobody waits for: whoever finds it held does something else. One atomic instruction
 * to take, a plain store to give back. */
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

#endif
