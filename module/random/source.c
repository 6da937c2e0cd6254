/* source.c - gets random bytes from the slot's token, and tests them. */
#include "random/source.h"

#include "base/clock.h"
#include "base/copy.h"
#include "base/log.h"
#include "base/probes.h"
#include "random/sizing.h"
#include "state/counters.h"
#include "state/init_state.h"
#include "state/sessions.h"
#include "state/settings.h"
#include "target/target.h"

/* There are modules that cut a length to 32 bits, fill the rest of it and say CKR_OK. */
#define FORWARD_CALL_MAX ((CK_ULONG)1024 * 1024)

/* A smaller call saves the application no call of its own. */
enum { LEAST_FILL_BYTES = 64 };

static CK_RV ask(const struct p11_functions *functions, struct slot *slot,
                 CK_SESSION_HANDLE session, uint8_t *buf, CK_ULONG len_bytes)
{
    random_call_begin();
    CK_RV rv = functions->C_GenerateRandom(session, buf, len_bytes);
    random_call_end();
    /* Found only now, because a child that is forked in the target must not count in its parent's memory. */
    struct statistics_slot *counted = counters_of(slot);
    statistic_add(&counted->calls, 1);
    statistic_add(&counted->called_bytes, len_bytes);
    statistic_add(&counted->failed_calls, rv != CKR_OK);
    return rv;
}

/* The token would give nothing now, so what is held from before must not be served either. */
static bool is_refused_to_all(CK_RV rv)
{
    return rv == CKR_USER_NOT_LOGGED_IN || rv == CKR_RANDOM_NO_RNG ||
           rv == CKR_SEED_RANDOM_REQUIRED;
}

/* The code of a failed call tells of something that no other size cures. */
static bool is_about_state(CK_RV rv)
{
    return session_is_gone(rv) || rv == CKR_OPERATION_ACTIVE;
}

/* Tests an answer, and records what the tests say. Returns the code that its caller gets. */
static CK_RV record_health(struct slot *slot, struct health *health, const uint8_t *bytes,
                           size_t len_bytes)
{
    const char *wrong = SAFEGUARD(HEALTH) ? health_test(health, bytes, len_bytes) : NULL;
    unsigned before = atomic_load(&slot->health);
    if (wrong == NULL) {
        /* Only an answer that the same tests can judge clears a suspicion: not a shorter one. */
        if (before == HEALTH_SUSPECT && len_bytes >= atomic_load(&slot->suspect_bytes) &&
            atomic_compare_exchange_strong(&slot->health, &before, HEALTH_OK))
            statistic_set(&counters_of(slot)->trust, HEALTH_OK);
        return before == HEALTH_FAILED ? CKR_DEVICE_ERROR : CKR_OK;
    }
    bool first = before == HEALTH_OK;
    if (first)
        atomic_store(&slot->suspect_bytes, len_bytes);
    atomic_store(&slot->health, first ? HEALTH_SUSPECT : HEALTH_FAILED);
    slot_invalidate(slot, SLOT_HEALTH_ALARM);
    statistic_set(&counters_of(slot)->trust, atomic_load(&slot->health));
    if (before != HEALTH_FAILED)
        log_write(
            first ? LOG_LEVEL_WARNING : LOG_LEVEL_ERROR,
            "slot %lu: the token's random generator %s; %s", slot->id, wrong,
            first
                ? "those bytes are thrown away, and the next ones decide"
                : "no random bytes until C_Finalize, C_GenerateRandom fails with CKR_DEVICE_ERROR");
    return CKR_DEVICE_ERROR;
}

/* A call for bytes that are tested, and after a first alarm another one, which decides. It is for a pool, whose bytes
 * are served through all lists. *took_ns: how long it lasted. */
static CK_RV ask_and_test(struct slot *slot, struct health *health, CK_SESSION_HANDLE session,
                          uint8_t *bytes, size_t len_bytes, int64_t *took_ns)
{
    CK_RV rv = CKR_DEVICE_ERROR;
    for (int tries = 0; tries < 2; tries++) {
        health_prefill(bytes, len_bytes);
        int64_t begun_ns = clock_exact_ns();
        rv = ask(target(), slot, session, bytes, len_bytes);
        *took_ns = clock_exact_ns() - begun_ns;
        if (rv != CKR_OK)
            return rv;
        sizing_accepted(slot, len_bytes, *took_ns);
        rv = record_health(slot, health, bytes, len_bytes);
        if (rv == CKR_OK || atomic_load(&slot->health) == HEALTH_FAILED)
            return rv;
    }
    return rv;
}

/* One fetch for the slot's pool, of which up to len_bytes are the caller's: *got_bytes. False if none is wanted. */
static bool fetch(struct slot *slot, struct pool *pool, CK_SESSION_HANDLE session, uint8_t *buf,
                  size_t len_bytes, size_t *got_bytes, CK_RV *rv)
{
    struct sizes sizes = sizing_read(slot);
    struct pool_fetch fetch;
    int64_t took_ns;
    if (sizes.is_paused ||
        !pool_fetch_begin(pool, sizes.call_bytes, len_bytes, sizes.is_flat, &fetch))
        return false;
    *rv = ask_and_test(slot, pool_health(pool), session, fetch.bytes, fetch.len_bytes, &took_ns);
    PROBE(refill, slot->id, fetch.len_bytes, took_ns, *rv);
    if (*rv != CKR_OK && len_bytes != 0 && atomic_load(&slot->health) == HEALTH_OK &&
        !is_about_state(*rv))
        sizing_failed(slot, fetch.len_bytes);
    *got_bytes = pool_fetch_end(pool, &fetch, *rv == CKR_OK ? fetch.len_bytes : 0, buf, len_bytes);
    return true;
}

