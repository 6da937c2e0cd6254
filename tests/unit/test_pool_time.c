/* test_pool_time.c - how old bytes may become, what clocks tell, and how much is fetched for how much demand. */
#include "pool_fixture.h"

static uint8_t piece[POOL_TAKE_MAX];

enum { SMALL = 16, LARGE = 300 }; /* from a slice, from the ring */

/* Bytes in a slice and in the ring, all fetched now. */
static void hold(void)
{
    raise_target(4 * KIB);
    ck_assert_int_ne(take(0, piece, SMALL), POOL_MISS);
}

static void expect_served(bool is_served)
{
    bool small = take(0, piece, SMALL) != POOL_MISS;
    bool large = take(0, piece, LARGE) != POOL_MISS;
    ck_assert_int_eq(small, is_served);
    ck_assert_int_eq(large, is_served);
}

TEST(bytes_are_served_until_max_age_less_a_tick)
{
    hold();
    uint64_t held = held_bytes();
    now_ns += MAX_AGE_NS - TICK_NS;
    expect_served(true);
    ck_assert_uint_eq(counts.expired_bytes, 0);
    now_ns += 1;
    expect_served(false);
    ck_assert_uint_eq(counts.expired_bytes, held - SMALL - LARGE);
    ck_assert_uint_eq(held_bytes(), 0);
    ck_assert_uint_eq(words_in_memory(), 0);
}

TEST_EACH(age_begins_before_the_token_is_asked, 0, 2)
{
    struct pool_fetch f;
    ck_assert(pool_fetch_begin(pool, KIB, 8, false, &f));
    token_writes(f.bytes, f.len_bytes);
    now_ns += MAX_AGE_NS - TICK_NS + _i;
    pool_fetch_end(pool, &f, f.len_bytes, piece, 8);
    expect_served(_i == 0);
}

/* A slice that takes in younger bytes keeps the time of its oldest one. */
TEST(young_bytes_make_old_ones_no_younger)
{
    hold();
    now_ns += MAX_AGE_NS - TICK_NS;
    while (take(0, piece, LARGE) != POOL_MISS)
        ;
    fetch(POOL_TAKE_MAX);
    now_ns += 1;
    uint64_t old = held_bytes();
    ck_assert_int_ne(take(0, piece, LARGE), POOL_MISS);
    ck_assert_uint_gt(counts.expired_bytes, 0);
    ck_assert_uint_eq(counts.expired_bytes + held_bytes() + LARGE, old);
}

TEST(a_draw_that_finds_old_bytes_wipes_those_of_all_slices)
{
    raise_target(CAPACITY);
    for (unsigned slice = 0; slice < POOL_SLICES; slice++)
        ck_assert_int_ne(take(slice, piece, SMALL), POOL_MISS);
    now_ns += MAX_AGE_NS;
    ck_assert_int_eq(take(5, piece, SMALL), POOL_MISS);
    ck_assert_uint_eq(words_in_memory(), 0);
}

TEST_EACH(a_clock_that_goes_back_drops_everything, 0, 2)
{
    now_ns += 5 * NS_PER_S;
    hold();
    now_ns += 5 * NS_PER_S;
    ck_assert_int_ne(take(0, piece, SMALL), POOL_MISS);
    now_ns -= _i == 0 ? 1 : 9 * NS_PER_S; /* to before, or after the bytes were fetched */
    expect_served(false);
    ck_assert_uint_eq(counts.drops[POOL_DROP_CLOCK], 1);
    ck_assert_uint_eq(words_in_memory(), 0);
}

/* The machine slept, or was restored: wall time went on and time since boot did not. */
TEST_EACH(a_step_of_the_wall_clock_drops_everything_at_the_next_tick, 0, 6)
{
    static const int64_t steps_ms[] = {-3600 * 1000, -101, -99, 99, 101, 3600 * 1000};
    bool is_step = steps_ms[_i] < -100 || steps_ms[_i] > 100;
    hold();
    wall_ahead_ns = steps_ms[_i] * NS_PER_MS;
    now_ns += TICK_NS;
    expect_served(!is_step);
    ck_assert_uint_eq(counts.drops[POOL_DROP_CLOCK], is_step);
}

/* The process is not scheduled before any of the pool's looks at the clocks. */
TEST_EACH(a_pause_of_the_process_is_no_step, 1, 10)
{
    hold();
    now_ns += TICK_NS;
    looks_before_pause = (unsigned)_i;
    expect_served(true);
    ck_assert_uint_eq(counts.drops[POOL_DROP_CLOCK], 0);
}

/* Serves so many bytes, whatever fetches that takes. */
static void serve(size_t len_bytes)
{
    for (; len_bytes >= KIB; len_bytes -= KIB)
        if (take(0, piece, KIB) == POOL_MISS)
            fetch(KIB);
}

/* The target as the next fetch takes it. */
static size_t target_now(void)
{
    fetch(0);
    return (size_t)counts.level_bytes;
}

TEST(the_target_is_twice_what_was_served_lately_and_halves_each_second)
{
    serve(12 * KIB);
    size_t target = target_now();
    ck_assert_uint_ge(target, 2 * 12 * KIB);
    ck_assert_uint_le(target, 2 * 14 * KIB); /* what a slice took in counts, too */
    for (; target > POOL_TARGET_MIN; target = target_now()) {
        now_ns += NS_PER_S - 1;
        ck_assert_uint_eq(target_now(), target);
        now_ns += 1;
        size_t half = (target / 2 + KIB - 1) / KIB * KIB;
        ck_assert_uint_eq(target_now(), half);
    }
    now_ns += 3600 * NS_PER_S;
    ck_assert_uint_eq(target_now(), POOL_TARGET_MIN);
}

TEST_EACH(the_target_is_least_after_a_drop_but_kept_after_a_failed_health_test, 0, POOL_DROP_CAUSES)
{
    serve(8 * KIB);
    size_t target = target_now();
    pool_drop(pool, (enum pool_drop)_i);
    ck_assert_uint_eq(target_now(), _i == POOL_DROP_HEALTH ? target : POOL_TARGET_MIN);
}

TEST(the_target_is_never_more_than_the_pool_may_hold)
{
    serve(10 * CAPACITY);
    ck_assert_uint_eq(target_now(), CAPACITY);
    ck_assert_uint_le(held_bytes(), CAPACITY);
    pool_limit(pool, 3 * KIB);
    ck_assert_uint_eq(counts.capacity_bytes, 3 * KIB);
    ck_assert_uint_le(held_bytes(), 3 * KIB);
    serve(10 * KIB);
    ck_assert_uint_eq(target_now(), 3 * KIB);
    ck_assert_uint_le(held_bytes(), 3 * KIB);
    pool_limit(pool, 2 * CAPACITY);
    ck_assert_uint_eq(counts.capacity_bytes, CAPACITY);
    pool_limit(pool, 0);
    ck_assert_uint_eq(words_in_memory(), 0);
    ck_assert_uint_eq(fetch(8), 0);
}
