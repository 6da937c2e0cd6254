/* in_call.c - which threads are in a call to the target. */
#include "state/in_call.h"

#include "state/memory.h"
#include "state/sessions.h"

struct in_call_place *in_call_places;

/* Threads in the target for random bytes, by the address of their control block; 0: a free place. Thread-local
 * memory would do, but a statically linked host has none for modules. */
enum { RANDOM_CALLS = 128, NO_PLACE = RANDOM_CALLS };
static struct random_calls {
    atomic_uint count;
    _Atomic uintptr_t threads[RANDOM_CALLS];
} * random_calls;

void in_call_prepare(void)
{
    in_call_places = memory_part(IN_CALL_PLACES * sizeof *in_call_places);
    random_calls = memory_part(sizeof *random_calls);
}

bool in_call_none(const struct slot *slot, unsigned *calls)
{
    bool none = atomic_load(&random_calls->count) == 0;
    *calls = 0;
    for (unsigned i = 0; i < IN_CALL_PLACES; i++) {
        const struct in_call_place *place = &in_call_places[i];
        CK_SESSION_HANDLE handle = atomic_load_explicit(&place->session, memory_order_relaxed);
        if (session_slot(handle) != slot)
            continue;
        unsigned here = atomic_load_explicit(&place->calls, memory_order_relaxed);
        none = none && (here & 1) == 0;
        *calls += here;
    }
    return none;
}

static uintptr_t this_thread(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

void random_call_begin(unsigned *place)
{
    uintptr_t thread = this_thread();
    unsigned start = (unsigned)(((uint64_t)thread * 0x9E3779B97F4A7C15ULL) >> 57);
    *place = NO_PLACE;
    atomic_fetch_add(&random_calls->count, 1);
    for (unsigned i = 0; i < RANDOM_CALLS && *place == NO_PLACE; i++) {
        unsigned at = (start + i) % RANDOM_CALLS;
        uintptr_t empty = 0;
        if (atomic_load_explicit(&random_calls->threads[at], memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&random_calls->threads[at], &empty, thread))
            *place = at;
    }
}

void random_call_end(unsigned place)
{
    atomic_fetch_sub(&random_calls->count, 1);
    if (place != NO_PLACE)
        atomic_store_explicit(&random_calls->threads[place], 0, memory_order_release);
}

bool random_call_on_this_thread(void)
{
    uintptr_t thread = this_thread();
    if (atomic_load(&random_calls->count) == 0)
        return false;
    for (unsigned i = 0; i < RANDOM_CALLS; i++)
        if (atomic_load_explicit(&random_calls->threads[i], memory_order_relaxed) == thread)
            return true;
    return false;
}
