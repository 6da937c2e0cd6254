/* sizing.h - how large a call for random bytes the slot's token takes, learned from evidence.
 *
 * Evidence is what worked and what did not, and how long it lasted. The code of a failure tells nothing: tokens
 * refuse a length with any code. All functions: any thread, no lock held. Sizes in bytes.
 */
#ifndef P11_PROXY_SIZING_H
#define P11_PROXY_SIZING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cryptoki.h"
#include "state/slots.h"

/* What to ask for in one call; 0 while a token that failed is left alone. */
size_t sizing_call_bytes(struct slot *slot);

/* How a request of len_bytes (up to POOL_TAKE_MAX) is put without the pool: in calls of at most *most_bytes, none
 * smaller than *least_bytes. As it is, unless the token is known to refuse that. */
void sizing_of_request(struct slot *slot, size_t len_bytes, size_t *most_bytes,
                       size_t *least_bytes);

/* A call worked and lasted took_ns (0: not timed). If a larger one failed before, its size was to blame: it is not
 * tried again until C_Finalize. The next call is larger if this one was short, or no longer than the shortest. Unless
 * it was_alone in the slot, a long call tells nothing, because a token that does one thing at a time made it wait. */
void sizing_accepted(struct slot *slot, size_t asked_bytes, int64_t took_ns, bool was_alone);

/* Whether such a call is long, and known to take hardly longer than the smallest. */
bool sizing_is_flat(struct slot *slot);

/* How long such a call takes at least, as far as is known. */
int64_t sizing_call_ns(struct slot *slot);

/* A call failed that may have been too large: the next one is half of it. */
void sizing_failed(struct slot *slot, size_t asked_bytes);

/* A request of request_bytes failed, and a call of works_bytes is the largest power of two that works: the limits on
 * both sides are known. */
void sizing_found(struct slot *slot, size_t works_bytes, size_t request_bytes);

/* No size works, the token answers rv: no call for the pool for a while, twice as long each time, 10 ms to 10 s.
 * Logs that, and that the token works again, once. */
void sizing_pause(struct slot *slot, CK_RV rv);

/* True from sizing_pause() to the next call that works. */
bool sizing_is_failing(struct slot *slot);

#endif
