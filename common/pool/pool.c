/* pool.c - random bytes that a token made earlier: stripes, epochs, age and demand. */
#include "pool/pool_inside.h"

#include <errno.h>
#include <sched.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/move.h"
#include "base/probes.h"
#include "base/registers.h"
#include "base/wiped.h"

/* Where a test steps in: between the copy and the look after it, between the parts of such a look, and before it is
 * said that a drop has seen to a clone. Nothing in a library. */
#ifndef POOL_TEST_HOOK
#define POOL_TEST_HOOK(moment, pool)
#endif

static const int64_t CLOCK_STEP_NS = 100 * NS_PER_MS;

/* How much a stripe holds at most: all of them a quarter of the level. */
static size_t slice_bytes(const struct pool *p)
{
    size_t stripes = p->stripe_count;
    if (stripes == 0)
        return 0;
    size_t slice = min_size(p->level_bytes / 4 / stripes, STRIPE_BYTES);
    return slice < SLICE_MIN ? 0 : slice;
}

static size_t ring_level_locked(const struct pool *p)
{
    return p->level_bytes - slice_bytes(p) * p->stripe_count;
}

static bool is_low_locked(const struct pool *p)
{
    return p->ring.held_bytes < ring_level_locked(p) / 2;
}

static bool is_too_old(const struct pool *p, int64_t born_ns, int64_t now_ns)
{
    /* A clock that went back proves nothing about age: too old. */
    return GUARD(AGE) && (now_ns < born_ns || now_ns - born_ns > p->max_age_ns);
}

/* After a change: says so, and lets the next one in. */
static void release(struct pool *p)
{
    pool_tell_locked(p);
    lock_release(&p->lock);
}

static void drop_locked(struct pool *p, enum pool_drop cause)
{
    uint64_t next = atomic_load(&p->epoch) + 1;
    size_t lost;
    PROBE(drop, cause, p->ring.held_bytes);
    atomic_store(&p->epoch, next != 0 ? next : 1);
    while ((lost = ring_drop_oldest(&p->ring, p->ring_bytes)) != 0)
        p->counts.dropped_bytes += lost;
    p->counts.drops[cause]++;
}

/* Wipes what is too old, and all if a clock stepped. Half of a pool that nobody drank is enough for the next
 * time. Returns the time. */
static int64_t expire_locked(struct pool *p)
{
    bool lost = false;
    /* Read under the lock, so no other thread has seen a later one. */
    int64_t now_ns = clock_ticks_ns();
    if (atomic_load(&p->epoch) == 0)
        return now_ns;
    bool went_back = now_ns < p->seen_ns;
    p->seen_ns = now_ns;
    while (p->ring.count != 0 && is_too_old(p, ring_oldest_born_ns(&p->ring), now_ns)) {
        p->counts.expired_bytes += ring_drop_oldest(&p->ring, p->ring_bytes);
        lost = true;
    }
    if (lost && p->level_bytes / 2 >= POOL_LEVEL_MIN)
        pool_set_level_locked(p, p->level_bytes / 2);

    int64_t offset_ns = clock_offset_ns();
    int64_t step_ns = offset_ns - p->clock_offset_ns;
    bool stepped = went_back || step_ns > CLOCK_STEP_NS || step_ns < -CLOCK_STEP_NS;
    /* Both NULL in a child that a signal handler made just here. */
    _Atomic uint64_t *sentinel = p->sentinel;
    const _Atomic uint32_t *generation = p->generation;
    bool vanished = sentinel != NULL && atomic_load(sentinel) == 0;
    uint32_t now = generation != NULL ? atomic_load(generation) : 0;
    bool cloned = generation != NULL && now != atomic_load(&p->generation_seen);
    if (!stepped && !vanished && !cloned)
        return now_ns;
    /* Perhaps this is a second life of one memory image: what it holds may be served elsewhere too. */
    p->clock_offset_ns = offset_ns;
    drop_locked(p, cloned ? POOL_DROP_CLONE : stepped ? POOL_DROP_CLOCK : POOL_DROP_SENTINEL);
    /* Not before: who draws meanwhile must not find that all is well, and the old epoch. */
    POOL_TEST_HOOK(BEFORE_THE_CLONE_IS_SEEN_TO, p);
    if (generation != NULL)
        atomic_store(&p->generation_seen, now);
    if (wiped_reassert(p, p->mapped_bytes) == 0 && sentinel != NULL)
        atomic_store(sentinel, 1);
    return now_ns;
}

