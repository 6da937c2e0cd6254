/* fork_gate.c - keeps the filler's thread out of the target while the application forks, and at exit. */
#include "random/fork_gate.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"
#include "state/memory.h"

/* Longer than a call of the filler's to a token that is well; see sizing.c. */
static const int64_t FORK_WAIT_NS = 250 * NS_PER_MS;
static const int64_t EXIT_WAIT_NS = 1 * NS_PER_S;

/* In ordinary memory, since the parent goes on: forks in progress, which the child resets. */
static atomic_uint forking;
static atomic_bool exiting;

struct fork_gate {
    _Atomic uintptr_t inside; /* the thread that is in the target, 0 if none */
    atomic_uint entries;      /* how often it went in, */
    atomic_uint waited_for;   /* and the entry that a fork has waited for in vain */
};

static struct fork_gate *gate;
IN_WIPED_MEMORY(gate, 1)

static uintptr_t this_thread(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

/* Looks again and again, because a lock here could be one that the forking thread itself holds: fork() may be called
 * in a signal handler. False if the thread is still inside after wait_ns. */
static bool wait_until_outside(int64_t wait_ns)
{
    const struct timespec pause = {.tv_nsec = NS_PER_MS / 10};
    int64_t until_ns = clock_exact_ns() + wait_ns;
    int cancellation;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
    while (atomic_load(&gate->inside) != 0 && clock_exact_ns() < until_ns)
        nanosleep(&pause, NULL);
    pthread_setcancelstate(cancellation, &cancellation);
    return atomic_load(&gate->inside) == 0;
}

static void before_fork(void)
{
    int saved_errno = errno;
    /* forking is raised before inside is read; the thread sets inside before it reads forking, so one of them sees
     * the other. */
    atomic_fetch_add(&forking, 1);
    uintptr_t inside = atomic_load(&gate->inside);
    unsigned entry = atomic_load(&gate->entries);
    /* The target may fork while it makes random bytes: then the thread is inside its own fork. */
    if (inside != 0 && inside != this_thread() && atomic_load(&gate->waited_for) != entry &&
        !wait_until_outside(FORK_WAIT_NS))
        atomic_store(&gate->waited_for, entry);
    errno = saved_errno;
}

static void after_fork_in_parent(void)
{
    atomic_fetch_sub(&forking, 1);
}

static void after_fork_in_child(void)
{
    atomic_store(&forking, 0);
}

bool fork_gate_watch(void)
{
    static atomic_bool watched;
    if (atomic_exchange(&watched, true))
        return true;
    bool watches = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
    atomic_store(&watched, watches);
    return watches;
}

bool fork_gate_enter(void)
{
    atomic_fetch_add(&gate->entries, 1);
    atomic_store(&gate->inside, this_thread());
    if (atomic_load(&forking) == 0 && !atomic_load(&exiting))
        return true;
    fork_gate_leave();
    return false;
}

void fork_gate_leave(void)
{
    atomic_store(&gate->inside, 0);
}

bool fork_gate_is_closed(void)
{
    return atomic_load(&exiting);
}

void fork_gate_close(void)
{
    int saved_errno = errno;
    atomic_store(&exiting, true);
    if (atomic_load(&gate->inside) != this_thread())
        wait_until_outside(EXIT_WAIT_NS);
    errno = saved_errno;
}
