/* answering.h - the answering target: sessions and random bytes as they are anywhere, and all else made up. */
#ifndef P11_PROXY_TEST_ANSWERING_H
#define P11_PROXY_TEST_ANSWERING_H

#include <stdbool.h>

#include "recording.h"

/*
 * If the call is one that the proxy has to understand (life, slots, sessions, random), does what it is to do
 * and says so; *rv is the answer. Also for a call on a session that is not open, or before C_Initialize.
 * Any thread.
 */
bool answering_knows(const struct call *call, CK_RV *rv);

/* How many calls the session has seen that were made up, this one counted in. */
unsigned long answering_count(CK_SESSION_HANDLE session);

#endif
