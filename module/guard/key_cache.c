/* key_cache.c - a small table of what was read of keys; a new key takes the place of an old one. */
#include "guard/key_cache.h"

#include <pthread.h>

#include "state/memory.h"

enum { PLACES = 256 };

static struct key_cache {
    pthread_mutex_t lock; /* guards the places */
    struct cached_key {
        const struct slot *slot; /* NULL: free place */
        CK_OBJECT_HANDLE handle;
        unsigned version; /* the slot's keys_version, or session_keys_version for a session object */
        struct key_facts facts;
    } keys[PLACES];
} *cache;

void key_cache_prepare(void)
{
    cache = memory_part(sizeof *cache);
}

static struct cached_key *place_of(const struct slot *slot, CK_OBJECT_HANDLE key)
{
    uint64_t mixed = ((uint64_t)key ^ (uint64_t)(uintptr_t)slot) * 0x9E3779B97F4A7C15ULL;
    return &cache->keys[mixed >> 32 & (PLACES - 1)];
}

bool key_cache_get(const struct slot *slot, CK_OBJECT_HANDLE key, struct key_facts *facts,
                   struct key_cache_ticket *ticket)
{
    struct cached_key *place = place_of(slot, key);
    *ticket = (struct key_cache_ticket){atomic_load(&slot->keys_version),
                                        atomic_load(&slot->session_keys_version)};
    pthread_mutex_lock(&cache->lock);
    bool found = place->slot == slot && place->handle == key &&
                 place->version == (place->facts.on_token ? ticket->keys : ticket->session_keys);
    if (found)
        *facts = place->facts;
    pthread_mutex_unlock(&cache->lock);
    return found;
}

void key_cache_put(const struct slot *slot, CK_OBJECT_HANDLE key, const struct key_facts *facts,
                   const struct key_cache_ticket *ticket)
{
    pthread_mutex_lock(&cache->lock);
    *place_of(slot, key) =
        (struct cached_key){.slot = slot,
                            .handle = key,
                            .version = facts->on_token ? ticket->keys : ticket->session_keys,
                            .facts = *facts};
    pthread_mutex_unlock(&cache->lock);
}