/* Whether bytes that came in at that epoch may be served, now. */
__attribute__((always_inline)) static inline bool
is_intact(const struct pool *p, const _Atomic uint64_t *sentinel, uint64_t epoch)
{
    const _Atomic uint32_t *generation = p->generation;
    uint32_t seen = atomic_load_explicit(&p->generation_seen, memory_order_acquire);
    if (generation == NULL || atomic_load_explicit(generation, memory_order_acquire) != seen ||
        (GUARD(DROPPABLE) && atomic_load_explicit(sentinel, memory_order_acquire) == 0))
        return false;
    POOL_TEST_HOOK(BETWEEN_TWO_LOOKS, p);
    /* Last: whoever sees to what the others tell of moves it on first, and then says that all is well. */
    return epoch != 0 && atomic_load_explicit(&p->epoch, memory_order_acquire) == epoch;
}

/* What is held from there on; nothing, too, if all was wiped since next was read. */
static size_t held_from(const struct stripe *s, size_t next)
{
    size_t end = s->end;
    return end > next ? end - next : 0;
}

/* Returns how many bytes that lost. */
static size_t wipe_stripe_locked(struct stripe *s)
{
    size_t next = s->next;
    size_t lost = held_from(s, next);
    wipe_bytes(s->bytes + next, lost);
    s->next = s->end = 0;
    stripe_tell_locked(s);
    return lost;
}

/* Makes s hold at least len_bytes that may be served now, out of the ring where needed.
 * Apart, as is take_from_ring(): most draws need neither, nor room for what these keep. */
__attribute__((noinline)) static bool ready_stripe_locked(struct pool *p, struct stripe *s,
                                                          size_t len_bytes, bool *low)
{
    lock_acquire(&p->lock);
    int64_t now_ns = expire_locked(p);
    uint64_t epoch = atomic_load(&p->epoch);
    if (s->end != s->next && s->epoch != epoch)
        p->counts.dropped_bytes += wipe_stripe_locked(s);
    else if (s->end != s->next && is_too_old(p, s->born_ns, now_ns))
        p->counts.expired_bytes += wipe_stripe_locked(s);
    s->checked_ns = now_ns;

    size_t next = s->next;
    size_t kept = held_from(s, next);
    size_t slice = slice_bytes(p);
    if (kept < len_bytes && slice >= len_bytes && epoch != 0) {
        /* All from one piece where one is enough, so that the stripe's date is exact. */
        size_t more = min_size(slice - kept, ring_oldest_bytes(&p->ring));
        if (kept + more < len_bytes)
            more = min_size(len_bytes - kept, p->ring.held_bytes);
        if (kept + more >= len_bytes) {
            memmove(s->bytes, s->bytes + next, kept);
            wipe_bytes(s->bytes + kept, next);
            int64_t born_ns = ring_move(&p->ring, p->ring_bytes, s->bytes + kept, more);
            if (kept == 0 || born_ns < s->born_ns)
                s->born_ns = born_ns;
            s->next = 0;
            s->end = (uint32_t)(kept + more);
            s->epoch = epoch;
            registers_forget();
        }
    }
    *low = is_low_locked(p);
    release(p);
    return held_from(s, s->next) >= len_bytes;
}

static void count_dropped(struct pool *p, size_t len_bytes)
{
    lock_acquire(&p->lock);
    p->counts.dropped_bytes += len_bytes;
    release(p);
}

