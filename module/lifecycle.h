/* lifecycle.h - from C_Initialize to C_Finalize. */
#ifndef P11_PROXY_LIFECYCLE_H
#define P11_PROXY_LIFECYCLE_H

#include <stdbool.h>

#include "cryptoki.h"

/*
 * Counts a call in that C_Finalize has to wait for before it is forwarded. Returns false if the proxy
 * is not initialised or a thread is in C_Finalize; then the call must not use the pool.
 */
bool life_enter(void);
void life_leave(void);

/* True while a thread is in C_Finalize, other than this one. */
bool life_is_stopping(void);

/* Reads the configuration and loads the target if that was not done, so that the lists and interfaces
 * can be told before C_Initialize. Says nothing if it fails: C_Initialize will. */
void life_prepare_target(void);

#endif
