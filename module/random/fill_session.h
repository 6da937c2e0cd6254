/* fill_session.h - the filler's own session on a slot, which the application does not notice, and when the filler's
 * thread may be in the target: not while the application forks, and not at exit.
 *
 * There is at most one session for a slot. It is open only while there is demand, and only where the application has a
 * session open. Functions of the first group are called around the application's calls, on its threads.
 *
 * A fork while the thread is in the target would leave the target's own locks held in the child for ever. So a fork
 * waits until it is out: for a quarter of a second, and once for each call, because a token that hangs must not hold up
 * every fork.
 */
#ifndef P11_PROXY_FILL_SESSION_H
#define P11_PROXY_FILL_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cryptoki.h"
#include "state/slots.h"

/* Around a call that must not meet the session (the close of the last session, C_InitToken, a login of the SO): closes
 * it, waiting for the one call that it may be in, and keeps it closed until _resume(). Nests. NULL: those of all slots,
 * because the call's slot is not known. */
void fill_session_suspend(const struct slot *slot);
void fill_session_resume(void);

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

/* Before C_GetTokenInfo, which must not count the session: keeps it as it is until fill_session_resume(), and tells
 * whether it is open. Waits for at most a second while it is being opened or closed. */
void fill_session_hold(const struct slot *slot, bool *is_open, bool *is_read_write);

/* The token gave this handle to the application, so it had lost the session of that handle. */
void fill_session_was_lost(CK_SESSION_HANDLE handle);

/* All are gone with the target's state: it was finalized. */
void fill_sessions_forget(void);

/* At exit(): lets the thread in no more, and waits up to a second until it is out. */
void fill_sessions_at_exit(void);

/*
 * For the filler's thread. _begin() begins one call on the slot's session, which is opened if need be. It returns 0, or
 * how long to wait before the next try. On 0 the caller makes at most one call and ends it with _end(), rv being the
 * token's answer.
 */
int64_t fill_session_begin(struct slot *slot, CK_SESSION_HANDLE *session);
void fill_session_end(struct slot *slot, CK_RV rv);

/* Closes all, for the filler's thread, which may end then. False if it may not: not now, and never at exit, because its
 * end would run what the target keeps for each thread, while the target itself is being torn down. */
bool fill_sessions_close(void);

/* Before the thread is made, with the lock held until it is: registers the fork handlers. Returns 0, or EBUSY while the
 * thread may not be in the target, or ENOMEM. */
int fill_sessions_start_locked(void);

/* The lock of the filler's sessions and thread. A fork takes it before it is made, so it waits until a thread is made:
 * the C library's lists of stacks are changed meanwhile, and a child could make no thread with what it would find. */
extern pthread_mutex_t *fill_lock;

/* Waits for fill_notify_locked(), at the latest until until_ns of clock_exact_ns(): then false. */
bool fill_wait_locked(int64_t until_ns);
void fill_notify_locked(void);

#endif
