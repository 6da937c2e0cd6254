/* random.c - "Random number generation functions" of the specification.
 *
 * A warm draw: own_C_GenerateRandom() here, state/sessions.c for the slot, common/pool/pool.c for the bytes. A cold
 * draw: the same, then from_token() calls random/source.c, which asks the target and leaves in the pool what the
 * caller does not need; at the end random/filler.c is told.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/copy.h"
#include "base/keep_errno.h"
#include "base/probes.h"
#include "calls/own.h"
#include "random/fill_session.h"
#include "random/filler.h"
#include "random/source.h"
#include "state/counters.h"
#include "state/init_state.h"
#include "state/sessions.h"
#include "state/settings.h"

enum { KERNEL_BLOCK_BYTES = 256 }; /* the kernel never interrupts requests up to this size */

/* x-pool-mix: kernel. XORs buf with getrandom()'s bytes, drawn now: after the token's were fixed, so that a token cannot
 * cancel them. Wipes buf and returns CKR_FUNCTION_FAILED if the kernel gives none. */
__attribute__((noinline)) static CK_RV mix_with_kernel(uint8_t *buf, CK_ULONG len_bytes)
{
    KEEP_ERRNO();
    uint8_t kernel[KERNEL_BLOCK_BYTES];
    CK_RV rv = CKR_OK;
    for (CK_ULONG done = 0; rv == CKR_OK && done < len_bytes;) {
        CK_ULONG left = len_bytes - done;
        ssize_t got = getrandom(kernel, left < sizeof kernel ? left : sizeof kernel, 0);
        if (got == 0 || (got < 0 && errno != EINTR))
            rv = CKR_FUNCTION_FAILED;
        for (ssize_t i = 0; i < got; i++)
            buf[done++] ^= kernel[i];
    }
    wipe_bytes(kernel, sizeof kernel);
    if (rv != CKR_OK)
        wipe_bytes(buf, len_bytes);
    return rv;
}

/* The answer to a request that was answered with rv: mixed, if that is configured and rv is CKR_OK. */
static inline CK_RV mixed(CK_RV rv, uint8_t *buf, CK_ULONG len_bytes)
{
    if (__builtin_expect(settings()->pool_mix == CONFIG_MIX_NONE, 1) || rv != CKR_OK || buf == NULL)
        return rv;
    return mix_with_kernel(buf, len_bytes);
}

/* The slot's pool, made if the settings permit one and the token has a generator. */
static struct pool *pool_of(const struct p11_functions *functions, struct slot *slot)
{
    CK_TOKEN_INFO info;
    if (!settings()->pool)
        return NULL;
    if (atomic_load(&slot->generator) == GENERATOR_UNKNOWN) {
        if (functions->C_GetTokenInfo(slot->id, &info) != CKR_OK)
            return NULL;
        atomic_store(&slot->most_sessions, info.ulMaxSessionCount);
        atomic_store(&slot->generator,
                     (info.flags & CKF_RNG) != 0 ? GENERATOR_PRESENT : GENERATOR_NONE);
        count_token(slot, info.label);
    }
    if (atomic_load(&slot->generator) != GENERATOR_PRESENT)
        return NULL;
    return slot_make_pool(slot, &counters_of(slot)->pool);
}

static CK_RV draw(const struct p11_functions *functions, CK_SESSION_HANDLE handle, uint8_t *buf,
                  CK_ULONG len_bytes, bool small)
{
    handle = fill_session_hide(handle);
    /* The target's generator called this module, perhaps through OpenSSL: going on would recurse without end. */
    if (is_recursive())
        return CKR_FUNCTION_FAILED;
    if (!call_begin())
        return source_forward(functions, NULL, handle, buf, len_bytes);

    struct slot *slot = session_slot(handle);
    unsigned generation = slot != NULL ? atomic_load(&slot->generation) : 0;
    bool failed = slot != NULL && settings()->pool && buf != NULL && len_bytes != 0 &&
                  atomic_load(&slot->health) == HEALTH_FAILED;
    struct pool *pool = !failed && small && slot != NULL ? pool_of(functions, slot) : NULL;
    const struct session *before = session_find(handle);
    bool reads_ahead = pool != NULL && before != NULL &&
                       atomic_load(&before->generation) == atomic_load(&slot->generation);
    CK_RV rv = CKR_DEVICE_ERROR;
    if (pool != NULL)
        rv = source_draw(slot, reads_ahead, handle, buf, len_bytes);
    else if (!failed)
        rv = source_forward(functions, slot, handle, buf, len_bytes);
    struct statistics_slot *counted = counters_of(slot);
    statistic_add(&counted->token_draws, rv == CKR_OK);
    statistic_add(&counted->token_drawn_bytes, rv == CKR_OK ? len_bytes : 0);
    statistic_add(&counted->failed_draws, rv != CKR_OK);
    PROBE(draw__straight, handle, len_bytes, rv);
    if (rv != CKR_OK && !failed)
        session_note_code(handle, rv);
    /* The token has answered for the session: it may be served from the pool again. */
    struct session *session = rv == CKR_OK && slot != NULL ? session_find(handle) : NULL;
    if (session != NULL)
        atomic_store(&session->generation, generation);
    /* Only now: the filler stays away from a slot that is in a call. */
    if (rv == CKR_OK && pool != NULL)
        filler_note_read_ahead(slot);
    call_end();
    return rv;
}

/* Apart, so that a draw from the pool need not make room for what this needs. */
__attribute__((noinline)) static CK_RV from_token(CK_SESSION_HANDLE handle, uint8_t *buf,
                                                  CK_ULONG len_bytes, bool small,
                                                  const struct p11_functions *functions)
{
    int cancellation;
    /* No cancellation between call_begin() and call_end(): otherwise C_Finalize would wait for this call forever. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
    CK_RV rv = mixed(draw(functions, handle, buf, len_bytes, small), buf, len_bytes);
    pthread_setcancelstate(cancellation, &cancellation);
    /* A thread that waits in the token could be cancelled there without this module, and now it can. */
    pthread_testcancel();
    return rv;
}

CK_RV own_C_GenerateRandom(CK_SESSION_HANDLE hSession, CK_BYTE_PTR pRandomData,
                           CK_ULONG ulRandomLen, const struct p11_functions *functions)
{
    /* First, so that nothing else has to be kept over the call. */
    int64_t now_ns = clock_ticks_ns();
    unsigned number = 0;
    bool small = pRandomData != NULL && ulRandomLen - 1 < POOL_TAKE_MAX;
    struct slot *slot = small ? session_pooled_slot(hSession, &number) : NULL;
    struct pool *pool =
        slot != NULL ? atomic_load_explicit(&slot->pool, memory_order_acquire) : NULL;
    if (__builtin_expect(pool != NULL, 1)) {
        enum pool_answer answer =
            pool_take(pool, number % POOL_SLICES, now_ns, pRandomData, ulRandomLen);
        if (__builtin_expect(answer == POOL_SERVED_LOW, 0))
            filler_wants_fill(slot);
        if (__builtin_expect(answer != POOL_MISS, 1))
            return mixed(CKR_OK, pRandomData, ulRandomLen);
    }
    return from_token(hSession, pRandomData, ulRandomLen, small, functions);
}
