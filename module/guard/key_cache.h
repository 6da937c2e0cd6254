/* key_cache.h - remembers key facts, so that the token is asked once for each key and not for each signature. */
#ifndef P11_PROXY_KEY_CACHE_H
#define P11_PROXY_KEY_CACHE_H

#include "guard/key_facts.h"
#include "base/lock.h"

enum { KEY_PLACES = 256 };

struct slot;

struct cached_key {
    const struct slot *slot; /* NULL: free place */
    CK_OBJECT_HANDLE handle;
    unsigned generation; /* the slot's when it was read */
    struct key_facts facts;
};

/* Part of struct state, so a forked child finds it empty. */
struct key_cache {
    struct lock lock;  /* guards what follows */
    unsigned changing; /* calls under way that may change what handles stand for */
    unsigned changes;  /* such calls so far */
    struct cached_key keys[KEY_PLACES];
};

/* Before the token is asked about a key: what is known must not have changed when it has answered. */
struct key_question {
    unsigned changes;
    bool known;
};

/* True with *facts if the key is known. Else *question is for key_cache_put(). Any thread. */
bool key_cache_get(const struct slot *slot, CK_OBJECT_HANDLE key, struct key_facts *facts,
                   struct key_question *question);

/* Remembers an answer, unless keys have changed since the question or are changing. Any thread. */
void key_cache_put(const struct slot *slot, CK_OBJECT_HANDLE key, const struct key_facts *facts,
                   const struct key_question *question);

/*
 * Around a call that may destroy or change keys: nothing is remembered from its begin on, and at its end is
 * forgotten what it may have changed. Without a policy both do nothing. Any thread, no lock held meanwhile.
 */
struct key_change {
    bool under_way;
};

struct key_change key_change_begin(void);
void key_change_end(struct key_change change, const struct slot *slot, CK_OBJECT_HANDLE one);

/* Which keys a change concerns, in the place of one's handle. */
#define EVERY_KEY        (~(CK_OBJECT_HANDLE)0)
#define KEYS_OF_SESSIONS ((CK_OBJECT_HANDLE)0) /* those that end with a session */

#endif
