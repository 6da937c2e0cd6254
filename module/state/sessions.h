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

/* How often sessions_forget() was called. To be read before the token opens a session. */
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

/* After the call that closes all of a slot (NULL: of all slots): forgets them. Any thread. */
void sessions_forget(const struct slot *slot);

/* True after such an answer to C_CloseSession: the session is no more. */
bool session_is_gone(CK_RV rv);

/* Notes that an operation began or ended on the session (NULL is fine), and counts it for its slot. No lock. */
void session_set_operating(struct session *session, bool operating);

/* slot_note_code() and slot_invalidate() for the session's slot; without one, the event is taken to be on all. */
void session_note_code(CK_SESSION_HANDLE handle, CK_RV rv);
void session_invalidate(CK_SESSION_HANDLE handle, enum slot_event event);

/* Hints of which sessions are in a call, so that the filler stays out of the application's way. */
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

#endif
