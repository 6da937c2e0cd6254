/* hidden.h - the prefetch's own sessions, one for a slot at most, as its thread sees them. */
#ifndef P11_PROXY_HIDDEN_H
#define P11_PROXY_HIDDEN_H

#include "state/state.h"

/*
 * Begins one piece of work on the slot's own session, which is opened if need be. False if none may be
 * had now: the application has none, has forbidden ours (see hidden_ban()), or the token refuses.
 * On true the caller ends it with hidden_end(), having made at most one call; *session is borrowed.
 * The prefetch's thread only.
 */
bool hidden_begin(struct slot *slot, CK_SESSION_HANDLE *session);

/* rv: what the token answered to that call. A session that died is forgotten. */
void hidden_end(struct slot *slot, CK_RV rv);

/* Closes the slot's session if it was not used for idle_ns. Returns when, on clock_ticks_ns()'s clock, to
 * ask again; -1 if there is none. */
int64_t hidden_close_idle(struct slot *slot, int64_t idle_ns);

#endif
