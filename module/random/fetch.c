/* fetch.c - asks the token for random bytes, and gets them in the sizes that it takes. */
#include "random/fetch.h"

#include "base/clock.h"
#include "state/counters.h"
#include "calls/forward.h"
#include "pool/health.h"
#include "random/lifeboat.h"
#include "base/log.h"
#include "random/manners.h"
#include "base/move.h"
#include "random/prefetch.h"
#include "base/probes.h"
#include "base/registers.h"

/* There are modules that cut a length to 32 bits, fill the rest of it and say CKR_OK. */
#define STRAIGHT_CALL_MAX ((CK_ULONG)1024 * 1024)

/* Not for the prefetch's thread: where the loader gives such memory on first use, it takes its lock for that,
 * and whoever unloads us holds that lock and waits for the thread. */
static __thread unsigned depth;

bool fetch_is_under_way(void)
{
    /* That thread comes to us through the target only. */
    return prefetch_is_this_thread() || depth != 0;
}

static CK_RV ask(struct slot *slot, CK_SESSION_HANDLE session, uint8_t *buf, CK_ULONG len_bytes)
{
    CK_RV rv;
    if (prefetch_is_this_thread())
        rv = thread_C_GenerateRandom(session, buf, len_bytes);
    else {
        depth++;
        rv = target.C_GenerateRandom(session, buf, len_bytes);
        depth--;
    }
    registers_forget();
    count_call(slot, len_bytes, rv);
    return rv;
}

/* Bytes of the slot's token were tested. Returns the code that the caller gets for them. */
static CK_RV judge(struct slot *slot, enum health health)
{
    unsigned before = atomic_load(&slot->suspect);
    if (health == HEALTH_GOOD) {
        if (before == SUSPICION_ONE &&
            atomic_compare_exchange_strong(&slot->suspect, &before, SUSPICION_NONE))
            count_suspicion(slot);
        return before == SUSPICION_SURE ? CKR_DEVICE_ERROR : CKR_OK;
    }
    atomic_store(&slot->suspect, before == SUSPICION_NONE ? SUSPICION_ONE : SUSPICION_SURE);
    count_suspicion(slot);
    slot_drop_pool(slot, POOL_DROP_HEALTH);
    if (before != SUSPICION_SURE)
        log_write(
            before == SUSPICION_NONE ? LOG_LEVEL_WARNING : LOG_LEVEL_ERROR,
            "slot %lu: the token's random generator %s; %s", slot->id, health_words(health),
            before == SUSPICION_NONE
                ? "those bytes are thrown away, and the next ones decide"
                : "no random bytes until C_Finalize, C_GenerateRandom fails with CKR_DEVICE_ERROR");
    return CKR_DEVICE_ERROR;
}

/* What is held is older than this answer, and would have been refused with it. */
static bool nobody_gets_any(CK_RV rv)
{
    return rv == CKR_USER_NOT_LOGGED_IN || rv == CKR_RANDOM_NO_RNG ||
           rv == CKR_SEED_RANDOM_REQUIRED;
}

static bool fill_once(struct slot *slot, struct pool *pool, CK_SESSION_HANDLE session, uint8_t *own,
                      size_t own_bytes, size_t *got_bytes, CK_RV *rv)
{
    struct pool_fill fill;
    enum health health;
    if (!pool_fill_begin(pool, manners_call_bytes(slot, own_bytes), own_bytes, &fill))
        return false;
    int64_t begun_ns = clock_exact_ns();
    *rv = ask(slot, session, fill.bytes, fill.len_bytes);
    int64_t took_ns = clock_exact_ns() - begun_ns;
    PROBE(refill, slot->id, fill.len_bytes, took_ns, *rv);
    size_t written_bytes = *rv == CKR_OK ? fill.len_bytes : 0;
    *got_bytes = pool_fill_end(pool, &fill, written_bytes, own, own_bytes, &health);
    if (*rv == CKR_OK) {
        manners_taken(slot, fill.len_bytes, took_ns);
        *rv = judge(slot, health);
    } else if (manners_is_about_length(*rv))
        manners_too_much(slot, fill.len_bytes);
    else if (nobody_gets_any(*rv))
        slot_drop_pool(slot, POOL_DROP_TOKEN);
    return true;
}

bool fetch_fill(struct slot *slot, struct pool *pool, CK_SESSION_HANDLE session, uint8_t *own,
                size_t own_bytes, size_t *got_bytes, CK_RV *rv)
{
    bool asked = fill_once(slot, pool, session, own, own_bytes, got_bytes, rv);
    if (asked && atomic_load(&slot->suspect) == SUSPICION_ONE)
        fill_once(slot, pool, session, own, own_bytes, got_bytes, rv);
    return asked;
}

