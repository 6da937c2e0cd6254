/* prefetch.h - one background thread that keeps pools above their low mark, with sessions of its own.
 *
 * The application must not notice them: see hidden_ban(). At most one session for each slot, open only
 * while there is demand, and none where the application has none.
 */
#ifndef P11_PROXY_PREFETCH_H
#define P11_PROXY_PREFETCH_H

#include "state.h"

/* The slot's pool is low: wakes the thread, makes it if there is none and one is permitted. Any thread,
 * no lock held; keeps errno. Not from within a child that has not initialised: state is zero there. */
void prefetch_want(struct slot *slot);

/* Ends the thread, waiting for the one call to the token that it may be in. Its sessions stay open: the
 * target is about to be finalized. No new thread can come up meanwhile: the caller stops life first. */
void prefetch_stop(void);

/* At exit(): tells the thread to make no more calls, and waits a moment for the one it may be in. */
void prefetch_at_exit(void);

/*
 * Before a call that must not meet a session of ours on the slot (the last session's close,
 * C_InitToken, an SO's login): closes it, waiting for the one call that it may be in, and lets none be
 * opened until hidden_allow(). Nests. NULL is fine.
 */
void hidden_ban(struct slot *slot);
void hidden_allow(struct slot *slot);

/* The token has no session left for the application: closes ours, on all slots, and keeps them closed for
 * a while. Returns whether there was one. */
bool hidden_give_way(void);

#endif
