/* pool_fixture.h - a pool, a token whose every word is known, and clocks and a kernel as the test likes. */
#ifndef P11_PROXY_TEST_POOL_FIXTURE_H
#define P11_PROXY_TEST_POOL_FIXTURE_H

#include <stdbool.h>
#include <sys/types.h>

#include "../check_main.h"
#include "base/clock.h"
#include "pool/pool.h"
#include "pool_hook.h"

enum { KIB = 1024, CAPACITY = 64 * KIB, WORDS_MOST = 1 << 24 };

static const int64_t MAX_AGE_NS = 10 * NS_PER_S;
static const int64_t TICK_NS = 4 * NS_PER_MS; /* as clock_getres() says */

/* What the fixture does in place of libc. The coarse clocks stand still unless the test moves them. */
extern _Atomic int64_t now_ns, wall_ahead_ns;
extern unsigned looks_before_pause; /* at a coarse clock, until one passes PAUSE_NS; 0: no pause */
extern int madvise_answer;          /* 0: the kernel's; 1: always succeeds; -1: always fails */
extern _Atomic bool yielded;        /* a thread has called sched_yield() */

static const int64_t PAUSE_NS = NS_PER_S;

extern struct pool *pool; /* started, empty, of CAPACITY */
extern struct pool_counts counts;

/* pool_take() at the time of now_ns. */
enum pool_answer take(unsigned slice, uint8_t *buf, size_t len_bytes);

uint64_t drawn_bytes(void);

/* What was fetched and neither drawn, dropped nor expired. */
size_t held_bytes(void);

/* The token: writes the next words of its stream. A last piece shorter than a word stays as it is. Any thread. */
void token_writes(uint8_t *bytes, size_t len_bytes);

/* Bytes of the stream so far, and the byte at a position. */
size_t token_made(void);
uint8_t stream_byte(size_t position);

/* One fetch of as much as there is demand for, all good. Returns how many bytes it left in the pool for later. */
size_t fetch(size_t caller_bytes);

/* Fetches until the pool's target is at least target_bytes and the pool is not low. */
void raise_target(size_t target_bytes);

/* Marks all words in bytes as served. Returns how many there are that are no words or were served before. Any thread. */
size_t serve_words(const uint8_t *bytes, size_t len_bytes);

/* The token's words that can be found in the pool's memory, at any alignment. */
size_t words_in_memory(void);

#endif
