/* manners.h - what was learned of how a slot's token takes C_GenerateRandom: sizes, times, moods.
 *
 * All functions: any thread, no lock held. Sizes in bytes, times in nanoseconds of clock_exact_ns().
 */
#ifndef P11_PROXY_MANNERS_H
#define P11_PROXY_MANNERS_H

#include "state/state.h"

/* How much one call of a fill asks for: 1 KiB at first; more while the token takes it and a call stays
 * short, or costs the same whatever its size, up to half a pool, or a whole one where every call is long; less
 * when it was refused. Never less than own_bytes, unless so much was refused: a request must not cost more
 * calls than without us. */
size_t manners_call_bytes(struct slot *slot, size_t own_bytes);

/* How long a fill ahead waits where callers empty the pool faster than the token fills it: as long as a call
 * lasts. 0 where nothing is gained by it, because a call brings no whole pool, or is short. */
int64_t manners_patience_ns(struct slot *slot);

/* False while a token that failed is left alone. */
bool manners_may_fill(struct slot *slot);

/* How a request of len_bytes (up to POOL_TAKE_MAX) is best put when it cannot wait for a fill: as it
 * is, unless that is known to be refused. *most_bytes: no call larger; *least_bytes: none smaller. */
void manners_of(struct slot *slot, size_t len_bytes, size_t *most_bytes, size_t *least_bytes);

/* A call for asked_bytes was taken and lasted took_ns (negative: not timed). */
void manners_taken(struct slot *slot, size_t asked_bytes, int64_t took_ns);

/* A call for asked_bytes was refused and one for less was taken, or may be: ask for less. */
void manners_too_much(struct slot *slot, size_t asked_bytes);

/* A call for asked_bytes was refused although more was taken. taken_bytes is a size that is taken. */
void manners_too_little(struct slot *slot, size_t asked_bytes, size_t taken_bytes);

/* Nothing is taken, the token answers rv: pause before the next fill, twice as long each time, 10 ms to
 * 10 s. A change from well to failing, or back, is logged once. */
void manners_failed(struct slot *slot, CK_RV rv);

/* A fill's size is not taken: the same pause, but the token is not failing. */
void manners_refused(struct slot *slot);

/* True if the last call failed at any size. */
bool manners_is_failing(struct slot *slot);

/* Something happened that may have cured it (a login, a seed): no pause. */
void manners_hope(struct slot *slot);

/* Another token, or another life. */
void manners_forget(struct slot *slot);

/* True if rv may mean that the length was wrong. */
bool manners_is_about_length(CK_RV rv);

#endif
