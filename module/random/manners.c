/* manners.c - what was learned of how a slot's token takes C_GenerateRandom. */
#include "random/manners.h"

#include "base/clock.h"
#include "state/counters.h"
#include "base/log.h"
#include "state/settings.h"

enum {
    FIRST_CALL_BYTES = 1024,
    LEAST_CALL_BYTES = 8,      /* there are tokens that refuse less */
    LONG_CALLS_TO_SHRINK = 2,  /* one may be due to a machine that was busy */
    SHORT_CALLS_TO_FORGET = 64 /* and even two in a row come once in a long life */
};

/* A longer call keeps the application's other calls to a serial token waiting. */
static const int64_t SHORT_CALL_NS = 5 * NS_PER_MS;
static const int64_t FIRST_PAUSE_NS = 10 * NS_PER_MS;
static const int64_t LONGEST_PAUSE_NS = 10 * NS_PER_S;

/* Waiting for less than that takes longer than planned, and the wait is as long as the gain. */
static const int64_t WORTH_WAITING_NS = NS_PER_MS / 5;

/* A whole pool, by a call that is long whatever its size. A short one is soon repeated, and a caller who needs a
 * few bytes at once would wait for all of it. */
static size_t most_call_bytes(int64_t call_ns)
{
    size_t pool_bytes = settings()->pool_size_bytes;
    return call_ns >= WORTH_WAITING_NS ? pool_bytes : pool_bytes / 2;
}

size_t manners_call_bytes(struct slot *slot, size_t own_bytes)
{
    lock_acquire(&slot->manners_lock);
    struct token_manners *m = &slot->manners;
    if (m->call_bytes == 0)
        m->call_bytes = FIRST_CALL_BYTES;
    size_t call_bytes = m->call_bytes;
    if (call_bytes < own_bytes && (m->refused_bytes == 0 || own_bytes < m->refused_bytes))
        call_bytes = own_bytes;
    lock_release(&slot->manners_lock);
    return call_bytes;
}

bool manners_may_fill(struct slot *slot)
{
    lock_acquire(&slot->manners_lock);
    int64_t retry_at_ns = slot->manners.retry_at_ns;
    lock_release(&slot->manners_lock);
    return retry_at_ns == 0 || clock_exact_ns() >= retry_at_ns;
}

void manners_of(struct slot *slot, size_t len_bytes, size_t *most_bytes, size_t *least_bytes)
{
    lock_acquire(&slot->manners_lock);
    struct token_manners *m = &slot->manners;
    *most_bytes =
        m->refused_bytes != 0 && len_bytes >= m->refused_bytes ? m->call_bytes : len_bytes;
    *least_bytes = m->least_bytes != 0 ? m->least_bytes : 1;
    lock_release(&slot->manners_lock);
}

/* Notes a time. One call may have met a busy machine; the shorter of two is believed. */
static void note_time_locked(struct token_manners *m, size_t asked_bytes, int64_t took_ns)
{
    if (m->small_bytes == 0 || asked_bytes < m->small_bytes) {
        m->larger_ns = m->small_ns;
        m->small_bytes = asked_bytes;
        m->small_ns = took_ns;
        m->small_calls = 1;
    } else if (asked_bytes == m->small_bytes) {
        m->small_ns = took_ns < m->small_ns ? took_ns : m->small_ns;
        m->small_calls = 2;
    }
}

/* Whether calls of different size last about the same: then it is the call that costs, not the bytes. */
static bool is_flat_locked(const struct token_manners *m, size_t asked_bytes, int64_t took_ns)
{
    int64_t larger_ns = asked_bytes > m->small_bytes ? took_ns : m->larger_ns;
    return larger_ns != 0 && larger_ns <= m->small_ns + m->small_ns / 4;
}

/* By two steps where not even those can make a call long: from a size that was timed, never from a guess. */
static void grow_locked(struct token_manners *m, size_t asked_bytes, bool by_two_steps)
{
    size_t most = asked_bytes * (by_two_steps ? 4 : 2);
    size_t most_useful = most_call_bytes(m->last_ns);
    if (most > most_useful)
        most = most_useful;
    if (m->call_bytes > most_useful)
        m->call_bytes /= 2;
    /* All of it may be wiped meanwhile, by a fork in a signal handler. */
    for (size_t twice = m->call_bytes * 2; twice != 0 && twice <= most; twice = m->call_bytes * 2) {
        if ((m->refused_bytes != 0 && twice >= m->refused_bytes) ||
            (m->long_bytes != 0 && twice >= m->long_bytes))
            break;
        m->call_bytes = twice;
    }
}

static void shrink_locked(struct token_manners *m, size_t asked_bytes)
{
    m->long_in_a_row = m->short_in_a_row = 0;
    m->call_bytes /= 2;
    if (asked_bytes <= m->small_bytes)
        return;
    m->long_bytes = asked_bytes;
    /* It grew because it was no slower than a smaller one. If that was slow by chance, time it anew. */
    if (m->small_calls == 1)
        m->small_bytes = m->small_ns = 0;
}

