/* forward.h - what every forwarded call does around the target's own function. */
#ifndef P11_PROXY_FORWARD_H
#define P11_PROXY_FORWARD_H

#include "state/sessions.h"
#include "target/target.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Our own functions, in the lists that we publish. */
#define P11_UPTO       302
#define ROW(name, ...) CK_RV proxy_##name(PARAMS(__VA_ARGS__));
#include "functions.def"

/* The handle that stands for the application's in the target. One of ours it never saw, so it is handed on as
 * CK_INVALID_HANDLE: which mistake the target complains of first is the target's to say. */
CK_SESSION_HANDLE session_for_target(CK_SESSION_HANDLE handle);

/* The target answered rv, not CKR_OK, to a call on that session: drop what can no longer be relied on. */
void note_answer(CK_SESSION_HANDLE handle, CK_RV rv);

/* The same for an answer about a whole slot, and of any rv; and where only the slot's id is known. */
void note_slot_answer(struct slot *slot, CK_RV rv);
void note_answer_of_slot(CK_SLOT_ID id, CK_RV rv);

/* Another user of the target finalized it, as an answer tells: nothing is served for a session until the token
 * answers for it again. */
void note_finalized(void);

/* An operation began (or ended) on the session: the prefetch stays away meanwhile. */
void note_operation(CK_SESSION_HANDLE handle, bool open);

static inline bool handle_may_be_hidden(CK_SESSION_HANDLE handle)
{
    return (atomic_load_explicit(&state->hidden_bits, memory_order_relaxed) >> (handle & 63)) & 1;
}

static inline void busy_begin(CK_SESSION_HANDLE handle)
{
    atomic_store_explicit(&busy_place()->session, handle, memory_order_relaxed);
}

static inline void busy_end(void)
{
    atomic_store_explicit(&busy_place()->session, CK_INVALID_HANDLE, memory_order_relaxed);
}

#endif
