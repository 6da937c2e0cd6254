/* pool.h - random bytes that a token made earlier, each served to one caller once.
 *
 * What changes lies in one mapping that fork wipes: a forked or cloned child finds no bytes and no lock held.
 * What never changes (sizes, addresses) lies outside it, so that no code has to look whether it was wiped
 * meanwhile. Fetches fill a ring, and draws are served from small slices of it, so that threads do not queue. A byte
 * belongs to exactly one of: the fetch in progress, the ring, one slice, one caller. It changes hands under the lock of
 * what it leaves, and is wiped there before that lock is released.
 *
 * All functions: any thread unless they say otherwise; errno is kept; no lock is held when they return.
 */
#ifndef P11_PROXY_POOL_H
#define P11_PROXY_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/health.h"

enum {
    POOL_CAPACITY_MIN = 4 * 1024,
    POOL_CAPACITY_MAX = 16 * 1024 * 1024,
    POOL_TAKE_MAX = 1024,   /* most bytes of one pool_take() */
    POOL_TARGET_MIN = 1024, /* what a pool is kept at that hardly served anything */
    POOL_SLICES = 16,
    POOL_LINES = POOL_SLICES + 1 /* and the ring */
};

struct pool;

enum pool_drop {
    POOL_DROP_SEED,
    POOL_DROP_LOGIN,
    POOL_DROP_SESSIONS, /* the last session closed, or all, while a user was logged in */
    POOL_DROP_TOKEN,    /* initialised again, removed, or broken */
    POOL_DROP_FINALIZE,
    POOL_DROP_CLOCK, /* the clock stepped: suspended, restored or set */
    POOL_DROP_HEALTH,
    POOL_DROP_CAUSES
};

/* What a pool counts, for an observer: it writes under its locks, and never looks at what it wrote to decide about
 * bytes. */
struct pool_counts {
    _Atomic uint64_t missed_draws; /* that found too little */
    _Atomic uint64_t fills;        /* fetches that put bytes into the pool */
    _Atomic uint64_t filled_bytes; /* these are drawn, expired, dropped or held */
    _Atomic uint64_t expired_bytes;
    _Atomic uint64_t dropped_bytes;
    _Atomic uint64_t drops[POOL_DROP_CAUSES];
    _Atomic uint64_t level_bytes;    /* that demand asks for, now */
    _Atomic uint64_t capacity_bytes; /* see pool_limit() */
    _Atomic uint64_t locked;         /* 1: kept out of swap */
    /* The draws from each slice and, last, from the ring. */
    struct pool_line {
        _Atomic uint64_t draws;
        _Atomic uint64_t drawn_bytes;
    } __attribute__((aligned(64))) lines[POOL_LINES];
};

/*
 * Makes an empty pool that holds nothing until pool_start(). counts, all zero, is borrowed for the pool's life. On 0 the
 * caller owns *pool and ends it with pool_free(). Fails with -EINVAL (capacity out of range), -ENOMEM, or -ENOTSUP (no
 * protection against fork); *pool is then untouched.
 */
int pool_create(struct pool **pool, size_t capacity_bytes, struct pool_counts *counts);

/* Wipes and ends a pool that no thread uses any more. NULL is fine. */
void pool_free(struct pool *pool);

size_t pool_capacity(const struct pool *pool);

/*
 * Puts a pool to work: after pool_create(), after pool_stop(), and in a forked child. max_age_ns: no byte older
 * than this is served. lock_memory: try to keep it out of swap.
 */
void pool_start(struct pool *pool, int64_t max_age_ns, bool lock_memory);

/* Wipes all that is held and unlocks the memory. pool_take() beside it misses. */
void pool_stop(struct pool *pool);

/* The pool holds at most this many bytes from now on; what is beyond is wiped, the oldest first. */
void pool_limit(struct pool *pool, size_t most_bytes);

enum pool_answer {
    POOL_MISS,      /* fewer bytes were held; buf is untouched or zeroed */
    POOL_SERVED,    /* all of buf is filled */
    POOL_SERVED_LOW /* the same, and less is held than the low mark */
};

/*
 * Moves len_bytes (1 to POOL_TAKE_MAX) out of the pool into buf. Never waits for a fetch. Whether the bytes are too
 * old is checked before the copy; whether they were dropped, or the address space was copied, before and after it.
 * slice (0 to POOL_SLICES - 1): threads that draw at the same time should name different ones. now_ns: of
 * clock_ticks_ns().
 */
enum pool_answer pool_take(struct pool *pool, unsigned slice, int64_t now_ns, uint8_t *buf,
                           size_t len_bytes);

/* A stretch of the pool's own memory that one fetch owns, for the token to write into. */
struct pool_fetch {
    uint8_t *bytes;
    size_t len_bytes;
    uint64_t epoch;
    int64_t fetched_ns;
};

/*
 * Begins a fetch of at most most_bytes, and of what demand asks for: twice what was served lately, and caller_bytes
 * (0 to POOL_TAKE_MAX) for the caller's own missed request on top, in whole KiB. fills_up: a fetch costs the same
 * whatever its size, so as long as there is demand it asks for all that there is room for. On true the caller owns
 * *fetch and ends it with pool_fetch_end(); caller_bytes <= len_bytes unless most_bytes is less. False: a
 * fetch is in progress, the pool is stopped, or caller_bytes is 0 and no less is held than the low mark.
 */
bool pool_fetch_begin(struct pool *pool, size_t most_bytes, size_t caller_bytes, bool fills_up,
                      struct pool_fetch *fetch);

/*
 * Ends a fetch. The first good_bytes (0 to fetch->len_bytes) were written and passed health_test(). Of those the
 * last caller_bytes (or fewer, if there are fewer) go to caller_buf, the others are held for later unless the
 * pool was dropped meanwhile; all that is not held is wiped. Returns how many bytes caller_buf received: none in
 * a child forked since pool_fetch_begin().
 */
size_t pool_fetch_end(struct pool *pool, struct pool_fetch *fetch, size_t good_bytes,
                      uint8_t *caller_buf, size_t caller_bytes);

/* True if less is held than the low mark: a fetch with caller_bytes 0 would begin. */
bool pool_is_low(struct pool *pool);

/* The tests' memory for this pool's token. Borrowed; for health_test(). */
struct health *pool_health(struct pool *pool);

/* Wipes all that is held, makes sure that the fetch in progress is thrown away too, and forgets the demand. */
void pool_drop(struct pool *pool, enum pool_drop cause);

#endif
