/* in_call.h - hints of which threads are in a call, so that the filler stays out of the application's way, and of which
 * threads are in the target for random bytes, so that a generator that comes back here is noticed. */
#ifndef P11_PROXY_IN_CALL_H
#define P11_PROXY_IN_CALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cryptoki.h"
#include "state/slots.h"

enum { IN_CALL_PLACES = 64 };

/* A place for the sessions whose handles end alike: only ever a hint. */
struct in_call_place {
    _Atomic CK_SESSION_HANDLE session; /* of the last call that was not for random bytes */
    atomic_uint calls;                 /* odd while a call is in the target; moves on with each */
} __attribute__((aligned(64)));

extern struct in_call_place *in_call_places;

static inline struct in_call_place *in_call_place(CK_SESSION_HANDLE handle)
{
    return &in_call_places[handle % IN_CALL_PLACES];
}

/* Around a call that is not for random bytes. Calls that share a place may lose a count, but the last one to leave
 * leaves an even number. Returns what in_call_end() needs. */
static inline unsigned in_call_begin(struct in_call_place *place, CK_SESSION_HANDLE handle)
{
    unsigned calls = atomic_load_explicit(&place->calls, memory_order_relaxed) | 1;
    atomic_store_explicit(&place->session, handle, memory_order_relaxed);
    atomic_store_explicit(&place->calls, calls, memory_order_relaxed);
    return calls;
}

static inline void in_call_end(struct in_call_place *place, unsigned calls)
{
    atomic_store_explicit(&place->calls, calls + 1, memory_order_relaxed);
}

/* True if no call on the slot, and none for random bytes on any, is in the target. *calls is a number that changes with
 * each call on the slot that is not for random bytes. */
bool in_call_none(const struct slot *slot, unsigned *calls);

/* Around a call to the target for random bytes, on any thread. _begin() returns what _end() needs. */
unsigned random_call_begin(void);
void random_call_end(unsigned place);

/* True if this thread is in such a call: then the target's generator has come back to this module. */
bool random_call_on_this_thread(void);

#endif