static enum pool_answer take_from_stripe_locked(struct pool *p, struct stripe *s, uint8_t *buf,
                                                size_t len_bytes)
{
    bool low = false;
    const _Atomic uint64_t *sentinel = p->sentinel;
    if (s->end - s->next < len_bytes || clock_ticks_ns() != s->checked_ns ||
        !is_intact(p, sentinel, s->epoch)) {
        if (!ready_stripe_locked(p, s, len_bytes, &low))
            return POOL_MISS;
    }
    uint64_t epoch = s->epoch;
    move_bytes(buf, s->bytes + s->next, len_bytes);
    POOL_TEST_HOOK(AFTER_THE_COPY, p);
    s->next += (uint32_t)len_bytes;
    /* Dropped, or the address space copied, while we copied: nobody gets these. */
    if (GUARD(POST_COPY) && !is_intact(p, sentinel, epoch)) {
        wipe_bytes(buf, len_bytes);
        count_dropped(p, len_bytes);
        return POOL_MISS;
    }
    s->served++;
    s->served_bytes += len_bytes;
    stripe_tell_locked(s);
    return low ? POOL_SERVED_LOW : POOL_SERVED;
}

__attribute__((noinline)) static enum pool_answer take_from_ring(struct pool *p, uint8_t *buf,
                                                                 size_t len_bytes)
{
    enum pool_answer answer = POOL_MISS;
    lock_acquire(&p->lock);
    expire_locked(p);
    uint64_t epoch = atomic_load(&p->epoch);
    const _Atomic uint64_t *sentinel = p->sentinel;
    if (epoch != 0 && p->ring.held_bytes >= len_bytes) {
        ring_move(&p->ring, p->ring_bytes, buf, len_bytes);
        POOL_TEST_HOOK(AFTER_THE_COPY, p);
        if (!GUARD(POST_COPY) || is_intact(p, sentinel, epoch)) {
            answer = is_low_locked(p) ? POOL_SERVED_LOW : POOL_SERVED;
            p->counts.served++;
            p->counts.served_bytes += len_bytes;
        } else {
            wipe_bytes(buf, len_bytes);
            p->counts.dropped_bytes += len_bytes;
        }
    }
    release(p);
    return answer;
}

enum pool_answer pool_take(struct pool *p, uint8_t *buf, size_t len_bytes)
{
    unsigned stripes = p->stripe_count;
    if (stripes != 0 && len_bytes <= STRIPE_TAKE_MAX) {
        unsigned cpu = (unsigned)sched_getcpu();
        struct stripe *s = &p->stripes[cpu < stripes ? cpu : cpu % stripes];
        if (!GUARD(LOCK) || try_lock_acquire(&s->lock)) {
            enum pool_answer answer = take_from_stripe_locked(p, s, buf, len_bytes);
            try_lock_release(&s->lock);
            if (answer != POOL_MISS)
                return answer;
        }
    }
    return take_from_ring(p, buf, len_bytes);
}

bool pool_fill_begin(struct pool *p, size_t most_bytes, size_t own_bytes, struct pool_fill *fill)
{
    bool begun = false;
    lock_acquire(&p->lock);
    if (own_bytes != 0) {
        p->counts.missed++;
        pool_set_level_locked(p, p->level_bytes != 0 ? p->level_bytes * 2 : POOL_LEVEL_MIN);
    }
    uint64_t epoch = atomic_load(&p->epoch);
    size_t level = ring_level_locked(p);
    size_t wanted = level > p->ring.held_bytes ? level - p->ring.held_bytes : 0;
    wanted = min_size(wanted + own_bytes, most_bytes);
    size_t offset;
    size_t len_bytes;
    uint8_t *ring_bytes = p->ring_bytes; /* NULL once wiped */
    if (epoch != 0 && wanted > 0 && ring_bytes != NULL &&
        ring_open(&p->ring, min_size(own_bytes, wanted), wanted, &offset, &len_bytes)) {
        *fill = (struct pool_fill){.bytes = ring_bytes + offset,
                                   .len_bytes = len_bytes,
                                   .epoch = epoch,
                                   .born_ns = clock_ticks_ns()};
        begun = true;
    }
    release(p);
    if (begun)
        health_prefill(fill->bytes, fill->len_bytes);
    return begun;
}

