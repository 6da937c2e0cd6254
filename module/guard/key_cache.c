/* key_cache.c - a small table of what was read of keys; a new key takes the place of an old one. */
#include "guard/key_cache.h"

#include "guard/guard_memo.h"
#include "state/settings.h"
#include "state/state.h"

static struct cached_key *place_of(const struct slot *slot, CK_OBJECT_HANDLE key)
{
    uint64_t mixed = ((uint64_t)key ^ (uint64_t)(uintptr_t)slot) * 0x9E3779B97F4A7C15ULL;
    return &state->keys.keys[mixed >> 32 & (KEY_PLACES - 1)];
}

bool key_cache_get(const struct slot *slot, CK_OBJECT_HANDLE key, struct key_facts *facts,
                   struct key_question *question)
{
    struct key_cache *cache = &state->keys;
    struct cached_key *place = place_of(slot, key);
    lock_acquire(&cache->lock);
    *question = (struct key_question){.changes = cache->changes, .known = cache->changing == 0};
    bool found = cache->changing == 0 && place->slot == slot && place->handle == key &&
                 place->generation == atomic_load(&slot->generation);
    if (found)
        *facts = place->facts;
    lock_release(&cache->lock);
    return found;
}

void key_cache_put(const struct slot *slot, CK_OBJECT_HANDLE key, const struct key_facts *facts,
                   const struct key_question *question)
{
    struct key_cache *cache = &state->keys;
    if (!question->known)
        return;
    lock_acquire(&cache->lock);
    if (cache->changing == 0 && cache->changes == question->changes)
        *place_of(slot, key) = (struct cached_key){.slot = slot,
                                                   .handle = key,
                                                   .generation = atomic_load(&slot->generation),
                                                   .facts = *facts};
    lock_release(&cache->lock);
}

struct key_change key_change_begin(void)
{
    struct key_change change = {.under_way = policy_in_force() != NULL};
    if (change.under_way) {
        lock_acquire(&state->keys.lock);
        state->keys.changing++;
        state->keys.changes++;
        guard_forget();
        lock_release(&state->keys.lock);
    }
    return change;
}

/* Of no slot that is known (NULL): then of all. */
static bool concerns(const struct cached_key *place, const struct slot *slot, CK_OBJECT_HANDLE one)
{
    if (slot != NULL && place->slot != slot)
        return false;
    return one == EVERY_KEY || place->handle == one ||
           (one == KEYS_OF_SESSIONS && !place->facts.on_token);
}

void key_change_end(struct key_change change, const struct slot *slot, CK_OBJECT_HANDLE one)
{
    struct key_cache *cache = &state->keys;
    if (!change.under_way)
        return;
    lock_acquire(&cache->lock);
    guard_forget();
    for (unsigned i = 0; i < KEY_PLACES; i++)
        if (concerns(&cache->keys[i], slot, one))
            cache->keys[i].slot = NULL;
    /* A child that was forked meanwhile finds 0 here. */
    if (cache->changing != 0)
        cache->changing--;
    lock_release(&cache->lock);
}
