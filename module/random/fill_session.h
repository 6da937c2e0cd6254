/* fill_session.h - the filler's own session on a slot, which the application does not notice.
 *
 * There is at most one for a slot. It is open only while there is demand, and only where the application has a
 * session open. Functions of the first group are called around the application's calls, on its threads.
 */
#ifndef P11_PROXY_FILL_SESSION_H
#define P11_PROXY_FILL_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cryptoki.h"
#include "state/slots.h"

/* Around a call that must not meet the session (the close of the last session, C_InitToken, a login of the SO): closes
 * it, waiting for the one call that it may be in, and keeps it closed until _resume(). Nests. NULL: those of all slots,
 * because the call's slot is not known. */
void fill_session_suspend(const struct slot *slot);
void fill_session_resume(const struct slot *slot);

/* The token has no session left for the application: closes those of all slots, and opens none for a while. Returns
 * whether there was one. */
bool fill_sessions_release_all(void);

/* Bit (handle % 64) is set for each of the filler's sessions. If it is clear, a forwarded call needs no look-up. */
extern _Atomic uint64_t *fill_session_bits;
CK_SESSION_HANDLE fill_session_look_up(CK_SESSION_HANDLE handle);

/* The handle that stands for the application's in the target: CK_INVALID_HANDLE for one of the filler's, which the
 * application never got, so that the target complains as it would without the session. */
static inline CK_SESSION_HANDLE fill_session_hide(CK_SESSION_HANDLE handle)
{
    uint64_t bits = atomic_load_explicit(fill_session_bits, memory_order_relaxed);
    return __builtin_expect((bits >> (handle & 63) & 1) == 0, 1) ? handle
                                                                 : fill_session_look_up(handle);
}

/* What C_GetTokenInfo must not count. */
struct fill_session_view {
    CK_SESSION_HANDLE session; /* CK_INVALID_HANDLE: none */
    bool is_read_write;
    bool in_transition; /* it is being opened or closed: the token may count it or not */
};

/* As it is now, or as soon as it is not in transition, at the latest at until_ns of clock_exact_ns(). */
struct fill_session_view fill_session_view(struct slot *slot, int64_t until_ns);

/* The token gave this handle to the application, so it had lost the session of that handle. */
void fill_session_was_lost(CK_SESSION_HANDLE handle);

/* All are gone with the target's state: it was finalized. */
void fill_sessions_forget(void);

/*
 * For the filler's thread. _acquire() begins one call on the slot's session, which is opened if need be; false if none
 * may be had now. On true the caller makes at most one call and ends it with _done(), rv being the token's answer.
 */
bool fill_session_acquire(struct slot *slot, CK_SESSION_HANDLE *session);
void fill_session_done(struct slot *slot, CK_RV rv);

/* Closes the session if it was not used for idle_ns. Returns when, on clock_exact_ns()'s clock, to ask again; INT64_MAX
 * if there is none. For the filler's thread. */
int64_t fill_session_close_idle(struct slot *slot, int64_t idle_ns);

#endif
