/* init_state.h - whether the module is initialised, and which calls are in flight.
 *
 * Nothing of ours is locked while the target runs: C_Initialize and C_Finalize mark that they are in progress,
 * and others wait for the mark to change.
 */
#ifndef P11_PROXY_INIT_STATE_H
#define P11_PROXY_INIT_STATE_H

#include <stdbool.h>

enum init_state {
    NOT_INITIALIZED,
    INITIALIZED,
    INITIALIZING, /* a thread is in C_Initialize */
    FINALIZING    /* a thread is in C_Finalize */
};

enum init_change {
    CHANGE_BEGUN, /* the caller ends it with init_change_end() */
    CHANGE_RECURSIVE, /* this thread is in C_Initialize or C_Finalize already, and the target called back */
    CHANGE_IMPOSSIBLE /* the module is in another state than expected */
};

/* Changes the state from expected (NOT_INITIALIZED or INITIALIZED), for the time of a call to the target. Waits while
 * another thread is in such a call; and before the end of INITIALIZED until no call is counted in. */
enum init_change init_change_begin(enum init_state expected);
void init_change_end(enum init_state state);

/* True if the module is initialised. Any thread, no lock. */
bool init_is_initialized(void);

/*
 * Counts a call in that C_Finalize waits for before it is forwarded; the caller counts it out with call_end().
 * False, and nothing to count out, if the module is not initialised: then the call must not use a pool. While
 * another thread is in C_Finalize it waits for the outcome, because that call may fail.
 */
bool call_begin(void);
void call_end(void);

/* Around a call to the target for random bytes, on any thread. */
void random_call_begin(void);
void random_call_end(void);

/* True if any thread is in such a call. */
bool random_calls_any(void);

/* True if this thread is in such a call: then the target's generator has come back to this module. */
bool random_call_on_this_thread(void);

#endif
