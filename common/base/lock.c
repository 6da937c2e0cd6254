/* lock.c - the sleeping half of the locks: Linux futexes, private to the process. */
#include "base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPINS_BEFORE_SLEEP = 64 };

void wait_on_word(atomic_uint *word, unsigned seen, int64_t timeout_ns)
{
    int saved_errno = errno;
    struct timespec timeout = {.tv_sec = timeout_ns / 1000000000,
                               .tv_nsec = timeout_ns % 1000000000};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, timeout_ns < 0 ? NULL : &timeout, NULL, 0);
    errno = saved_errno;
}

void wake_word(atomic_uint *word)
{
    int saved_errno = errno;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
    errno = saved_errno;
}

void lock_contended(struct lock *lock)
{
    /* What the lock guards takes tens of nanoseconds; a system call takes longer than most waits. */
    for (int i = 0; i < SPINS_BEFORE_SLEEP; i++) {
        unsigned free_word = 0;
        if (atomic_load_explicit(&lock->word, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_weak_explicit(&lock->word, &free_word, 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return;
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
    while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) != 0)
        wait_on_word(&lock->word, 2, /* timeout_ns= */ -1);
}

void lock_wake(struct lock *lock)
{
    int saved_errno = errno;
    syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved_errno;
}
