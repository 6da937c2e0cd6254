/* prefetch.h - one background thread that keeps pools above their low mark, with sessions of its own.
 *
 * The application must not notice them: see hidden_ban(). At most one session for each slot, open only
 * while there is demand, and none where the application has none.
 */
#ifndef P11_PROXY_PREFETCH_H
#define P11_PROXY_PREFETCH_H

#include "state/state.h"

/* Makes the thread if there is none and one is permitted; it ends by itself when no pool holds anything.
 * Between life_enter() and life_leave(), no lock held; keeps errno. */
void prefetch_start(void);

/* The slot's pool is low: wakes the thread, if there is one. Any thread; keeps errno. */
void prefetch_want(struct slot *slot);

/* Ends the thread, waiting for the one call to the token that it may be in. Its sessions stay open: the
 * target is about to be finalized. The caller has seen to it that nobody is in prefetch_start(). */
void prefetch_stop(void);

/* Whether the thread must make no more calls. It asks again once it is said to be inside: whoever waits for the call
 * that it may be in has said so before he looked. */
bool prefetch_must_stop(void);

/* True on that thread, while it runs. */
bool prefetch_is_this_thread(void);

/*
 * When we are unloaded: ends the thread, and waits until none of our code is needed for that; see
 * lifeboat_wait(). False if it is left behind: then what the target may write to must stay. Locks
 * and waits for nothing that needs the loader.
 */
bool prefetch_abandon(int64_t patience_ns, int64_t most_ns);

/* At exit(): tells the thread to make no more calls, and waits a moment for the one it may be in. */
void prefetch_at_exit(void);

/*
 * Before a call that must not meet a session of ours on the slot (the last session's close,
 * C_InitToken, an SO's login): closes it, waiting for the one call that it may be in, and lets none be
 * opened until hidden_allow(). Nests. NULL is fine.
 */
void hidden_ban(struct slot *slot);
void hidden_allow(struct slot *slot);

/* Ours are gone with the target's state: it was finalized, or is new in this process. */
void hidden_forget(void);

/* The token gave that handle to the application: if it was ours, the token had lost that session. */
void hidden_was_lost(CK_SESSION_HANDLE handle);

/* In a forked child that inherited the target's state: closes what it inherited of ours, before a call that
 * must not meet it. Does nothing elsewhere. */
void hidden_close_inherited(void);

/* The token has no session left for the application: closes ours, on all slots, and keeps them closed for
 * a while. Returns whether there was one. */
bool hidden_give_way(void);

#endif
