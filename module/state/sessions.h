/* sessions.h - the application's open sessions: whose handle is live, and on which slot.
 *
 * Looking up costs the same for ten sessions and for a hundred thousand, takes no lock and may run
 * beside any change. Not finding a session is always safe: the call goes to the token.
 */
#ifndef P11_PROXY_SESSIONS_H
#define P11_PROXY_SESSIONS_H

#include "state/state.h"

enum {
    SESSION_IS_ASYNC =
        1 /* CKF_ASYNC_SESSION: its calls may answer later, so none is answered here */
};

/* Stays where it is for good, and is used again for other sessions once it is free. A
 * reader without the lock looks at handle again before it believes the other members. */
struct session {
    _Atomic CK_SESSION_HANDLE handle; /* CK_INVALID_HANDLE while the entry is free */
    _Atomic(struct slot *) slot;
    atomic_uint generation; /* the slot's when the token last answered for this session */
    atomic_bool operating;  /* it has a cryptographic operation open */
    atomic_uint hiding;     /* bits of enum purpose: its data may be a DigestInfo */
    atomic_uint flags;
    struct session *next_free;
};

/* The live session of that handle, or NULL. Any thread, no lock. */
struct session *session_find(CK_SESSION_HANDLE handle);

/* The slot of the live session of that handle, or NULL. Any thread, no lock. */
struct slot *session_slot(CK_SESSION_HANDLE handle);

/* How often many were closed at once. To be asked before the token opens one; see session_opened(). */
unsigned sessions_closings(void);

/* Remembers a session that the token has opened since sessions_closings() said closings. If sessions were closed
 * meanwhile, it may be gone already, and is not remembered; nor is it out of memory. That costs speed only. Any
 * thread; takes state->lock. */
void session_opened(CK_SESSION_HANDLE handle, CK_SLOT_ID slot_id, unsigned flags,
                    unsigned closings);

/* Forgets it. Returns its slot, or NULL if it was not known; *flags is what it was opened with, *last
 * whether it was the last one of the slot. Any thread; takes state->lock. */
struct slot *session_closed(CK_SESSION_HANDLE handle, unsigned *flags, bool *last);

/* A live session of the slot, CK_INVALID_HANDLE if there is none. Any thread; takes state->lock. */
CK_SESSION_HANDLE session_on(struct slot *slot);

/* Around the call that closes all of a slot: forgets them. Any thread; the first takes state->lock. */
void sessions_close_begin(struct slot *slot);
void sessions_close_end(void);

/* Forgets all of all slots. Any thread; takes state->lock. */
void sessions_forget(void);

/* After such an answer to C_CloseSession the session is no more, whatever the code. */
bool session_is_gone(CK_RV rv);

/* Before state_free(): unmaps what they were remembered in. */
void sessions_free(void);

/* Notes that an operation began or ended on the session, and counts that for its slot. No lock. */
void session_operates(struct session *session, bool operating);

#endif
