/* pool.c - serves random bytes that a token made earlier: slices, epochs, age and demand. */
#include "pool/pool_internal.h"

#include <errno.h>

#include "base/clock.h"
#include "base/probes.h"
#include "base/wipeonfork.h"

/* Tests define this hook. It runs between a copy and the check of the epoch after it; in the module it is empty. */
#ifndef POOL_TEST_HOOK
#define POOL_TEST_HOOK(p)
#endif

enum { KIB = 1024, LOCK_TRIES = 1000 };

static const int64_t CLOCK_STEP_NS = 100 * NS_PER_MS;

/* How much a slice holds at most: all of them a quarter of the target. */
static size_t slice_bytes_locked(const struct pool *p)
{
    size_t bytes = min_size(p->memory->target_bytes / 4 / POOL_SLICES, SLICE_BYTES);
    return bytes < SLICE_MIN ? 0 : bytes;
}

/* What the ring is to hold beside the slices. */
static size_t ring_target_locked(const struct pool *p)
{
    const struct pool_memory *m = p->memory;
    return m->target_bytes - min_size(m->in_slices, m->target_bytes / 4);
}

/* The low-water mark, three quarters of what the ring is to hold: the filler is woken while there is still enough for
 * draws to go on until it has filled. */
static bool is_low_locked(const struct pool *p)
{
    return p->memory->ring.held_bytes < ring_target_locked(p) / 4 * 3;
}

static bool is_too_old_locked(const struct pool_memory *m, int64_t fetched_ns, int64_t now_ns)
{
    /* A clock that went back proves nothing about age. */
    return SAFEGUARD(AGE) && (now_ns < fetched_ns || now_ns - fetched_ns > m->max_age_ns);
}

/* Makes bytes that are held or on their way unusable, unless the pool is stopped. */
static void next_epoch_locked(struct pool *p)
{
    struct pool_memory *m = p->memory;
    if (atomic_load(&m->epoch) != 0)
        atomic_store(&m->epoch, ++m->last_epoch);
}

static void set_target_locked(struct pool *p, size_t target_bytes)
{
    p->memory->target_bytes = min_size(target_bytes, p->memory->most_bytes);
    p->counts->level_bytes = p->memory->target_bytes;
}

static void drop_locked(struct pool *p, enum pool_drop cause)
{
    struct pool_memory *m = p->memory;
    PROBE(drop, cause, m->ring.held_bytes);
    next_epoch_locked(p);
    p->counts->dropped_bytes += ring_shrink(&p->ring, 0);
    p->counts->drops[cause]++;
    /* After a failed health test demand is kept, because the next answer, which decides, has to be as long. */
    if (cause == POOL_DROP_HEALTH)
        return;
    m->served_lately = 0;
    set_target_locked(p, POOL_TARGET_MIN);
}

/* Wipes what is too old, and all if a clock stepped. Returns the time. */
static int64_t expire_locked(struct pool *p)
{
    struct pool_memory *m = p->memory;
    /* Read under the lock, so no other thread has seen a later one. */
    int64_t now_ns = clock_ticks_ns();
    bool went_back = now_ns < m->seen_ns;
    m->seen_ns = now_ns;
    for (; now_ns - m->halved_ns >= NS_PER_S && m->served_lately != 0; m->halved_ns += NS_PER_S)
        m->served_lately /= 2;
    if (m->served_lately == 0)
        m->halved_ns = now_ns;
    const struct segment *oldest = ring_oldest(&p->ring);
    for (; oldest != NULL && is_too_old_locked(m, oldest->fetched_ns, now_ns);
         oldest = ring_oldest(&p->ring))
        p->counts->expired_bytes += ring_drop_oldest(&p->ring);

    int64_t offset_ns = clock_offset_ns();
    int64_t step_ns = offset_ns - m->clock_offset_ns;
    bool stepped = went_back || step_ns > CLOCK_STEP_NS || step_ns < -CLOCK_STEP_NS;
    if (!stepped || atomic_load(&m->epoch) == 0)
        return now_ns;
    /* This may be the second process of one memory image, and the first may have served the same bytes. */
    m->clock_offset_ns = offset_ns;
    if (wipeonfork_reassert(m, p->mapped_bytes) != 0)
        atomic_store(&m->epoch, 0);
    drop_locked(p, POOL_DROP_CLOCK);
    return now_ns;
}

