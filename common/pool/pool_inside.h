/* pool_inside.h - what a pool is made of, for the two files that know: pool.c serves, pool_keep.c keeps. */
#ifndef P11_PROXY_POOL_INSIDE_H
#define P11_PROXY_POOL_INSIDE_H

#include "base/lock.h"
#include "pool/pool.h"
#include "pool/ring.h"

enum {
    STRIPES_MAX = 64,
    STRIPE_BYTES = 1024,
    SLICE_MIN = 64,        /* smaller slices than this are not worth the trip to the ring */
    STRIPE_TAKE_MAX = 256, /* larger requests come out of the ring at once */
    CACHE_LINE = 64
};

/* What one processor's draws come out of. bytes[next..end) are held, all others are zero. */
struct stripe {
    struct try_lock lock; /* guards all of this */
    uint32_t next;
    uint32_t end;
    uint64_t epoch;     /* the pool's when the bytes came in */
    int64_t born_ns;    /* of the oldest of them */
    int64_t checked_ns; /* the tick at which age and clocks were last looked at */
    uint64_t served;
    uint64_t served_bytes;
    struct statistics_draws *told; /* NULL: nobody reads it. Up to here one cache line */
    uint8_t bytes[STRIPE_BYTES];
} __attribute__((aligned(CACHE_LINE)));

struct pool {
    _Atomic uint64_t epoch; /* moves on whenever bytes held or on their way must not be used. Never
                             * 0 except in a child: the kernel wiped it. */
    unsigned stripe_count;
    size_t mapped_bytes;
    size_t capacity_bytes;
    int64_t max_age_ns;
    atomic_size_t *budget;
    bool locked; /* in memory; stays false where the system does not let us */
    /* Not 0 until a fork, a restore from a checkpoint, or a lack of memory; &own_sentinel where there
     * is no such page. */
    _Atomic uint64_t *sentinel;
    _Atomic uint64_t own_sentinel;
    const _Atomic uint32_t *generation; /* the machine's, or own_generation */
    _Atomic uint32_t own_generation;
    _Atomic uint32_t generation_seen; /* written under the lock; read without it */

    /* Guards all below, and the ring's bytes. */
    struct lock lock __attribute__((aligned(CACHE_LINE)));
    struct ring ring;
    size_t level_bytes;           /* what demand asks us to hold, stripes included; out of budget */
    int64_t clock_offset_ns;      /* see clock_offset_ns() */
    int64_t seen_ns;              /* the latest time that was read under the lock */
    struct pool_counts counts;    /* without the stripes' */
    struct statistics_pool *told; /* NULL: nobody reads it */
    uint8_t *ring_bytes;          /* behind the stripes */

    struct health_memory health; /* belongs to the fill in progress */

    struct stripe stripes[];
};

static inline size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Sets what demand asks the pool to hold, as far as capacity and budget allow. Expects p->lock held. */
void pool_set_level_locked(struct pool *p, size_t level_bytes);

/* Says how the pool is to whoever reads pool_settings.told. Expects p->lock held. */
void pool_tell_locked(const struct pool *p);

/* The same of a stripe. Expects its lock held. Nowhere to tell it is what a forked child finds, too. */
static inline void stripe_tell_locked(const struct stripe *s)
{
    struct statistics_draws *told = s->told;
    if (told == NULL)
        return;
    statistic_set(&told->draws, s->served);
    statistic_set(&told->drawn_bytes, s->served_bytes);
}

/* Takes a stripe's lock, waiting for its present user, who is copying a few bytes. */
void pool_lock_stripe(struct stripe *s);

#endif
