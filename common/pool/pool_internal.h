/* pool_internal.h - what a pool is made of, for pool.c, which serves, and pool_life.c, which makes and ends. */
#ifndef P11_PROXY_POOL_INTERNAL_H
#define P11_PROXY_POOL_INTERNAL_H

#include "base/copy.h"
#include "base/lock.h"
#include "pool/pool.h"
#include "pool/ring.h"

enum {
    SLICE_BYTES =
        2048 - 64,        /* so that a slice with its first line has the size of a power of two */
    SLICE_MIN = 64,       /* smaller slices than this are not worth the trip to the ring */
    SLICE_TAKE_MAX = 256, /* larger requests come out of the ring at once */
    CACHE_LINE = 64
};

/* What some threads' draws are served from. bytes[next..end) are held, all others are zero. */
struct slice {
    struct try_lock lock; /* guards all of this */
    uint32_t next;
    uint32_t end;
    uint64_t epoch;            /* the pool's when the bytes came in */
    int64_t fetched_ns;        /* of the oldest of them */
    int64_t checked_ns;        /* the tick at which age and clocks were last looked at */
    atomic_size_t share_bytes; /* no less than it holds; changes under the pool's lock too */
    uint8_t bytes[SLICE_BYTES] __attribute__((aligned(CACHE_LINE)));
} __attribute__((aligned(CACHE_LINE)));

/* What changes, in memory that fork wipes. Zero bytes are a pool that is stopped. */
struct pool_memory {
    /* Moves on whenever bytes held or on their way must not be used. 0: serve nothing. */
    _Atomic uint64_t epoch;

    pthread_mutex_t lock
        __attribute__((aligned(CACHE_LINE))); /* guards all below but health and slices */
    struct ring_state ring;
    uint64_t last_epoch;     /* that this pool ever had, so that none comes twice */
    size_t most_bytes;       /* see pool_limit() */
    size_t target_bytes;     /* to be held, slices included */
    size_t in_slices;        /* the sum of their share_bytes: a quarter of most_bytes at most */
    size_t served_lately;    /* bytes that left the ring, halved each second */
    int64_t halved_ns;       /* when that was done last */
    int64_t max_age_ns;      /* less a tick of the clock */
    int64_t clock_offset_ns; /* see clock_offset_ns() */
    int64_t seen_ns;         /* the latest time that was read under the lock */

    struct health health;
    struct slice slices[POOL_SLICES];
};

/* What never changes. */
struct pool {
    struct pool_memory *memory;
    struct ring ring; /* its bytes lie behind struct pool_memory */
    struct pool_counts *counts;
    size_t mapped_bytes;
};

#endif