/* Whether bytes that came in at that epoch, which was not 0, may be served now. */
static inline bool is_intact(const struct pool *p, uint64_t epoch)
{
    return atomic_load_explicit(&p->memory->epoch, memory_order_acquire) == epoch;
}

/* After a copy of bytes that came in at that epoch: counts them as drawn. False, and wiped, if they were dropped or the
 * address space was copied meanwhile; after a copy that was made just before, both epochs are 0. */
static inline bool end_draw(const struct pool *p, uint64_t epoch, struct pool_line *line,
                            uint8_t *buf, size_t len_bytes)
{
    POOL_TEST_HOOK(p);
    if (SAFEGUARD(POST_COPY) && (epoch == 0 || !is_intact(p, epoch))) {
        wipe_bytes(buf, len_bytes);
        return false;
    }
    uint64_t draws = atomic_load_explicit(&line->draws, memory_order_relaxed);
    uint64_t bytes = atomic_load_explicit(&line->drawn_bytes, memory_order_relaxed);
    atomic_store_explicit(&line->draws, draws + 1, memory_order_relaxed);
    atomic_store_explicit(&line->drawn_bytes, bytes + len_bytes, memory_order_relaxed);
    return true;
}

static void set_share_locked(struct pool *p, struct slice *s, size_t share_bytes)
{
    p->memory->in_slices += share_bytes - s->share_bytes;
    s->share_bytes = share_bytes;
}

/* Expects the slice's lock held too. */
static void wipe_if_stale_locked(struct pool *p, struct slice *s, int64_t now_ns)
{
    struct pool_memory *m = p->memory;
    size_t held = s->end - s->next;
    bool dropped = s->epoch != atomic_load(&m->epoch);
    if (held != 0 && !dropped && !is_too_old_locked(m, s->fetched_ns, now_ns))
        return;
    *(dropped ? &p->counts->dropped_bytes : &p->counts->expired_bytes) += held;
    wipe_bytes(s->bytes + s->next, held);
    s->next = s->end = 0;
    set_share_locked(p, s, 0);
}

/* Wipes what slices hold that was dropped or is too old. waits: for the slices that threads draw from just now, which
 * are left alone otherwise. Expects no lock held, or only that of a slice if it does not wait. */
static void wipe_stale_slices(struct pool *p, bool waits)
{
    struct pool_memory *m = p->memory;
    for (unsigned i = 0; i < POOL_SLICES; i++) {
        struct slice *s = &m->slices[i];
        /* The lock of a slice that was never used lies in a page that was never touched. */
        if (atomic_load(&s->share_bytes) == 0)
            continue;
        if (waits)
            try_lock_wait(&s->lock);
        else if (!try_lock_acquire(&s->lock))
            continue;
        pthread_mutex_lock(&m->lock);
        wipe_if_stale_locked(p, s, clock_ticks_ns());
        pthread_mutex_unlock(&m->lock);
        try_lock_release(&s->lock);
    }
}

/* Takes bytes off the ring for the slice: how many, 0 if that would not make len_bytes. They come from one segment, so
 * that the slice's time is exact. */
static size_t take_for_slice_locked(struct pool *p, struct slice *s, size_t len_bytes,
                                    uint8_t **bytes)
{
    struct pool_memory *m = p->memory;
    size_t kept = s->end - s->next;
    size_t slice_bytes = slice_bytes_locked(p);
    size_t more = slice_bytes > kept ? slice_bytes - kept : 0;
    const struct segment *oldest = ring_oldest(&p->ring);
    more = oldest != NULL ? min_size(more, segment_bytes(oldest)) : 0;
    if (more == 0 || kept + more < len_bytes)
        return 0;
    if (kept == 0 || oldest->fetched_ns < s->fetched_ns)
        s->fetched_ns = oldest->fetched_ns;
    *bytes = ring_take(&p->ring, more);
    m->served_lately += more;
    s->epoch = atomic_load(&m->epoch);
    set_share_locked(p, s, kept + more);
    return more;
}

/* Moves what was taken off the ring behind the bytes that the slice holds. Without the pool's lock, because other
 * threads would wait for it longer than for anything else that is done under it. */
