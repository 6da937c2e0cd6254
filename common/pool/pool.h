/* pool.h - random bytes that a token made earlier, each served to one caller once.
 *
 * A pool and all that it knows lie in one mapping that fork wipes: a forked or cloned child finds
 * no bytes, no lock held, no room. Two levels: a ring that fills go into, and a small stripe for
 * each processor that draws come out of, so that threads do not queue. A byte is owned by exactly
 * one of: the fill in progress, the ring, one stripe, one caller. It changes hands under the lock of
 * what it leaves, and is wiped there before that lock is released.
 *
 * All functions: any thread; errno is kept; no system call except, in a fill or a drop that meets
 * contention, a futex or a short sleep. No lock is held when they return.
 */
#ifndef P11_PROXY_POOL_H
#define P11_PROXY_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/health.h"
#include "statistics.h"

enum {
    POOL_CAPACITY_MIN = 4 * 1024,
    POOL_CAPACITY_MAX = 16 * 1024 * 1024,
    POOL_TAKE_MAX = 1024, /* most bytes of one pool_take() */
    POOL_LEVEL_MIN = 2048 /* what a pool grows from: some of it waits in the stripes */
};

struct pool;

struct pool_settings {
    size_t capacity_bytes; /* most bytes held, POOL_CAPACITY_MIN to POOL_CAPACITY_MAX */
    int64_t max_age_ns;    /* no byte older than this is served */
    bool lock_memory;      /* try to keep it out of swap */
    atomic_size_t *budget; /* bytes that the pools sharing it may still grow by; borrowed.
                                    * It must lie in memory that fork wipes as well. */
    /* The machine's generation, which changes when it is cloned; borrowed, NULL where there is none. */
    const _Atomic uint32_t *generation;
    /* Where the pool tells how it is; borrowed, NULL for nowhere. It only ever writes there. */
    struct statistics_pool *told;
};

/*
 * Makes an empty pool. On 0 the caller owns *pool and ends it with pool_free(). Fails with -EINVAL
 * (capacity out of range), -ENOMEM, or -ENOTSUP (no protection against fork: see wiped.h); *pool is
 * then untouched.
 */
int pool_create(struct pool **pool, const struct pool_settings *settings);

/* Wipes a pool and unlocks its memory, for pool_reuse() later; pool_take() beside it is harmless. */
void pool_rest(struct pool *pool);

/* Puts a resting pool to work again. False if it was made for another capacity: end it then. */
bool pool_reuse(struct pool *pool, const struct pool_settings *settings);

/* Wipes and ends a pool that nobody uses any more. NULL is fine. */
void pool_free(struct pool *pool);

enum pool_answer {
    POOL_MISS,      /* fewer bytes were held; buf is untouched or zeroed */
    POOL_SERVED,    /* all of buf is filled */
    POOL_SERVED_LOW /* the same, and it is time for a fill */
};

/*
 * Moves len_bytes (1 to POOL_TAKE_MAX) out of the pool into buf. Never waits for a fill. Whether the
 * address space was copied, the bytes dropped or too old is looked at before and after the copy.
 */
enum pool_answer pool_take(struct pool *pool, uint8_t *buf, size_t len_bytes);

/* A stretch of the pool's own memory that one fill owns, for the token to write into. */
struct pool_fill {
    uint8_t *bytes;
    size_t len_bytes;
    uint64_t epoch;
    int64_t born_ns; /* before the token is asked: no byte is younger than it claims */
};

/*
 * Begins a fill of at most most_bytes, by no more than the demand of late asks for. own_bytes (0 to
 * POOL_TAKE_MAX) come on top for the caller's own missed request, and make the pool grow. On true
 * the caller owns *fill and ends it with pool_fill_end(); 1 <= len_bytes, and own_bytes <=
 * len_bytes unless most_bytes is less. False: a fill is in progress, or none is wanted.
 */
bool pool_fill_begin(struct pool *pool, size_t most_bytes, size_t own_bytes,
                     struct pool_fill *fill);

/*
 * Ends a fill. written_bytes (0 to fill->len_bytes) are said to be written: they are tested first, and
 * *health tells the result. Of good ones the first own_bytes (or fewer, if there are fewer) go to own,
 * the others are held for later unless the pool was dropped meanwhile; all that is not held is wiped.
 * Returns how many bytes own received: 0 of bad ones, and in a child forked since pool_fill_begin().
 */
size_t pool_fill_end(struct pool *pool, struct pool_fill *fill, size_t written_bytes, uint8_t *own,
                     size_t own_bytes, enum health *health);

/* True if a fill would be welcome now: less is held than half of what the demand asks for. */
bool pool_is_low(struct pool *pool);

/* How often callers found too little: calls of pool_fill_begin() with own_bytes. */
uint64_t pool_misses(struct pool *pool);

enum pool_drop {
    POOL_DROP_SEED,
    POOL_DROP_LOGIN,
    POOL_DROP_SESSIONS, /* the last session closed, or all */
    POOL_DROP_TOKEN,    /* initialised again, removed, or broken */
    POOL_DROP_FINALIZE,
    POOL_DROP_CLOCK,    /* the clock stepped: suspended, restored or set */
    POOL_DROP_SENTINEL, /* the droppable page vanished: restored, or memory was short */
    POOL_DROP_CLONE,    /* the machine was cloned */
    POOL_DROP_HEALTH,
    POOL_DROP_CAUSES
};

/* Wipes all that is held and makes sure that the fill in progress is thrown away too. */
void pool_drop(struct pool *pool, enum pool_drop cause);

/* Wipes what is too old, and shrinks the pool if that was not asked for. Returns when, on
 * clock_ticks_ns()'s clock, the next bytes expire; -1 if none are held. */
int64_t pool_expire(struct pool *pool);

struct pool_counts {
    uint64_t served; /* calls of pool_take() that were served */
    uint64_t served_bytes;
    uint64_t missed;       /* calls that found too little */
    uint64_t fills;        /* that put bytes into the pool */
    uint64_t filled_bytes; /* these are served, expired, dropped or held */
    uint64_t expired_bytes;
    uint64_t dropped_bytes;
    uint64_t alarms; /* fills that failed the health test */
    uint64_t drops[POOL_DROP_CAUSES];
    size_t held_bytes;  /* now */
    size_t level_bytes; /* that the pool is kept at by demand, now */
};

/* A snapshot; it may miss calls that are under way. */
void pool_count(struct pool *pool, struct pool_counts *counts);

#endif
