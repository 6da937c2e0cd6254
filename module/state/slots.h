/* slots.h - what is known of each slot, and the events that make it invalid; slots.c has the table of these. */
#ifndef P11_PROXY_SLOTS_H
#define P11_PROXY_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cryptoki.h"
#include "pool/pool.h"

enum { SLOTS_MAX = 512 }; /* slots beyond are forwarded, without a pool */

enum slot_generator {
    GENERATOR_UNKNOWN, /* the token was not asked yet */
    GENERATOR_NONE,
    GENERATOR_PRESENT
};

/* Who may be logged in. While the SO is, no read-only session can be opened. */
enum slot_login { NO_LOGIN, LOGIN_OF_USER, LOGIN_OF_SO };

/*
 * A slot's entry stays where it is as long as the module is loaded. The versions are counters: what was
 * learned is kept with the version of that time beside it, and is invalid if the two differ.
 */
struct slot {
    CK_SLOT_ID id;
    unsigned number;             /* index among the slots */
    _Atomic(struct pool *) pool; /* NULL until the first small request */
    atomic_uint
        generation; /* of its sessions; a session of another one is not served from the pool */
    atomic_uint keys_version;    /* of what is known of its keys */
    atomic_uint sizes_version;   /* of what was learned about the token's calls */
    atomic_uint retry_version;   /* moves on when a token that failed may work again */
    atomic_uint generator;       /* enum slot_generator */
    atomic_ulong most_sessions;  /* ulMaxSessionCount, read with generator */
    atomic_uint health;          /* enum health_verdict */
    atomic_size_t suspect_bytes; /* length of the answer that made it suspect */
    atomic_uint login;           /* enum slot_login */
    atomic_uint sessions;        /* the application's, */
    atomic_uint operations;      /* and the operations that they have open */
};

enum slot_event {
    SLOT_SEEDED,
    SLOT_LOGGED_IN, /* or a user may be: the call was on a session that is not known */
    SLOT_SO_LOGGED_IN,
    SLOT_LOGGED_OUT,
    SLOT_LOGIN_FOUND, /* by a call that this module did not see, before now */
    SLOT_SESSION_CLOSED,
    SLOT_LAST_SESSION_CLOSED, /* while a user was logged in */
    SLOT_KEY_CHANGED,         /* destroyed, or an attribute was set */
    SLOT_DEVICE_ERROR, /* or it would give no random bytes now: then none of before are served */
    SLOT_TOKEN_GONE,   /* removed, or perhaps another one */
    SLOT_TOKEN_INITIALIZED,
    SLOT_HEALTH_ALARM,
    SLOT_FINALIZED,
    SLOT_EVENTS
};

/* Drops whatever the event makes invalid, the fetch in flight included: see the table in slots.c, which is the
 * only place that decides this. Any thread, no lock held. */
void slot_invalidate(struct slot *slot, enum slot_event event);

/* The same for all slots. */
void slots_invalidate(enum slot_event event);

/* The event that the token tells of by answering rv, and what it makes invalid. CKR_OK and most codes: nothing;
 * CKR_CRYPTOKI_NOT_INITIALIZED concerns all slots. slot is NULL if not known. */
void slot_note_code(struct slot *slot, CK_RV rv);

/* The slot with that id, NULL if it is not known. Any thread, no lock. */
struct slot *slot_find(CK_SLOT_ID id);

/* The same, made known if it is not; NULL if all entries are used. Any thread. */
struct slot *slot_add(CK_SLOT_ID id);

/* How many slots are known, and each. */
unsigned slots_count(void);
struct slot *slot_at(unsigned number);

/* The slot's pool, made and started if need be; NULL if the settings, memory or the number of pools forbid one.
 * All pools share the configured size equally. counts as for pool_create(). Any thread. */
struct pool *slot_make_pool(struct slot *slot, struct pool_counts *counts);

/* Whether the target was initialised before this module: then a user may be logged in on any slot. */
void slots_assume_login(bool logged_in);

/* At the end of C_Finalize: forgets all slots and stops their pools. No random call is in flight. */
void slots_forget(void);

/* Frees all pools, when the module is unloaded and no thread calls. */
void slots_free(void);

#endif