static void append_to_slice(struct pool *p, struct slice *s, uint8_t *bytes, size_t len_bytes)
{
    size_t kept = s->end - s->next;
    if (kept != 0 && s->next != 0) {
        size_t stale = s->next > kept ? s->next : kept;
        memmove(s->bytes, s->bytes + s->next, kept);
        wipe_bytes(s->bytes + stale, s->end - stale);
    }
    copy_and_wipe(s->bytes + kept, bytes, len_bytes);
    ring_taken(&p->ring);
    s->next = 0;
    s->end = (uint32_t)(kept + len_bytes);
}

/* Tries for as long as another draw may hold the lock. To sleep and be woken would cost more than a hundred draws. */
static void lock_for_draw(pthread_mutex_t *lock)
{
    for (int tries = 0; tries < LOCK_TRIES; tries++)
        if (pthread_mutex_trylock(lock) == 0)
            return;
    pthread_mutex_lock(lock);
}

/* Makes s hold at least len_bytes that may be served now, if the ring can. Apart from pool_take(), because most
 * draws do not need it. */
__attribute__((noinline)) static bool prepare_slice_locked(struct pool *p, struct slice *s,
                                                           size_t len_bytes, bool *low)
{
    struct pool_memory *m = p->memory;
    uint8_t *bytes;
    size_t taken = 0;
    lock_for_draw(&m->lock);
    uint64_t expired_bytes = p->counts->expired_bytes;
    s->checked_ns = expire_locked(p);
    wipe_if_stale_locked(p, s, s->checked_ns);
    bool expired = p->counts->expired_bytes != expired_bytes;
    if (s->end - s->next < len_bytes && atomic_load(&m->epoch) != 0)
        taken = take_for_slice_locked(p, s, len_bytes, &bytes);
    *low = is_low_locked(p);
    pthread_mutex_unlock(&m->lock);
    if (taken != 0)
        append_to_slice(p, s, bytes, taken);
    /* Other threads may not come back for what is too old by now. */
    if (expired)
        wipe_stale_slices(p, /* waits= */ false);
    return s->end - s->next >= len_bytes;
}

static inline enum pool_answer take_from_slice_locked(struct pool *p, struct slice *s,
                                                      struct pool_line *line, int64_t now_ns,
                                                      uint8_t *buf, size_t len_bytes)
{
    bool low = false;
    if (s->end - s->next < len_bytes || now_ns != s->checked_ns || !is_intact(p, s->epoch)) {
        if (!prepare_slice_locked(p, s, len_bytes, &low))
            return POOL_MISS;
    }
    uint64_t epoch = s->epoch;
    copy_and_wipe(buf, s->bytes + s->next, len_bytes);
    s->next += (uint32_t)len_bytes;
    if (!end_draw(p, epoch, line, buf, len_bytes)) {
        HOLD(&p->memory->lock);
        p->counts->dropped_bytes += len_bytes;
        return POOL_MISS;
    }
    return low ? POOL_SERVED_LOW : POOL_SERVED;
}

__attribute__((noinline)) static enum pool_answer take_from_ring(struct pool *p, uint8_t *buf,
                                                                 size_t len_bytes)
{
    struct pool_memory *m = p->memory;
    enum pool_answer answer = POOL_MISS;
    lock_for_draw(&m->lock);
    expire_locked(p);
    uint64_t epoch = atomic_load(&m->epoch);
    if (epoch != 0 && m->ring.held_bytes >= len_bytes) {
        ring_move(&p->ring, buf, len_bytes);
        m->served_lately += len_bytes;
        if (end_draw(p, epoch, &p->counts->lines[POOL_SLICES], buf, len_bytes))
            answer = is_low_locked(p) ? POOL_SERVED_LOW : POOL_SERVED;
        else
            p->counts->dropped_bytes += len_bytes;
    }
    pthread_mutex_unlock(&m->lock);
    return answer;
}

enum pool_answer pool_take(struct pool *p, unsigned slice, int64_t now_ns, uint8_t *buf,
                           size_t len_bytes)
{
    struct slice *s = &p->memory->slices[slice];
    if (len_bytes <= SLICE_TAKE_MAX && (!SAFEGUARD(LOCK) || try_lock_acquire(&s->lock))) {
        enum pool_answer answer =
            take_from_slice_locked(p, s, &p->counts->lines[slice], now_ns, buf, len_bytes);
        try_lock_release(&s->lock);
        if (answer != POOL_MISS)
            return answer;
    }
    return take_from_ring(p, buf, len_bytes);
}

