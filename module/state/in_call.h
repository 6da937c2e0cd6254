/* in_call.h - hints of who is in a call, so that the filler stays out of the application's way, and of which
 * threads are in the target for random bytes, so that a generator that comes back here is noticed. */
#ifndef P11_PROXY_IN_CALL_H
#define P11_PROXY_IN_CALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cryptoki.h"
#include "state/slots.h"

enum { IN_CALL_PLACES = 64 };

/* A place for the threads whose address hashes there: only ever a hint. */
struct in_call_place {
    _Atomic CK_SESSION_HANDLE
        session; /* of the call that is in the target, CK_INVALID_HANDLE if none */
    _Atomic CK_SESSION_HANDLE last; /* of the last call that was not for random bytes */
    atomic_uint calls;              /* of these, so far */
} __attribute__((aligned(64)));

extern struct in_call_place *in_call_places;

/* The same place for the same thread. */
static inline struct in_call_place *in_call_place(void)
{
    uintptr_t thread = (uintptr_t)__builtin_thread_pointer();
    return &in_call_places[((uint64_t)thread * 0x9E3779B97F4A7C15ULL) >> 58];
}

static inline void in_call_begin(struct in_call_place *place, CK_SESSION_HANDLE handle)
{
    atomic_store_explicit(&place->session, handle, memory_order_relaxed);
}

static inline void in_call_end(struct in_call_place *place)
{
    atomic_store_explicit(&place->session, CK_INVALID_HANDLE, memory_order_relaxed);
}

/* A call that was not for random bytes: the filler is to keep away for a while after it as well. */
static inline void in_call_count(struct in_call_place *place, CK_SESSION_HANDLE handle)
{
    unsigned calls = atomic_load_explicit(&place->calls, memory_order_relaxed);
    atomic_store_explicit(&place->last, handle, memory_order_relaxed);
    atomic_store_explicit(&place->calls, calls + 1, memory_order_relaxed);
}

/* True if a call on the slot is in the target. */
bool in_call_on(const struct slot *slot);

/* A number that changes with each call on the slot that is not for random bytes. */
unsigned in_call_calls(const struct slot *slot);

/* Around a call to the target for random bytes, on any thread. *place is for random_call_end(). */
void random_call_begin(unsigned *place);
void random_call_end(unsigned place);

/* True if this thread is in such a call: then the target's generator has come back to this module. */
bool random_call_on_this_thread(void);

/* Once, after memory_map(). */
void in_call_prepare(void);

#endif