/* One call for len_bytes, made larger where the token takes no small ones, and tested before buf sees any
 * of it. */
static CK_RV ask_once(struct slot *slot, CK_SESSION_HANDLE session, uint8_t *buf, size_t len_bytes,
                      size_t least_bytes)
{
    uint8_t bytes[POOL_TAKE_MAX];
    size_t asked_bytes =
        len_bytes >= least_bytes || least_bytes > sizeof bytes ? len_bytes : least_bytes;
    health_prefill(bytes, asked_bytes);
    CK_RV rv = ask(slot, session, bytes, asked_bytes);
    if (rv == CKR_OK)
        rv = judge(slot, GUARD(HEALTH) ? health_test(NULL, bytes, asked_bytes) : HEALTH_GOOD);
    if (rv == CKR_OK)
        memcpy(buf, bytes, len_bytes);
    wipe_bytes(bytes, asked_bytes);
    registers_forget();
    return rv;
}

static CK_RV ask_at_least(struct slot *slot, CK_SESSION_HANDLE session, uint8_t *buf,
                          size_t len_bytes, size_t least_bytes)
{
    CK_RV rv = ask_once(slot, session, buf, len_bytes, least_bytes);
    if (rv == CKR_DEVICE_ERROR && atomic_load(&slot->suspect) == SUSPICION_ONE)
        rv = ask_once(slot, session, buf, len_bytes, least_bytes);
    return rv;
}

static CK_RV ask_in_pieces(struct slot *slot, CK_SESSION_HANDLE session, uint8_t *buf,
                           size_t len_bytes, size_t most_bytes, size_t least_bytes)
{
    CK_RV rv = CKR_OK;
    for (size_t done = 0; rv == CKR_OK && done < len_bytes;) {
        size_t left = len_bytes - done;
        size_t piece = left < most_bytes ? left : most_bytes;
        rv = ask_at_least(slot, session, buf + done, piece, least_bytes);
        done += piece;
        if (rv != CKR_OK)
            wipe_bytes(buf, done - piece);
    }
    return rv;
}

/*
 * The token refused a length. Looks for one that it takes, from the largest down. Only once until it
 * takes something again: a token that refuses everything must not be asked eight times for each request.
 */
static CK_RV find_size(struct slot *slot, CK_SESSION_HANDLE session, uint8_t *buf, size_t len_bytes,
                       CK_RV refusal)
{
    for (size_t size = POOL_TAKE_MAX; size >= 8; size /= 2) {
        uint8_t bytes[POOL_TAKE_MAX];
        CK_RV rv = ask(slot, session, bytes, size);
        wipe_bytes(bytes, size);
        if (rv == CKR_OK) {
            manners_taken(slot, size, /* took_ns= */ -1);
            manners_too_little(slot, len_bytes, size);
            return ask_in_pieces(slot, session, buf, len_bytes, size, len_bytes < size ? size : 1);
        }
        if (!manners_is_about_length(rv))
            break;
        manners_too_much(slot, size);
    }
    return refusal;
}

CK_RV fetch_small(struct slot *slot, CK_SESSION_HANDLE session, uint8_t *buf, size_t len_bytes)
{
    size_t most_bytes;
    size_t least_bytes;
    manners_of(slot, len_bytes, &most_bytes, &least_bytes);
    CK_RV rv = ask_in_pieces(slot, session, buf, len_bytes, most_bytes, least_bytes);
    if (manners_is_about_length(rv) && !manners_is_failing(slot))
        rv = find_size(slot, session, buf, len_bytes, rv);
    if (rv == CKR_OK)
        manners_taken(slot, len_bytes, /* took_ns= */ -1);
    return rv;
}

CK_RV fetch_straight(struct slot *slot, CK_SESSION_HANDLE session, uint8_t *buf, CK_ULONG len_bytes)
{
    if (buf == NULL || len_bytes <= STRAIGHT_CALL_MAX)
        return ask(slot, session, buf, len_bytes);
    CK_RV rv = CKR_OK;
    for (CK_ULONG done = 0; rv == CKR_OK && done < len_bytes;) {
        CK_ULONG left = len_bytes - done;
        CK_ULONG piece = left < STRAIGHT_CALL_MAX ? left : STRAIGHT_CALL_MAX;
        rv = ask(slot, session, buf + done, piece);
        if (rv != CKR_OK)
            wipe_bytes(buf, done);
        done += piece;
    }
    return rv;
}
