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

struct sizes {
    size_t call_bytes;  /* what to ask for in one call */
    size_t limit_bytes; /* calls of so many bytes or more are refused; SIZE_MAX: not known of any */
    size_t
        least_bytes; /* no smaller call is known to work where smaller ones are refused; else 1 */
    int64_t call_ns; /* how long such a call takes at least, as far as is known */
    bool is_flat;    /* it is long, and takes hardly longer than the smallest */
    bool is_failing; /* no size worked when one was looked for, and none has worked since */
    bool is_paused;  /* and for that the token is left alone: no call for the pool now */
};
struct sizes sizing_read(struct slot *slot);

/* A call worked and lasted took_ns. If a larger one failed before, its size was to blame: it is not tried again until
 * C_Finalize or C_InitToken. The next call is larger if this one was short, or hardly longer than the shortest. */
void sizing_accepted(struct slot *slot, size_t asked_bytes, int64_t took_ns);

/* A call failed that may have been too large: the next one is half of it. */
void sizing_failed(struct slot *slot, size_t asked_bytes);

/* A request of request_bytes failed, and a call of works_bytes is the largest power of two that works: the limits on
 * both sides are known. */
void sizing_found(struct slot *slot, size_t works_bytes, size_t request_bytes);

/* No size works, the token answers rv: no call for the pool for a while, twice as long each time, 10 ms to 10 s. Says
 * so in the log, at most once a minute. */
void sizing_pause(struct slot *slot, CK_RV rv);

#endif