size_t pool_fill_end(struct pool *p, struct pool_fill *fill, size_t written_bytes, uint8_t *own,
                     size_t own_bytes, enum health *health)
{
    /* The region is ours alone until ring_close(), and so is the health test's memory. */
    *health = HEALTH_GOOD;
    if (GUARD(HEALTH) && written_bytes != 0)
        *health = health_test(&p->health, fill->bytes, written_bytes);
    size_t good_bytes = *health == HEALTH_GOOD ? written_bytes : 0;
    own_bytes = min_size(own_bytes, good_bytes);
    wipe_bytes(fill->bytes + good_bytes, fill->len_bytes - good_bytes);
    if (own_bytes != 0)
        move_bytes(own, fill->bytes, own_bytes);
    registers_forget();

    lock_acquire(&p->lock);
    uint64_t epoch = atomic_load(&p->epoch);
    if (epoch == 0) {
        /* Forked since: what was copied may be what the kernel left there, zeros. */
        lock_release(&p->lock);
        wipe_bytes(fill->bytes, fill->len_bytes);
        if (own_bytes != 0)
            wipe_bytes(own, own_bytes);
        return 0;
    }
    if (epoch != fill->epoch) {
        wipe_bytes(fill->bytes, fill->len_bytes);
        good_bytes = own_bytes;
    }
    ring_close(&p->ring, own_bytes, good_bytes, fill->born_ns);
    if (good_bytes > own_bytes) {
        p->counts.fills++;
        p->counts.filled_bytes += good_bytes - own_bytes;
    }
    p->counts.alarms += *health != HEALTH_GOOD;
    release(p);
    return own_bytes;
}

bool pool_is_low(struct pool *p)
{
    lock_acquire(&p->lock);
    bool low = is_low_locked(p);
    lock_release(&p->lock);
    return low;
}

uint64_t pool_misses(struct pool *p)
{
    lock_acquire(&p->lock);
    uint64_t misses = p->counts.missed;
    lock_release(&p->lock);
    return misses;
}

void pool_drop(struct pool *p, enum pool_drop cause)
{
    int saved_errno = errno;
    size_t lost = 0;
    lock_acquire(&p->lock);
    drop_locked(p, cause);
    lock_release(&p->lock);
    for (unsigned i = 0; i < p->stripe_count; i++) {
        pool_lock_stripe(&p->stripes[i]);
        lost += wipe_stripe_locked(&p->stripes[i]);
        try_lock_release(&p->stripes[i].lock);
    }
    count_dropped(p, lost);
    errno = saved_errno;
}

int64_t pool_expire(struct pool *p)
{
    int saved_errno = errno;
    int64_t now_ns = clock_ticks_ns();
    int64_t oldest_ns = INT64_MAX;
    uint64_t lost = 0;
    for (unsigned i = 0; i < p->stripe_count; i++) {
        struct stripe *s = &p->stripes[i];
        pool_lock_stripe(s);
        if (s->end != s->next && is_too_old(p, s->born_ns, now_ns))
            lost += wipe_stripe_locked(s);
        if (s->end != s->next && s->born_ns < oldest_ns)
            oldest_ns = s->born_ns;
        try_lock_release(&s->lock);
    }
    lock_acquire(&p->lock);
    p->counts.expired_bytes += lost;
    expire_locked(p);
    if (p->ring.count != 0 && ring_oldest_born_ns(&p->ring) < oldest_ns)
        oldest_ns = ring_oldest_born_ns(&p->ring);
    release(p);
    errno = saved_errno;
    return oldest_ns == INT64_MAX ? -1 : oldest_ns + p->max_age_ns + 1;
}
