/* test_pool.c - a pool serves each byte once, in whole, to its own process, and keeps no copy. */
#include "pool_fixture.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../targets/words.h"

static uint8_t piece[POOL_TAKE_MAX];
static const uint8_t zeros[POOL_TAKE_MAX];

TEST(a_pool_that_was_not_started_holds_nothing_and_fetches_nothing)
{
    struct pool *idle;
    struct pool_fetch f;
    ck_assert_int_eq(pool_create(&idle, CAPACITY, NULL), 0);
    ck_assert_uint_eq(pool_capacity(idle), CAPACITY);
    ck_assert_int_eq(pool_take(idle, /* slice= */ 0, clock_ticks_ns(), piece, 1), POOL_MISS);
    ck_assert(!pool_fetch_begin(idle, KIB, 16, &f));
    pool_start(idle, MAX_AGE_NS, false);
    ck_assert_int_eq(pool_take(idle, /* slice= */ 0, clock_ticks_ns(), piece, 1), POOL_MISS);
    ck_assert_uint_ne(fetch_most(idle, KIB, 16), 0);
    ck_assert_int_ne(pool_take(idle, /* slice= */ 0, clock_ticks_ns(), piece, 8), POOL_MISS);
    pool_free(idle);
    pool_free(NULL);
}

/* What a draw gets is what the token wrote next, whatever the size of draws and however slices and ring take turns. */
TEST_EACH(what_went_in_comes_out_once_and_in_order, 1, 65)
{
    size_t size = (size_t)_i;
    raise_target(16 * KIB);
    take_all(8);
    size_t position = token_made();
    while (fetch(0) != 0)
        ;
    uint64_t left = held_bytes();
    size_t wrong = 0;
    for (; take(0, piece, size) != POOL_MISS; left -= size)
        for (size_t i = 0; i < size; i++)
            wrong += piece[i] != stream_byte(position++);
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_lt(left, size);
    ck_assert_uint_eq(held_bytes(), left);
}

TEST(what_is_left_of_a_slice_is_served_from_that_slice_only)
{
    raise_target(CAPACITY);
    ck_assert_int_ne(take(1, piece, 8), POOL_MISS);
    ck_assert_uint_ne(take_all(8), 0);
    size_t left = held_bytes();
    ck_assert_uint_ne(left, 0);
    while (left >= 8 && take(1, piece, 8) != POOL_MISS)
        left -= 8;
    ck_assert_uint_eq(left, 0);
    ck_assert_uint_eq(held_bytes(), 0);
}

TEST(only_bytes_that_are_good_are_held)
{
    struct pool_fetch f;
    ck_assert(pool_fetch_begin(pool, KIB, 8, &f));
    token_writes(f.bytes, f.len_bytes);
    ck_assert_uint_eq(pool_fetch_end(pool, &f, 96, piece, 8), 8);
    ck_assert_uint_eq(held_bytes(), 88);
    ck_assert_uint_eq(words_in_memory(), 11);
    ck_assert(pool_fetch_begin(pool, KIB, 8, &f));
    token_writes(f.bytes, f.len_bytes);
    ck_assert_uint_eq(pool_fetch_end(pool, &f, /* good_bytes= */ 0, piece, 8), 0);
    ck_assert_uint_eq(held_bytes(), 88);
    ck_assert_uint_eq(words_in_memory(), 11);
}

TEST(a_fetch_shorter_than_its_callers_request_gives_it_all)
{
    ck_assert_uint_eq(fetch_most(pool, 8, 8), 0);
    struct pool_fetch f;
    ck_assert(pool_fetch_begin(pool, 16, 64, &f));
    ck_assert_uint_eq(f.len_bytes, 16);
    token_writes(f.bytes, f.len_bytes);
    ck_assert_uint_eq(pool_fetch_end(pool, &f, 16, piece, 64), 16);
    ck_assert_uint_eq(serve_words(piece, 16), 0);
    ck_assert_uint_eq(held_bytes(), 0);
}

