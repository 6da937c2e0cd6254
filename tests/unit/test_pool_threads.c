/* test_pool_threads.c - many threads draw, fetch, drop and fork at once, and no word is served twice. */
#include "pool_fixture.h"

#include <pthread.h>
#include <string.h>

#include "../targets/words.h"

enum { DRAWERS_MOST = 8, WORDS_EACH = 40 * 1000, SLICES_USED = 3 };

static atomic_uint drawing; /* threads that still draw */
static _Atomic size_t bad_words, served_words;

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* A request as the module makes it: what the pool does not have is fetched. */
static void draw(unsigned slice, uint32_t *seed)
{
    uint8_t buf[POOL_TAKE_MAX];
    struct pool_fetch f;
    size_t words =
        next_random(seed) % 8 == 0 ? next_random(seed) % 128 + 1 : next_random(seed) % 8 + 1;
    size_t len_bytes = words * WORD_BYTES;
    bool served = take(slice, buf, len_bytes) != POOL_MISS;
    if (!served && pool_fetch_begin(pool, 4 * KIB, len_bytes, &f)) {
        token_writes(f.bytes, f.len_bytes);
        served = pool_fetch_end(pool, &f, f.len_bytes / WORD_BYTES * WORD_BYTES, buf, len_bytes) ==
                 len_bytes;
    }
    if (served) {
        bad_words += serve_words(buf, len_bytes);
        served_words += words;
    }
}

static void *draw_much(void *number)
{
    uint32_t seed = (uint32_t)(uintptr_t)number;
    while (served_words < WORDS_EACH * DRAWERS_MOST)
        draw(next_random(&seed) % SLICES_USED, &seed);
    drawing--;
    return NULL;
}

static void start(pthread_t *threads, unsigned count)
{
    drawing = count;
    for (unsigned i = 0; i < count; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, draw_much, (void *)(uintptr_t)(i + 1)),
                         0);
}

static void join(pthread_t *threads, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_uint_eq(bad_words, 0);
}

TEST_EACH(no_word_is_served_twice_to_threads, 0, 4)
{
    static const unsigned numbers[] = {1, 2, 4, 8};
    pthread_t threads[DRAWERS_MOST];
    start(threads, numbers[_i]);
    while (drawing != 0)
        fetch(0);
    join(threads, numbers[_i]);
    ck_assert_uint_ge(served_words, WORDS_EACH * DRAWERS_MOST);
    /* Draws that a fetch met are in no line. */
    ck_assert_uint_eq(held_bytes(), words_in_memory() * WORD_BYTES);
}

TEST(nor_while_the_pool_is_dropped_limited_and_counted_and_time_passes)
{
    pthread_t threads[DRAWERS_MOST];
    start(threads, DRAWERS_MOST);
    for (unsigned turn = 0; drawing != 0; turn++) {
        pool_drop(pool, (enum pool_drop)(turn % POOL_DROP_CAUSES));
        fetch(0);
        pool_limit(pool, turn % 2 == 0 ? 2 * KIB : CAPACITY);
        now_ns += turn % 16 == 0 ? MAX_AGE_NS : TICK_NS;
    }
    join(threads, DRAWERS_MOST);
    pool_drop(pool, POOL_DROP_TOKEN);
    ck_assert_uint_eq(words_in_memory(), 0);
    ck_assert_uint_eq(held_bytes(), 0);
}

int main(void)
{
    return test_main("pool_threads", set_up, tear_down);
}