/* How much to ask for: what is missing, in whole KiB as far as the target, the limit and most_bytes leave room. */
static size_t wanted_locked(const struct pool *p, size_t caller_bytes, size_t most_bytes)
{
    const struct pool_memory *m = p->memory;
    size_t held = m->ring.held_bytes;
    size_t target = ring_target_locked(p);
    size_t full = held + m->in_slices;
    size_t room = m->most_bytes > full ? m->most_bytes - full : 0;
    if (caller_bytes == 0 && !is_low_locked(p))
        return 0;
    size_t wanted = (target > held ? target - held : 0) + caller_bytes;
    wanted = min_size((wanted + KIB - 1) / KIB * KIB, m->target_bytes);
    return min_size(min_size(wanted, room + caller_bytes), most_bytes);
}

bool pool_fetch_begin(struct pool *p, size_t most_bytes, size_t caller_bytes, bool fills_up,
                      struct pool_fetch *fetch)
{
    struct pool_memory *m = p->memory;
    HOLD(&m->lock);
    /* Before the token is asked, so no byte is younger than it claims. */
    int64_t now_ns = expire_locked(p);
    if (caller_bytes != 0) {
        p->counts->missed_draws++;
        m->served_lately += caller_bytes;
    }
    /* Twice what was served lately, in whole KiB; not less than now as long as that is in demand. */
    size_t target = (2 * m->served_lately + KIB - 1) / KIB * KIB;
    target = target > POOL_TARGET_MIN ? target : POOL_TARGET_MIN;
    bool all = fills_up && m->served_lately > caller_bytes;
    set_target_locked(p, all ? m->most_bytes : target);
    size_t wanted = wanted_locked(p, caller_bytes, most_bytes);
    *fetch = (struct pool_fetch){.epoch = atomic_load(&m->epoch), .fetched_ns = now_ns};
    if (fetch->epoch != 0)
        fetch->bytes =
            ring_open(&p->ring, min_size(caller_bytes, wanted), wanted, &fetch->len_bytes);
    return fetch->bytes != NULL;
}

size_t pool_fetch_end(struct pool *p, struct pool_fetch *fetch, size_t good_bytes,
                      uint8_t *caller_buf, size_t caller_bytes)
{
    struct pool_memory *m = p->memory;
    caller_bytes = min_size(caller_bytes, good_bytes);
    size_t kept_bytes = good_bytes - caller_bytes;
    wipe_bytes(fetch->bytes + good_bytes, fetch->len_bytes - good_bytes);
    /* The caller gets the last ones, because in front of the others they would leave a gap in the ring. */
    if (caller_bytes != 0)
        copy_and_wipe(caller_buf, fetch->bytes + kept_bytes, caller_bytes);

    HOLD(&m->lock);
    uint64_t epoch = atomic_load(&m->epoch);
    if (epoch != fetch->epoch) {
        wipe_bytes(fetch->bytes, kept_bytes);
        kept_bytes = 0;
    }
    ring_close(&p->ring, kept_bytes, fetch->fetched_ns);
    p->counts->fills += kept_bytes != 0;
    p->counts->filled_bytes += kept_bytes;
    /* Forked since: what was copied may be what the kernel left there, zeros. */
    if (epoch == 0 && caller_bytes != 0) {
        wipe_bytes(caller_buf, caller_bytes);
        return 0;
    }
    return caller_bytes;
}

bool pool_is_low(struct pool *p)
{
    HOLD(&p->memory->lock);
    expire_locked(p);
    return is_low_locked(p);
}

void pool_drop(struct pool *p, enum pool_drop cause)
{
    pthread_mutex_lock(&p->memory->lock);
    drop_locked(p, cause);
    pthread_mutex_unlock(&p->memory->lock);
    wipe_stale_slices(p, /* waits= */ true);
}

void pool_limit(struct pool *p, size_t most_bytes)
{
    struct pool_memory *m = p->memory;
    pthread_mutex_lock(&m->lock);
    if (most_bytes < m->most_bytes)
        next_epoch_locked(p);
    m->most_bytes = min_size(most_bytes, p->ring.capacity_bytes);
    p->counts->capacity_bytes = m->most_bytes;
    set_target_locked(p, m->target_bytes);
    p->counts->dropped_bytes += ring_shrink(&p->ring, m->most_bytes);
    pthread_mutex_unlock(&m->lock);
    wipe_stale_slices(p, /* waits= */ true);
}
