/* init_state.c - whether the module is initialised, and the calls in flight. */
#include "state/init_state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "state/memory.h"

static struct initialization {
    pthread_mutex_t lock; /* guards changes of state, and owner */
    pthread_cond_t changed;
    atomic_uint state; /* enum init_state */
    pthread_t owner;   /* the thread that is in C_Initialize or C_Finalize */
    atomic_uint calls_in_flight;
} * init;
IN_WIPED_MEMORY(init, 1)

/* Waits while another thread is in C_Finalize, or in C_Initialize if from is that. Returns true if this one is. */
static bool wait_for_others_locked(enum init_state from)
{
    while (atomic_load(&init->state) >= from) {
        if (pthread_equal(init->owner, pthread_self()))
            return true;
        pthread_cond_wait(&init->changed, &init->lock);
    }
    return false;
}

enum init_change init_change_begin(enum init_state expected)
{
    enum init_change change = CHANGE_IMPOSSIBLE;
    pthread_mutex_lock(&init->lock);
    if (wait_for_others_locked(INITIALIZING))
        change = CHANGE_RECURSIVE;
    else if (atomic_load(&init->state) == expected) {
        change = CHANGE_BEGUN;
        init->owner = pthread_self();
        atomic_store(&init->state, expected == INITIALIZED ? FINALIZING : INITIALIZING);
        while (expected == INITIALIZED && atomic_load(&init->calls_in_flight) != 0)
            pthread_cond_wait(&init->changed, &init->lock);
    }
    pthread_mutex_unlock(&init->lock);
    return change;
}

void init_change_end(enum init_state state)
{
    pthread_mutex_lock(&init->lock);
    atomic_store(&init->state, state);
    pthread_cond_broadcast(&init->changed);
    pthread_mutex_unlock(&init->lock);
}

bool init_is_initialized(void)
{
    return atomic_load_explicit(&init->state, memory_order_acquire) == INITIALIZED;
}

bool call_begin(void)
{
    for (;;) {
        /* The count is raised before state is read; C_Finalize changes state before it reads the count, so one
         * of them sees the other. */
        atomic_fetch_add(&init->calls_in_flight, 1);
        unsigned state = atomic_load(&init->state);
        if (state == INITIALIZED)
            return true;
        call_end();
        if (state != FINALIZING)
            return false;
        pthread_mutex_lock(&init->lock);
        bool own = wait_for_others_locked(FINALIZING);
        pthread_mutex_unlock(&init->lock);
        if (own)
            return false;
    }
}

void call_end(void)
{
    if (atomic_fetch_sub(&init->calls_in_flight, 1) != 1 || atomic_load(&init->state) != FINALIZING)
        return;
    pthread_mutex_lock(&init->lock);
    pthread_cond_broadcast(&init->changed);
    pthread_mutex_unlock(&init->lock);
}

/* Threads in the target for random bytes, by the address of their control block; 0: a free place. Thread-local
 * memory would do, but a statically linked host has none for modules. */
enum { RANDOM_CALLS = 128 };
static struct random_calls {
    atomic_uint count;
    _Atomic uintptr_t threads[RANDOM_CALLS + 1]; /* the last one stands for those without */
} * random_calls;
IN_WIPED_MEMORY(random_calls, 1)

static uintptr_t this_thread(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

unsigned random_call_begin(void)
{
    uintptr_t thread = this_thread();
    unsigned place = 0;
    atomic_fetch_add(&random_calls->count, 1);
    for (; place < RANDOM_CALLS; place++) {
        _Atomic uintptr_t *at = &random_calls->threads[place];
        /* Looked at first, because an exchange takes the cache line from other threads even if it fails. */
        uintptr_t empty = atomic_load_explicit(at, memory_order_relaxed);
        if (empty == 0 && atomic_compare_exchange_strong(at, &empty, thread))
            break;
    }
    return place;
}

void random_call_end(unsigned place)
{
    atomic_fetch_sub(&random_calls->count, 1);
    atomic_store_explicit(&random_calls->threads[place], 0, memory_order_release);
}

bool random_calls_any(void)
{
    return atomic_load(&random_calls->count) != 0;
}

bool random_call_on_this_thread(void)
{
    uintptr_t thread = this_thread();
    if (!random_calls_any())
        return false;
    for (unsigned i = 0; i < RANDOM_CALLS; i++)
        if (atomic_load_explicit(&random_calls->threads[i], memory_order_relaxed) == thread)
            return true;
    return false;
}
