/* sessions.h - the application's open sessions: which handle is live, and on which slot.
 *
 * Looking up costs the same for ten sessions and for tens of thousands, takes no lock and may run beside any change.
 * Not to find a session is always safe: the call then goes to the token as it is.
 */
#ifndef P11_PROXY_SESSIONS_H
#define P11_PROXY_SESSIONS_H

#include "state/slots.h"

/* An entry is used again for another session after it was closed, so a reader looks at handle again after it has read
 * the other members. */
struct session {
    _Atomic CK_SESSION_HANDLE handle; /* CK_INVALID_HANDLE while the entry is free */
    _Atomic(struct slot *) slot;
    atomic_uint generation;  /* the slot's when the token last answered for this session */
    atomic_uint digest_info; /* CKF_SIGN and so on: that operation's data may be a DigestInfo */
    atomic_bool operating;   /* it has a cryptographic operation open */
};

/* The live session of that handle, or NULL. Any thread, no lock. */
struct session *session_find(CK_SESSION_HANDLE handle);

/* The slot of the live session of that handle, or NULL. Any thread, no lock. */
struct slot *session_slot(CK_SESSION_HANDLE handle);

/* The same, if the slot's pool may answer for the session: the token has answered for it since anything happened that
 * may have ended it. Threads with different sessions get different numbers, mostly. Any thread, no lock. */
struct slot *session_pooled_slot(CK_SESSION_HANDLE handle, unsigned *number);

/* How many calls that close many sessions have ended. To be read before the token opens a session. */
unsigned sessions_closings(void);

/*
 * Remembers a session that the token has opened on slot (NULL: not known) since sessions_closings() returned closings.
 * If many were closed meanwhile, it may be gone already, and is not remembered; nor is it if all places for its handle
 * are taken. That costs speed only. digest_info: see struct session.
 */
void session_opened(CK_SESSION_HANDLE handle, struct slot *slot, unsigned digest_info,
                    unsigned closings);

/* Forgets it before it is closed; if the token does not close it, session_opened() takes that back. Returns its slot, or
 * NULL if it was not known. *last says whether it was the slot's last one. Any thread. */
struct slot *session_closed(CK_SESSION_HANDLE handle, bool *last);

/* Around the call that closes all of a slot (NULL: of all slots): forgets them. Any thread. */
void sessions_close_begin(struct slot *slot);
void sessions_close_end(void);

/* True after such an answer to C_CloseSession: the session is no more. */
bool session_is_gone(CK_RV rv);

/* Notes that an operation began or ended on the session (NULL is fine), and counts it for its slot. No lock. */
void session_set_operating(struct session *session, bool operating);

/* The token answered rv, not CKR_OK, to a call on that session: what it tells of is made invalid. */
void session_note_code(CK_SESSION_HANDLE handle, CK_RV rv);

#endif
