/* slots.c - the slots, their pools, and what an event makes invalid. */
#include "state/slots.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/safeguard.h"
#include "state/memory.h"
#include "state/settings.h"

struct slots {
    pthread_mutex_t lock; /* guards adding slots and pools */
    atomic_uint count;    /* grows only, until slots_forget() */
    unsigned pools;       /* that share the configured size */
    atomic_bool login_assumed;
    struct slot slots[SLOTS_MAX];
};

static struct slots *state;
IN_WIPED_MEMORY(state, 1)

/* Pools outlast C_Finalize and fork, and are used again. */
static struct pool *made[SLOTS_MAX];

/* What an event makes invalid. The pool is dropped under a cause, and these are forgotten. */
enum {
    KEYS = 1 << 0,      /* what is known of keys */
    SESSIONS = 1 << 1,  /* no session is served until the token has answered for it */
    GENERATOR = 1 << 2, /* whether the token has one */
    SIZES = 1 << 3,     /* what was learned of its calls */
    PAUSE = 1 << 4,     /* a token that failed may be asked again at once */
};
enum { POOL_STAYS = -1, LOGIN_STAYS = -1 };

struct effect {
    int pool; /* enum pool_drop */
    unsigned forgets;
    int login; /* enum slot_login: who is logged in now */
};

/* clang-format off */
static const struct effect effects[SLOT_EVENTS] = {
    /*                            pool                forgets                              login */
    [SLOT_SEEDED]              = {POOL_DROP_SEED,     PAUSE,                               LOGIN_STAYS},
    [SLOT_LOGGED_IN]           = {POOL_DROP_LOGIN,    KEYS | PAUSE,                        LOGIN_OF_USER},
    [SLOT_SO_LOGGED_IN]        = {POOL_DROP_LOGIN,    KEYS | PAUSE,                        LOGIN_OF_SO},
    [SLOT_LOGGED_OUT]          = {POOL_DROP_LOGIN,    KEYS | PAUSE,                        NO_LOGIN},
    [SLOT_LOGIN_FOUND]         = {POOL_STAYS,         0,                                   LOGIN_OF_USER},
    [SLOT_SESSION_CLOSED]      = {POOL_STAYS,         KEYS,                                LOGIN_STAYS},
    [SLOT_LAST_SESSION_CLOSED] = {POOL_DROP_SESSIONS, KEYS | PAUSE,                        NO_LOGIN},
    [SLOT_KEY_CHANGED]         = {POOL_STAYS,         KEYS,                                LOGIN_STAYS},
    [SLOT_DEVICE_ERROR]        = {POOL_DROP_TOKEN,    0,                                   LOGIN_STAYS},
    [SLOT_TOKEN_GONE]          = {POOL_DROP_TOKEN,    KEYS | SESSIONS | GENERATOR,         NO_LOGIN},
    [SLOT_TOKEN_INITIALIZED]   = {POOL_DROP_TOKEN,    KEYS | GENERATOR | SIZES | PAUSE,    NO_LOGIN},
    [SLOT_HEALTH_ALARM]        = {POOL_DROP_HEALTH,   0,                                   LOGIN_STAYS},
    [SLOT_FINALIZED]           = {POOL_DROP_FINALIZE, KEYS | SESSIONS | GENERATOR | SIZES | PAUSE, NO_LOGIN},
};
/* clang-format on */

void slot_invalidate(struct slot *slot, enum slot_event event)
{
    const struct effect *effect = &effects[event];
    struct pool *pool = atomic_load(&slot->pool);
    bool keeps = event == SLOT_SEEDED &&
                 (!SAFEGUARD(SEED) || settings()->pool_on_seed == CONFIG_ON_SEED_KEEP);
    atomic_fetch_add(&slot->generation, (effect->forgets & SESSIONS) != 0);
    atomic_fetch_add(&slot->keys_version, (effect->forgets & KEYS) != 0);
    atomic_fetch_add(&slot->sizes_version, (effect->forgets & SIZES) != 0);
    atomic_fetch_add(&slot->retry_version, (effect->forgets & PAUSE) != 0);
    if ((effect->forgets & GENERATOR) != 0)
        atomic_store(&slot->generator, GENERATOR_UNKNOWN);
    if (effect->login != LOGIN_STAYS)
        atomic_store(&slot->login, (unsigned)effect->login);
    /* Last, so that a fetch that begins after the drop finds all else as it is now. */
    if (effect->pool != POOL_STAYS && pool != NULL && !keeps)
        pool_drop(pool, (enum pool_drop)effect->pool);
}

