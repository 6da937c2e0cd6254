/* forks.c - keeps the prefetch's thread out of the target while the application forks. */
#include "random/forks.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "random/lifeboat.h"
#include "random/prefetch.h"
#include "state/state.h"

/* A call of a fill is made to last 5 ms, or as long as the token's shortest. */
static const int64_t WAIT_NS = 250 * NS_PER_MS;

/* Forks under way, in ordinary memory: the child resets it. */
static atomic_uint forking;

static void before_fork(void)
{
    /* The target may fork while it makes random bytes; that fork must not wait for itself. */
    if (prefetch_is_this_thread())
        return;
    int saved_errno = errno;
    int64_t until_ns = clock_exact_ns() + WAIT_NS;
    atomic_fetch_add(&forking, 1);
    while (atomic_load(&state->thread_inside) != 0) {
        int64_t left_ns = until_ns - clock_exact_ns();
        if (left_ns <= 0)
            break;
        wait_on_word(&state->thread_inside, 1, left_ns);
    }
    errno = saved_errno;
}

static void after_fork_in_parent(void)
{
    if (prefetch_is_this_thread())
        return;
    atomic_fetch_sub(&forking, 1);
}

static void after_fork_in_child(void)
{
    atomic_store(&forking, 0);
}

void forks_watch(void)
{
    static atomic_bool watched;
    static fork_handler *const handlers[] = {before_fork, after_fork_in_parent,
                                             after_fork_in_child};
    if (!atomic_exchange(&watched, true))
        lifeboat_watch_forks(handlers);
}

bool forks_enter_target(void)
{
    atomic_store(&state->thread_inside, 1);
    /* Whoever forks looks at thread_inside after it has said so. */
    if (atomic_load(&forking) == 0)
        return true;
    forks_leave_target();
    return false;
}

void forks_leave_target(void)
{
    atomic_store(&state->thread_inside, 0);
    wake_word(&state->thread_inside);
}
