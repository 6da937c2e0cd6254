/* lifecycle.h - from C_Initialize to C_Finalize. */
#ifndef P11_PROXY_LIFECYCLE_H
#define P11_PROXY_LIFECYCLE_H

#include <stdbool.h>

#include "cryptoki.h"

/*
 * Counts a call in that C_Finalize has to wait for before it is forwarded; the caller counts it out with
 * life_leave(). False, and nothing to count out, if the proxy is not initialised: then the call must not
 * use the pool. While another thread is in C_Finalize it waits for what comes of that, since it may fail.
 */
bool life_enter(void);
void life_leave(void);

/* Reads the configuration and loads the target if that was not done, so that the lists and interfaces
 * can be told before C_Initialize. Says nothing if it fails: C_Initialize will. */
void life_prepare_target(void);

#endif
