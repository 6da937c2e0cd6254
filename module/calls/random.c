/* random.c - C_GenerateRandom and C_SeedRandom: from the pool where it may answer, else from the token. */
#include "state/counters.h"
#include "random/fetch.h"
#include "calls/forward.h"
#include "calls/lifecycle.h"
#include "random/manners.h"
#include "random/mix.h"
#include "base/move.h"
#include "random/moves.h"
#include "random/prefetch.h"
#include "base/probes.h"
#include "state/settings.h"
#include "random/uncancelled.h"
#include "random/slot_pools.h"

/* The slot whose pool may answer for the session, NULL if none may. */
static struct slot *pooled_slot(CK_SESSION_HANDLE handle)
{
    struct session *session = session_find(handle);
    if (session == NULL)
        return NULL;
    struct slot *slot = session->slot;
    if (slot == NULL)
        return NULL; /* wiped meanwhile, by a fork in a signal handler */
    unsigned generation = atomic_load_explicit(&session->generation, memory_order_relaxed);
    if (generation != atomic_load_explicit(&slot->generation, memory_order_relaxed) ||
        (session->flags & SESSION_IS_ASYNC) != 0)
        return NULL;
    /* Closed, and the entry given to a session of another slot, while we looked at it? */
    return atomic_load_explicit(&session->handle, memory_order_acquire) == handle ? slot : NULL;
}

/* What the pool could not serve: by fills that take more than was asked for, or by itself. */
static CK_RV fetch_for(struct slot *slot, CK_SESSION_HANDLE handle, uint8_t *buf, size_t len_bytes)
{
    struct pool *pool = slot_pool(slot);
    bool tried = false;
    size_t done = 0;
    CK_RV rv = CKR_OK;
    while (pool != NULL && done < len_bytes && manners_may_fill(slot)) {
        size_t got_bytes = 0;
        if (!fetch_fill(slot, pool, handle, buf + done, len_bytes - done, &got_bytes, &rv))
            break;
        tried = true;
        if (rv != CKR_OK || got_bytes == 0)
            break;
        done += got_bytes;
    }
    if (done < len_bytes && atomic_load(&slot->suspect) != SUSPICION_SURE)
        rv = fetch_small(slot, handle, buf + done, len_bytes - done);
    if (rv != CKR_OK) {
        wipe_bytes(buf, done);
        if (tried && atomic_load(&slot->suspect) != SUSPICION_SURE)
            manners_failed(slot, rv);
    }
    return rv;
}

static CK_RV ask_token(CK_SESSION_HANDLE handle, uint8_t *buf, CK_ULONG len_bytes, bool small)
{
    handle = session_for_target(handle);
    /* The token's generator came back to us, through OpenSSL perhaps: there is no end to that. */
    if (fetch_is_under_way())
        return CKR_FUNCTION_FAILED;
    if (!life_enter())
        return mixed(fetch_straight(NULL, handle, buf, len_bytes), buf, len_bytes);

    struct session *session = session_find(handle);
    struct slot *slot = session != NULL ? session->slot : NULL;
    unsigned generation = slot != NULL ? atomic_load(&slot->generation) : 0;
    CK_RV rv;
    if (slot != NULL && buf != NULL && len_bytes != 0 &&
        atomic_load(&slot->suspect) == SUSPICION_SURE) {
        count_draw(slot, len_bytes, CKR_DEVICE_ERROR);
        life_leave();
        return CKR_DEVICE_ERROR;
    }
    busy_begin(handle);
    if (!small || slot == NULL)
        rv = fetch_straight(slot, handle, buf, len_bytes);
    else if (pooled_slot(handle) == slot)
        rv = fetch_for(slot, handle, buf, len_bytes);
    else
        rv = fetch_small(slot, handle, buf, len_bytes);
    busy_end();
    if (rv != CKR_OK)
        note_answer(handle, rv);
    else if (slot != NULL)
        moves_note_answered(handle, slot, generation);
    /* Not before: the prefetch stays away from a slot that is in a call. */
    if (small && slot != NULL && atomic_load(&slot->pool) != NULL) {
        prefetch_start();
        prefetch_want(slot);
    }
    count_draw(slot, len_bytes, rv);
    PROBE(draw__straight, handle, len_bytes, rv);
    life_leave();
    return mixed(rv, buf, len_bytes);
}

/* Apart, so that a draw from the pool need not make room for what this needs. */
__attribute__((noinline)) static CK_RV from_token(CK_SESSION_HANDLE handle, uint8_t *buf,
                                                  CK_ULONG len_bytes, bool small)
{
    int cancellation = cancellation_off();
    CK_RV rv = ask_token(handle, buf, len_bytes, small);
    cancellation_back(&cancellation);
    /* Where the token waits, a thread could be cancelled without us, and now it can. */
    pthread_testcancel();
    return rv;
}

CK_RV proxy_C_GenerateRandom(CK_SESSION_HANDLE hSession, CK_BYTE_PTR pRandomData,
                             CK_ULONG ulRandomLen)
{
    bool small = pRandomData != NULL && ulRandomLen - 1 < POOL_TAKE_MAX;
    struct slot *slot = small ? pooled_slot(hSession) : NULL;
    struct pool *pool =
        slot != NULL ? atomic_load_explicit(&slot->pool, memory_order_acquire) : NULL;
    if (LIKELY(pool != NULL)) {
        enum pool_answer answer = pool_take(pool, pRandomData, ulRandomLen);
        if (UNLIKELY(answer == POOL_SERVED_LOW))
            prefetch_want(slot);
        if (LIKELY(answer != POOL_MISS))
            return mixed(CKR_OK, pRandomData, ulRandomLen);
    }
    return from_token(hSession, pRandomData, ulRandomLen, small);
}

CK_RV proxy_C_SeedRandom(CK_SESSION_HANDLE hSession, CK_BYTE_PTR pSeed, CK_ULONG ulSeedLen)
{
    UNCANCELLED;
    hSession = session_for_target(hSession);
    busy_begin(hSession);
    CK_RV rv = target.C_SeedRandom(hSession, pSeed, ulSeedLen);
    busy_end();
    struct slot *slot = session_slot(hSession);
    if (slot == NULL)
        return rv;
    if (rv == CKR_OK) {
        manners_hope(slot);
        /* What the token made before must not pass for what it makes now. */
        if (GUARD(SEED) && settings()->pool_on_seed == CONFIG_ON_SEED_FLUSH)
            slot_drop_pool(slot, POOL_DROP_SEED);
    } else
        note_answer(hSession, rv);
    return rv;
}
