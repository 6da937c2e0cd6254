/* in_call.c - which threads are in a call to the target. */
#include "state/in_call.h"

#include "state/memory.h"
#include "state/sessions.h"

struct in_call_place *in_call_places;

IN_WIPED_MEMORY(in_call_places, IN_CALL_PLACES)

/* Threads in the target for random bytes, by the address of their control block; 0: a free place. Thread-local
 * memory would do, but a statically linked host has none for modules. */
enum { RANDOM_CALLS = 128 };
static struct random_calls {
    atomic_uint count;
    _Atomic uintptr_t threads[RANDOM_CALLS + 1]; /* the last one stands for those without */
} * random_calls;
IN_WIPED_MEMORY(random_calls, 1)

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

unsigned random_call_begin(void)
{
    uintptr_t thread = this_thread(), empty = 0;
    unsigned place = 0;
    atomic_fetch_add(&random_calls->count, 1);
    while (place < RANDOM_CALLS &&
           !atomic_compare_exchange_strong(&random_calls->threads[place], &empty, thread)) {
        place++;
        empty = 0;
    }
    return place;
}

void random_call_end(unsigned place)
{
    atomic_fetch_sub(&random_calls->count, 1);
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
