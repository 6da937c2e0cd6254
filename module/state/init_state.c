/* init_state.c - whether the module is initialised, and the calls in flight. */
#include "state/init_state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/lock.h"
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
    HOLD(&init->lock);
    if (wait_for_others_locked(INITIALIZING))
        return CHANGE_RECURSIVE;
    if (atomic_load(&init->state) != expected)
        return CHANGE_IMPOSSIBLE;
    init->owner = pthread_self();
    atomic_store(&init->state, expected == INITIALIZED ? FINALIZING : INITIALIZING);
    while (expected == INITIALIZED && atomic_load(&init->calls_in_flight) != 0)
        pthread_cond_wait(&init->changed, &init->lock);
    return CHANGE_BEGUN;
}

void init_change_end(enum init_state state)
{
    HOLD(&init->lock);
    atomic_store(&init->state, state);
    pthread_cond_broadcast(&init->changed);
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
        HOLD(&init->lock);
        if (wait_for_others_locked(FINALIZING))
            return false;
    }
}

void call_end(void)
{
    if (atomic_fetch_sub(&init->calls_in_flight, 1) != 1 || atomic_load(&init->state) != FINALIZING)
        return;
    HOLD(&init->lock);
    pthread_cond_broadcast(&init->changed);
}

/* Threads in the target for random bytes, by the address of their control block; 0: a free place. Thread-local
 * memory would do, but a statically linked host has none for modules. */
enum { RANDOM_CALLS = 128 };
static struct random_calls {
    atomic_uint count; /* of threads without a place, too */
    _Atomic uintptr_t threads[RANDOM_CALLS];
} * random_calls;
IN_WIPED_MEMORY(random_calls, 1)

/* The first place with that thread, or NULL. */
static _Atomic uintptr_t *place_of(uintptr_t thread)
{
    for (unsigned i = 0; i < RANDOM_CALLS; i++)
        if (atomic_load_explicit(&random_calls->threads[i], memory_order_relaxed) == thread)
            return &random_calls->threads[i];
    return NULL;
}

static uintptr_t this_thread(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

void random_call_begin(void)
{
    atomic_fetch_add(&random_calls->count, 1);
    _Atomic uintptr_t *place;
    uintptr_t empty;
    do {
        empty = 0;
        place = place_of(empty);
    } while (place != NULL && !atomic_compare_exchange_strong(place, &empty, this_thread()));
}

void random_call_end(void)
{
    _Atomic uintptr_t *place = place_of(this_thread());
    if (place != NULL)
        atomic_store_explicit(place, 0, memory_order_release);
    atomic_fetch_sub(&random_calls->count, 1);
}

bool random_calls_any(void)
{
    return atomic_load(&random_calls->count) != 0;
}

bool random_call_on_this_thread(void)
{
    return random_calls_any() && place_of(this_thread()) != NULL;
}
