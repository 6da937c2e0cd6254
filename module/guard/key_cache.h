/* key_cache.h - remembers key facts, so that the token is asked once for each key and not for each signature.
 *
 * slot_invalidate() moves the slot's versions on; what was remembered under an older version is not believed.
 */
#ifndef P11_PROXY_KEY_CACHE_H
#define P11_PROXY_KEY_CACHE_H

#include "guard/key_facts.h"
#include "state/slots.h"

/* The versions before the token is asked about a key: its answer is remembered under these. */
struct key_cache_ticket {
    unsigned keys;
    unsigned session_keys;
};

/* True with *facts if the key is known. Else *ticket is for key_cache_put(). Any thread. */
bool key_cache_get(const struct slot *slot, CK_OBJECT_HANDLE key, struct key_facts *facts,
                   struct key_cache_ticket *ticket);

/* Remembers an answer. Any thread. */
void key_cache_put(const struct slot *slot, CK_OBJECT_HANDLE key, const struct key_facts *facts,
                   const struct key_cache_ticket *ticket);

/* Once, after memory_map(). */
void key_cache_prepare(void);

#endif
