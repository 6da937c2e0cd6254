/* fetch.h - asks the token for random bytes, and gets them in the sizes that it takes. */
#ifndef P11_PROXY_FETCH_H
#define P11_PROXY_FETCH_H

#include "state/state.h"

/* True while this thread is in the target for random bytes: who calls us then is the token's own
 * generator, gone in a circle. */
bool fetch_is_under_way(void);

/*
 * Fills pool from the token on session by one call, and hands the first own_bytes of it to own.
 * *got_bytes (at most own_bytes) says how many own received; an error leaves none there. False, and
 * the token not asked, if a fill is in progress already or none is wanted: *rv is then untouched.
 */
bool fetch_fill(struct slot *slot, struct pool *pool, CK_SESSION_HANDLE session, uint8_t *own,
                size_t own_bytes, size_t *got_bytes, CK_RV *rv);

/*
 * Gets a request of 1 to POOL_TAKE_MAX bytes from the token at once, without the pool, in calls of a
 * size that the token takes. The code is the token's own for the request as it was made; on any but
 * CKR_OK no token byte is left in buf.
 */
CK_RV fetch_small(struct slot *slot, CK_SESSION_HANDLE session, uint8_t *buf, size_t len_bytes);

/* Gets any length, in calls of at most 1 MiB; NULL and zero are the token's to answer. On any but CKR_OK no
 * token byte is left in buf. slot is only counted for, and may be NULL. */
CK_RV fetch_straight(struct slot *slot, CK_SESSION_HANDLE session, uint8_t *buf,
                     CK_ULONG len_bytes);

#endif