void slots_invalidate(enum slot_event event)
{
    for (unsigned i = 0; i < slots_count(); i++)
        slot_invalidate(&state->slots[i], event);
}

void slot_note_code(struct slot *slot, CK_RV rv)
{
    /* Another user of the target has finalized it. */
    if (rv == CKR_CRYPTOKI_NOT_INITIALIZED)
        slots_invalidate(SLOT_FINALIZED);
    if (slot == NULL)
        return;
    switch (rv) {
    case CKR_DEVICE_REMOVED:
    case CKR_TOKEN_NOT_PRESENT:
    case CKR_TOKEN_NOT_RECOGNIZED:
    case CKR_SLOT_ID_INVALID:
    /* It was not closed, so its token was removed or reset: many tokens say just that. */
    case CKR_SESSION_CLOSED:
    case CKR_SESSION_HANDLE_INVALID:
        slot_invalidate(slot, SLOT_TOKEN_GONE);
        break;
    case CKR_DEVICE_ERROR:
    case CKR_FIPS_SELF_TEST_FAILED:
        slot_invalidate(slot, SLOT_DEVICE_ERROR);
        break;
    case CKR_USER_ALREADY_LOGGED_IN:
    case CKR_USER_ANOTHER_ALREADY_LOGGED_IN:
        /* Who is known to be logged in still is: it may be the SO. */
        if (atomic_load(&slot->login) == NO_LOGIN)
            slot_invalidate(slot, SLOT_LOGIN_FOUND);
        break;
    default:
        break;
    }
}

unsigned slots_count(void)
{
    return atomic_load_explicit(&state->count, memory_order_acquire);
}

struct slot *slot_at(unsigned number)
{
    return &state->slots[number];
}

struct slot *slot_find(CK_SLOT_ID id)
{
    for (unsigned i = 0; i < slots_count(); i++)
        if (state->slots[i].id == id)
            return &state->slots[i];
    return NULL;
}

struct slot *slot_add(CK_SLOT_ID id)
{
    HOLD(&state->lock);
    struct slot *slot = slot_find(id);
    unsigned count = slots_count();
    if (slot == NULL && count < SLOTS_MAX) {
        slot = &state->slots[count];
        slot->id = id;
        slot->number = count;
        atomic_store(&slot->login, atomic_load(&state->login_assumed) ? LOGIN_OF_USER : NO_LOGIN);
        atomic_store_explicit(&state->count, count + 1, memory_order_release);
    }
    return slot;
}

struct pool *slot_make_pool(struct slot *slot, struct pool_counts *counts)
{
    const struct config *config = settings();
    size_t size_bytes = config->pool_size_bytes;
    struct pool **own = &made[slot->number];
    if (atomic_load(&slot->pool) != NULL || !config->pool || !memory_is_wiped_on_fork())
        return atomic_load(&slot->pool);
    HOLD(&state->lock);
    if (atomic_load(&slot->pool) != NULL || size_bytes / (state->pools + 1) < POOL_TARGET_MIN)
        return atomic_load(&slot->pool);
    /* One of another size is left to the draws that may still read it. */
    if (*own != NULL && pool_capacity(*own) != size_bytes)
        *own = NULL;
    if (*own == NULL && pool_create(own, size_bytes, counts) != 0)
        return NULL;
    pool_start(*own, (int64_t)config->pool_max_age_ms * NS_PER_MS,
               config->pool_lock_memory != CONFIG_LOCK_MEMORY_NEVER);
    atomic_store(&slot->pool, *own);
    state->pools++;
    for (unsigned i = 0; i < slots_count(); i++)
        if (atomic_load(&state->slots[i].pool) != NULL)
            pool_limit(atomic_load(&state->slots[i].pool), size_bytes / state->pools);
    return *own;
}

void slots_assume_login(bool logged_in)
{
    atomic_store(&state->login_assumed, logged_in);
}

void slots_forget(void)
{
    slots_invalidate(SLOT_FINALIZED);
    HOLD(&state->lock);
    for (unsigned i = 0; i < slots_count(); i++) {
        struct slot *slot = &state->slots[i];
        struct pool *pool = atomic_exchange(&slot->pool, NULL);
        if (pool != NULL)
            pool_stop(pool);
        atomic_store(&slot->health, HEALTH_OK);
        atomic_store(&slot->operations, 0);
    }
    atomic_store(&state->count, 0);
    state->pools = 0;
}

void slots_free(void)
{
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        pool_free(made[i]);
}
