/* pool_fixture.c - a pool, a token whose every word is known, and clocks and a kernel as the test likes. */
#include "pool_fixture.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../targets/words.h"

_Atomic int64_t now_ns, wall_ahead_ns;
unsigned looks_before_pause;
int madvise_answer;
_Atomic bool yielded;

struct pool *pool;
struct pool_counts counts;

static _Atomic uint64_t words_made;
static _Atomic uint8_t served[WORDS_MOST];

/* In place of libc's. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (clock != CLOCK_MONOTONIC_COARSE && clock != CLOCK_REALTIME_COARSE)
        return (int)syscall(SYS_clock_gettime, clock, now);
    if (looks_before_pause != 0 && --looks_before_pause == 0)
        now_ns += PAUSE_NS;
    int64_t ns = now_ns + (clock == CLOCK_REALTIME_COARSE ? wall_ahead_ns : 0);
    *now = (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    return 0;
}

int clock_getres(clockid_t clock, struct timespec *step)
{
    *step = (struct timespec){.tv_nsec = (long)TICK_NS};
    return clock == CLOCK_MONOTONIC_COARSE ? 0 : (int)syscall(SYS_clock_getres, clock, step);
}

int sched_yield(void)
{
    yielded = true;
    return (int)syscall(SYS_sched_yield);
}

int madvise(void *memory, size_t len_bytes, int advice)
{
    if (madvise_answer == 0)
        return (int)syscall(SYS_madvise, memory, len_bytes, advice);
    errno = EINVAL;
    return madvise_answer < 0 ? -1 : 0;
}

void set_up(void)
{
    now_ns = 1000 * NS_PER_S;
    counts = (struct pool_counts){0};
    ck_assert_int_eq(pool_create(&pool, CAPACITY, &counts), 0);
    pool_start(pool, MAX_AGE_NS, /* lock_memory= */ false);
}

void tear_down(void)
{
    pool_free(pool);
}

uint64_t drawn_bytes(void)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < POOL_LINES; i++)
        bytes += atomic_load(&counts.lines[i].drawn_bytes);
    return bytes;
}

size_t held_bytes(void)
{
    return counts.filled_bytes - drawn_bytes() - counts.dropped_bytes - counts.expired_bytes;
}

static uint64_t word_of(uint64_t counter)
{
    return word_make(&(struct word){.counter = counter});
}

void token_writes(uint8_t *bytes, size_t len_bytes)
{
    uint64_t count = len_bytes / WORD_BYTES;
    uint64_t first = atomic_fetch_add(&words_made, count) + 1;
    if (first + count >= WORDS_MOST)
        ck_abort_msg("the stream is at its end");
    for (uint64_t i = 0; i < count; i++) {
        uint64_t word = word_of(first + i);
        memcpy(bytes + i * WORD_BYTES, &word, sizeof word);
    }
}

size_t token_made(void)
{
    return (size_t)words_made * WORD_BYTES;
}

uint8_t stream_byte(size_t position)
{
    uint64_t word = word_of(position / WORD_BYTES + 1);
    uint8_t bytes[WORD_BYTES];
    memcpy(bytes, &word, sizeof word);
    return bytes[position % WORD_BYTES];
}

size_t fetch(size_t caller_bytes)
{
    struct pool_fetch f;
    uint8_t caller_buf[POOL_TAKE_MAX];
    if (!pool_fetch_begin(pool, SIZE_MAX, caller_bytes, false, &f))
        return 0;
    token_writes(f.bytes, f.len_bytes);
    size_t good = f.len_bytes / WORD_BYTES * WORD_BYTES;
    if (pool_fetch_end(pool, &f, good, caller_buf, caller_bytes) != caller_bytes)
        ck_abort_msg("a fetch gave its caller too little");
    return good - caller_bytes;
}

void raise_target(size_t target_bytes)
{
    while (counts.level_bytes < target_bytes)
        fetch(POOL_TAKE_MAX);
    while (fetch(0) != 0)
        ;
}

enum pool_answer take(unsigned slice, uint8_t *buf, size_t len_bytes)
{
    return pool_take(pool, slice, clock_ticks_ns(), buf, len_bytes);
}

size_t serve_words(const uint8_t *bytes, size_t len_bytes)
{
    size_t bad = 0;
    for (size_t i = 0; i + WORD_BYTES <= len_bytes; i += WORD_BYTES) {
        struct word word;
        bad += !word_read(bytes + i, &word) || word.counter >= WORDS_MOST ||
               atomic_exchange(&served[word.counter], 1) != 0;
    }
    return bad;
}

size_t words_in_memory(void)
{
    char line[512];
    uintptr_t start = 0, end = 0, inside = (uintptr_t)pool_health(pool);
    size_t found = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    ck_assert_ptr_nonnull(maps);
    while (inside >= end && fgets(line, sizeof line, maps) != NULL)
        sscanf(line, "%lx-%lx", &start, &end);
    fclose(maps);
    for (const uint8_t *at = (uint8_t *)start; at + WORD_BYTES <= (uint8_t *)end; at++) {
        struct word word;
        found += word_read(at, &word) && word.counter <= words_made;
    }
    return found;
}