static struct pool_fetch in_flight;

/* Bytes in a slice, in the ring, and on their way. */
static void hold_everywhere(void)
{
    raise_target(4 * KIB);
    ck_assert_int_ne(take(0, piece, 8), POOL_MISS);
    ck_assert_int_ne(take(0, piece, KIB), POOL_MISS);
    ck_assert(pool_fetch_begin(pool, 2 * KIB, 8, &in_flight));
    token_writes(in_flight.bytes, in_flight.len_bytes);
    ck_assert_uint_ne(words_in_memory(), 0);
}

TEST_EACH(a_stopped_pool_is_empty_and_can_be_started_again, 0, 2)
{
    hold_everywhere();
    pool_stop(pool);
    ck_assert_int_eq(take(0, piece, 1), POOL_MISS);
    ck_assert_uint_eq(held_bytes(), 0);
    struct pool_fetch f;
    if (_i == 0)
        pool_fetch_end(pool, &in_flight, in_flight.len_bytes, piece, 8);
    ck_assert(!pool_fetch_begin(pool, KIB, 8, &f));
    pool_start(pool, MAX_AGE_NS, false);
    ck_assert_uint_eq(counts().fetched_bytes, 0);
    if (_i == 1)
        pool_fetch_end(pool, &in_flight, in_flight.len_bytes, piece, 8);
    ck_assert_uint_eq(words_in_memory(), 0);
    ck_assert_uint_ne(fetch(8), 0);
    ck_assert_int_ne(take(0, piece, 8), POOL_MISS);
}

/* Whatever happened to it, a word is in the pool's memory as long as it is held, and not a moment longer. */
TEST(memory_has_the_words_that_are_held_and_no_other)
{
    raise_target(8 * KIB);
    for (size_t size = 8; size <= POOL_TAKE_MAX; size *= 2) {
        ck_assert_int_ne(take(0, piece, size), POOL_MISS);
        ck_assert_uint_eq(words_in_memory(), held_bytes() / WORD_BYTES);
        memset(piece, 0, sizeof piece);
    }
    pool_limit(pool, 2 * KIB);
    ck_assert_uint_eq(words_in_memory(), held_bytes() / WORD_BYTES);
    now_ns += MAX_AGE_NS;
    ck_assert_int_eq(take(0, piece, 8), POOL_MISS);
    ck_assert_int_eq(take(0, piece, KIB), POOL_MISS);
    ck_assert_uint_eq(words_in_memory(), 0);
}

static int finds_nothing_and_starts_afresh(void)
{
    struct pool_fetch f;
    memset(piece, 0, sizeof piece);
    if (take(0, piece, 8) != POOL_MISS || take(0, piece, KIB) != POOL_MISS)
        return 1;
    if (pool_fetch_begin(pool, KIB, 8, &f))
        return 2;
    if (pool_fetch_end(pool, &in_flight, in_flight.len_bytes, piece, 8) != 0)
        return 3;
    if (memcmp(piece, zeros, sizeof piece) != 0 || words_in_memory() != 0)
        return 4;
    pool_start(pool, MAX_AGE_NS, false);
    if (take(0, piece, 8) != POOL_MISS || fetch(8) == 0)
        return 5;
    return take(0, piece, 8) == POOL_MISS ? 6 : 0;
}

TEST_EACH(a_child_finds_nothing_and_can_start_afresh, 0, WAYS_TO_FORK)
{
    hold_everywhere();
    size_t held = words_in_memory();
    pid_t copy = copy_process(_i);
    if (copy == 0)
        _exit(finds_nothing_and_starts_afresh());
    expect_success(copy);
    ck_assert_uint_eq(words_in_memory(), held);
    pool_fetch_end(pool, &in_flight, in_flight.len_bytes, piece, 8);
    ck_assert_uint_ne(take_all(8), 0);
}

int main(void)
{
    return test_main("pool", set_up, tear_down);
}
