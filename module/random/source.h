/* source.h - gets random bytes from the slot's token, in sizes that it takes, and tests them. */
#ifndef P11_PROXY_SOURCE_H
#define P11_PROXY_SOURCE_H

#include "cryptoki.h"
#include "functions.h"
#include "state/slots.h"

/*
 * A request of 1 to POOL_TAKE_MAX bytes that the pool could not serve. It is answered by fetches that take more than
 * was asked for and leave the rest in the slot's pool, which it has; or by calls of its own size, if reads_ahead is
 * false, a fetch is in progress, or the token was failing. Every byte is tested before buf receives it. The code is the
 * token's own; on any but CKR_OK no token byte is left in buf. No lock is held while the token runs. Any thread.
 */
CK_RV source_draw(struct slot *slot, bool reads_ahead, CK_SESSION_HANDLE session, uint8_t *buf,
                  size_t len_bytes);

/* One fetch for the slot's pool on session. False if none is wanted; else *rv is the token's code, and CKR_DEVICE_ERROR
 * if the bytes failed the tests. The filler's. */
bool source_fill(struct slot *slot, CK_SESSION_HANDLE session, CK_RV *rv);

/* Any request as it is, untested, through the list that the caller used; only one of more than 1 MiB is put in several
 * calls, unless x-pool is off. If one of several calls fails, what those before it wrote is wiped. slot is only counted for,
 * and may be NULL. */
CK_RV source_forward(const struct p11_functions *functions, struct slot *slot,
                     CK_SESSION_HANDLE session, uint8_t *buf, CK_ULONG len_bytes);

#endif