/* The request in calls of at most most_bytes, none smaller than least_bytes. */
static CK_RV ask_in_calls(struct slot *slot, struct health *health, CK_SESSION_HANDLE session,
                          uint8_t *buf, size_t len_bytes, size_t most_bytes, size_t least_bytes)
{
    uint8_t bytes[POOL_TAKE_MAX];
    int64_t took_ns;
    CK_RV rv = CKR_OK;
    for (size_t done = 0; rv == CKR_OK && done < len_bytes; done += most_bytes) {
        size_t left = len_bytes - done;
        size_t step = left < most_bytes ? left : most_bytes;
        size_t asked_bytes = step > least_bytes ? step : least_bytes;
        rv = ask_and_test(slot, health, session, bytes, asked_bytes, &took_ns);
        if (rv == CKR_OK)
            memcpy(buf + done, bytes, step);
        wipe_bytes(bytes, asked_bytes);
    }
    return rv;
}

/* A request of that size failed, and a larger one with it or before. Looks for a size that works, from the largest
 * down; only once until something works again, so that a token that refuses all is not asked all for each request. */
static CK_RV ask_in_other_size(struct slot *slot, struct health *health, CK_SESSION_HANDLE session,
                               uint8_t *buf, size_t len_bytes)
{
    uint8_t bytes[POOL_TAKE_MAX];
    CK_RV rv = CKR_FUNCTION_FAILED;
    for (size_t size = sizeof bytes; size >= 8; size /= 2) {
        rv = ask(target(), slot, session, bytes, size);
        wipe_bytes(bytes, size);
        if (rv == CKR_OK) {
            sizing_found(slot, size, len_bytes);
            /* The last one too: the token may refuse less. */
            return ask_in_calls(slot, health, session, buf, len_bytes, size, size);
        }
        sizing_failed(slot, size);
    }
    return rv;
}

/* The request without the pool: as it is, unless the token is known to refuse that. */
static CK_RV ask_as_it_is(struct slot *slot, struct health *health, CK_SESSION_HANDLE session,
                          uint8_t *buf, size_t len_bytes)
{
    struct sizes sizes = sizing_read(slot);
    size_t most_bytes = len_bytes < sizes.limit_bytes ? len_bytes : sizes.call_bytes;
    CK_RV rv = ask_in_calls(slot, health, session, buf, len_bytes, most_bytes, sizes.least_bytes);
    if (rv == CKR_OK || atomic_load(&slot->health) != HEALTH_OK || is_about_state(rv))
        return rv;
    if (is_refused_to_all(rv))
        slot_invalidate(slot, SLOT_DEVICE_ERROR);
    else if (!sizes.is_failing) {
        sizing_failed(slot, len_bytes);
        if (ask_in_other_size(slot, health, session, buf, len_bytes) == CKR_OK)
            return CKR_OK;
    }
    sizing_pause(slot, rv);
    return rv;
}

CK_RV source_draw(struct slot *slot, bool reads_ahead, CK_SESSION_HANDLE session, uint8_t *buf,
                  size_t len_bytes)
{
    /* Read once: in a child that is forked inside the token's call the slot has no pool any more. */
    struct pool *pool = atomic_load(&slot->pool);
    size_t done = 0, got_bytes;
    CK_RV rv = CKR_OK;
    if (atomic_load(&slot->health) == HEALTH_FAILED)
        return CKR_DEVICE_ERROR;
    while (reads_ahead && done < len_bytes &&
           fetch(slot, pool, session, buf + done, len_bytes - done, &got_bytes, &rv) &&
           got_bytes != 0)
        done += got_bytes;
    /* A fetch that failed asked for more than the caller did. What the caller asked for decides, unless the generator
     * has failed meanwhile, perhaps in another thread's call. */
    if (done < len_bytes)
        rv = atomic_load(&slot->health) == HEALTH_FAILED
                 ? CKR_DEVICE_ERROR
                 : ask_as_it_is(slot, pool_health(pool), session, buf + done, len_bytes - done);
    if (rv != CKR_OK)
        wipe_bytes(buf, len_bytes);
    return rv;
}

bool source_fill(struct slot *slot, CK_SESSION_HANDLE session, CK_RV *rv)
{
    size_t got_bytes;
    return sizing_read(slot).call_bytes >= LEAST_FILL_BYTES &&
           atomic_load(&slot->health) != HEALTH_FAILED &&
           fetch(slot, atomic_load(&slot->pool), session, NULL, 0, &got_bytes, rv);
}

CK_RV source_forward(const struct p11_functions *functions, struct slot *slot,
                     CK_SESSION_HANDLE session, uint8_t *buf, CK_ULONG len_bytes)
{
    if (buf == NULL || len_bytes <= FORWARD_CALL_MAX || !settings()->pool)
        return ask(functions, slot, session, buf, len_bytes);
    CK_RV rv = CKR_OK;
    for (CK_ULONG done = 0; rv == CKR_OK && done < len_bytes; done += FORWARD_CALL_MAX) {
        CK_ULONG left = len_bytes - done;
        rv = ask(functions, slot, session, buf + done,
                 left < FORWARD_CALL_MAX ? left : FORWARD_CALL_MAX);
        if (rv != CKR_OK)
            wipe_bytes(buf, done);
    }
    return rv;
}
