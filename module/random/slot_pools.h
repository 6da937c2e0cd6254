/* slot_pools.h - the pool of each slot: made when it is first needed, kept for the next life. */
#ifndef P11_PROXY_SLOT_POOLS_H
#define P11_PROXY_SLOT_POOLS_H

#include "state/state.h"

/*
 * The slot's pool; makes it, unless the token has no generator (no CKF_RNG), pools are switched off
 * or cannot be protected. Asks the target for the token's flags the first time. NULL: none, ask the
 * token. Any thread between life_enter() and life_leave(), no lock held.
 */
struct pool *slot_pool(struct slot *slot);

/* At the end of a life: wipes all pools and gives their locked memory back. */
void slot_pools_rest(void);

/* Before state_free(): wipes and unmaps all pools, also those laid aside. */
void slot_pools_free(void);

#endif