static void learn_time_locked(struct token_manners *m, size_t asked_bytes, int64_t took_ns)
{
    bool of_this_size = asked_bytes > m->call_bytes / 2; /* the pool may have had no more room */
    size_t least = m->least_bytes > LEAST_CALL_BYTES ? m->least_bytes : LEAST_CALL_BYTES;
    note_time_locked(m, asked_bytes, took_ns);
    if (!of_this_size)
        return;
    m->last_ns = took_ns;
    bool flat = is_flat_locked(m, asked_bytes, took_ns);
    if (flat || took_ns <= SHORT_CALL_NS) {
        bool is_bounded = m->long_bytes != 0;
        m->long_in_a_row = 0;
        if (is_bounded && ++m->short_in_a_row >= SHORT_CALLS_TO_FORGET)
            m->long_bytes = m->short_in_a_row = 0;
        grow_locked(m, asked_bytes, !is_bounded && (flat || took_ns <= SHORT_CALL_NS / 4));
    } else if (asked_bytes <= m->call_bytes && m->call_bytes / 2 >= least) {
        /* Long: by its size, or by itself? If none was smaller yet, a call of half the size tells. */
        if (asked_bytes <= m->small_bytes || ++m->long_in_a_row >= LONG_CALLS_TO_SHRINK)
            shrink_locked(m, asked_bytes);
    }
}

int64_t manners_patience_ns(struct slot *slot)
{
    lock_acquire(&slot->manners_lock);
    const struct token_manners *m = &slot->manners;
    bool is_whole = m->call_bytes > most_call_bytes(/* call_ns= */ 0);
    int64_t last_ns = m->last_ns;
    lock_release(&slot->manners_lock);
    return is_whole && last_ns >= WORTH_WAITING_NS ? last_ns : 0;
}

void manners_taken(struct slot *slot, size_t asked_bytes, int64_t took_ns)
{
    lock_acquire(&slot->manners_lock);
    struct token_manners *m = &slot->manners;
    bool was_failing = m->failing;
    m->failing = false;
    m->retry_at_ns = m->pause_ns = 0;
    if (took_ns >= 0 && asked_bytes >= LEAST_CALL_BYTES)
        learn_time_locked(m, asked_bytes, took_ns);
    count_time_locked(slot, asked_bytes, took_ns);
    lock_release(&slot->manners_lock);
    if (was_failing)
        log_write(LOG_LEVEL_WARNING, "slot %lu: the token gives random bytes again", slot->id);
}

void manners_too_much(struct slot *slot, size_t asked_bytes)
{
    lock_acquire(&slot->manners_lock);
    struct token_manners *m = &slot->manners;
    if (m->refused_bytes == 0 || asked_bytes < m->refused_bytes)
        m->refused_bytes = asked_bytes;
    if (m->call_bytes >= asked_bytes && asked_bytes / 2 >= LEAST_CALL_BYTES)
        m->call_bytes = asked_bytes / 2;
    lock_release(&slot->manners_lock);
}

void manners_too_little(struct slot *slot, size_t asked_bytes, size_t taken_bytes)
{
    lock_acquire(&slot->manners_lock);
    struct token_manners *m = &slot->manners;
    if (asked_bytes < taken_bytes && m->least_bytes <= asked_bytes)
        m->least_bytes = taken_bytes;
    if (m->call_bytes < taken_bytes)
        m->call_bytes = taken_bytes;
    lock_release(&slot->manners_lock);
}

static void pause_locked(struct token_manners *m)
{
    int64_t pause_ns = m->pause_ns == 0 ? FIRST_PAUSE_NS : m->pause_ns * 2;
    m->pause_ns = pause_ns < LONGEST_PAUSE_NS ? pause_ns : LONGEST_PAUSE_NS;
    m->retry_at_ns = clock_exact_ns() + m->pause_ns;
}

void manners_refused(struct slot *slot)
{
    lock_acquire(&slot->manners_lock);
    pause_locked(&slot->manners);
    lock_release(&slot->manners_lock);
}

void manners_failed(struct slot *slot, CK_RV rv)
{
    lock_acquire(&slot->manners_lock);
    struct token_manners *m = &slot->manners;
    bool was_failing = m->failing;
    pause_locked(m);
    m->failing = true;
    lock_release(&slot->manners_lock);
    if (!was_failing)
        log_write(LOG_LEVEL_WARNING, "slot %lu: the token gives no random bytes, code 0x%lx",
                  slot->id, rv);
}

bool manners_is_failing(struct slot *slot)
{
    lock_acquire(&slot->manners_lock);
    bool failing = slot->manners.failing;
    lock_release(&slot->manners_lock);
    return failing;
}

void manners_hope(struct slot *slot)
{
    lock_acquire(&slot->manners_lock);
    slot->manners.retry_at_ns = slot->manners.pause_ns = 0;
    lock_release(&slot->manners_lock);
}

void manners_forget(struct slot *slot)
{
    lock_acquire(&slot->manners_lock);
    slot->manners = (struct token_manners){0};
    lock_release(&slot->manners_lock);
}

bool manners_is_about_length(CK_RV rv)
{
    return rv == CKR_ARGUMENTS_BAD || rv == CKR_DATA_LEN_RANGE || rv == CKR_DATA_INVALID;
}
