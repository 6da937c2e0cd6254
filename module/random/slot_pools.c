/* slot_pools.c - the pool of each slot. */
#include "random/slot_pools.h"

#include <string.h>

#include "base/clock.h"
#include "random/clones.h"
#include "state/counters.h"
#include "random/manners.h"
#include "state/settings.h"
#include "target/target.h"

static bool token_has_generator(struct slot *slot)
{
    CK_TOKEN_INFO info;
    unsigned pooling = atomic_load(&slot->pooling);
    if (pooling == POOLING_UNKNOWN) {
        if (target.C_GetTokenInfo(slot->id, &info) != CKR_OK)
            return false;
        pooling = (info.flags & CKF_RNG) != 0 ? POOLING_ON : POOLING_OFF;
        atomic_store(&slot->pooling, pooling);
        count_token(slot, info.label);
    }
    return pooling == POOLING_ON;
}

/* One from an earlier life, if it fits the settings. */
static struct pool *spare_pool(const struct pool_settings *pool_settings)
{
    struct pool *pool = NULL;
    lock_acquire(&state->lock);
    if (state->spare_count > 0)
        pool = state->spare_pools[--state->spare_count];
    lock_release(&state->lock);
    if (pool != NULL && !pool_reuse(pool, pool_settings)) {
        pool_free(pool);
        pool = NULL;
    }
    return pool;
}

static void put_aside(struct pool *pool)
{
    pool_rest(pool);
    lock_acquire(&state->lock);
    bool kept = state->spare_count < SLOTS_MAX;
    if (kept)
        state->spare_pools[state->spare_count++] = pool;
    lock_release(&state->lock);
}

struct pool *slot_pool(struct slot *slot)
{
    struct pool *pool = atomic_load(&slot->pool);
    if (!state->pools_permitted || !token_has_generator(slot))
        return NULL;
    if (pool != NULL)
        return pool;

    const struct config *config = settings();
    struct statistics_slot *counted = counters_of(slot);
    struct pool_settings pool_settings = {
        .capacity_bytes = config->pool_size_bytes,
        .max_age_ns = (int64_t)config->pool_max_age_ms * NS_PER_MS,
        .lock_memory = config->pool_lock_memory != CONFIG_LOCK_MEMORY_NEVER,
        .budget = &state->pool_budget,
        .generation = clones_generation(),
        .told = counted != NULL ? &counted->pool : NULL};
    pool = spare_pool(&pool_settings);
    if (pool == NULL && pool_create(&pool, &pool_settings) != 0)
        return NULL;
    struct pool *none = NULL;
    if (!atomic_compare_exchange_strong(&slot->pool, &none, pool)) {
        put_aside(pool);
        pool = none;
    }
    return pool;
}

void slot_pools_rest(void)
{
    for (unsigned i = 0; i < state->slot_count; i++) {
        struct slot *slot = &state->slots[i];
        struct pool *pool = atomic_exchange(&slot->pool, NULL);
        if (pool != NULL)
            put_aside(pool);
        atomic_store(&slot->generation, 0);
        atomic_store(&slot->pooling, POOLING_UNKNOWN);
        atomic_store(&slot->hungry, 0);
        atomic_store(&slot->suspect, SUSPICION_NONE);
        manners_forget(slot);
        slot->so_logged_in = slot->hidden_is_rw = false;
        slot->hidden = slot->one_of_them = CK_INVALID_HANDLE;
        slot->hidden_retry_ns = 0;
    }
}

void slot_pools_free(void)
{
    for (unsigned i = 0; i < state->slot_count; i++)
        pool_free(atomic_exchange(&state->slots[i].pool, NULL));
    while (state->spare_count > 0)
        pool_free(state->spare_pools[--state->spare_count]);
}
