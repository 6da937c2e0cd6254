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

TEST(bytes_are_served_until_max_age_less_a_tick)
{
    hold();
    uint64_t held = held_bytes();
    now_ns += MAX_AGE_NS - TICK_NS;
    ck_assert_int_ne(take(0, piece, SMALL), POOL_MISS);
    ck_assert_int_ne(take(0, piece, LARGE), POOL_MISS);
    ck_assert_uint_eq(counts().expired_bytes, 0);
    now_ns += 1;
    ck_assert_int_eq(take(0, piece, SMALL), POOL_MISS);
    ck_assert_int_eq(take(0, piece, LARGE), POOL_MISS);
    ck_assert_uint_eq(counts().expired_bytes, held - SMALL - LARGE);
    ck_assert_uint_eq(held_bytes(), 0);
    ck_assert_uint_eq(words_in_memory(), 0);
}

TEST_EACH(age_begins_before_the_token_is_asked, 0, 2)
{
    struct pool_fetch f;
    ck_assert(pool_fetch_begin(pool, KIB, 8, &f));
    token_writes(f.bytes, f.len_bytes);
    now_ns += MAX_AGE_NS - TICK_NS + _i;
    pool_fetch_end(pool, &f, f.len_bytes, piece, 8);
    bool served = take(0, piece, SMALL) != POOL_MISS;
    ck_assert_int_eq(served, _i == 0);
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
    ck_assert_uint_gt(counts().expired_bytes, 0);
    ck_assert_uint_eq(counts().expired_bytes + held_bytes() + LARGE, old);
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
    ck_assert_int_eq(take(0, piece, SMALL), POOL_MISS);
    ck_assert_int_eq(take(0, piece, LARGE), POOL_MISS);
    ck_assert_uint_eq(counts().drops[POOL_DROP_CLOCK], 1);
    ck_assert_uint_eq(words_in_memory(), 0);
}

/* The machine slept, or was restored: wall time went on and time since boot did not. */
TEST_EACH(a_step_of_the_wall_clock_drops_everything_at_the_next_tick, 0, 7)
{
    static const int64_t steps_ms[] = {-3600 * 1000, -101, -99, 0, 99, 101, 3600 * 1000};
    bool is_step = steps_ms[_i] < -100 || steps_ms[_i] > 100;
    hold();
    wall_ahead_ns = steps_ms[_i] * NS_PER_MS;
    now_ns += TICK_NS;
    bool small = take(0, piece, SMALL) != POOL_MISS;
    bool large = take(0, piece, LARGE) != POOL_MISS;
    ck_assert_int_eq(small, !is_step);
    ck_assert_int_eq(large, !is_step);
    ck_assert_uint_eq(counts().drops[POOL_DROP_CLOCK], is_step);
}

/* The process is not scheduled before any of the pool's looks at the clocks. */
TEST_EACH(a_pause_of_the_process_is_no_step, 1, 10)
{
    hold();
    now_ns += TICK_NS;
    looks_before_pause = (unsigned)_i;
    bool small = take(0, piece, SMALL) != POOL_MISS;
    bool large = take(0, piece, LARGE) != POOL_MISS;
    looks_before_pause = 0;
    ck_assert(small && large);
    ck_assert_uint_eq(counts().drops[POOL_DROP_CLOCK], 0);
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
    return (size_t)counts().target_bytes;
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

/* But the first fetch after a drop is small. */
TEST(where_size_costs_nothing_demand_fills_the_pool)
{
    pool_fill_up(pool, true);
    for (int drop = 0; drop < 2; drop++) {
        fetch(16);
        ck_assert_uint_eq(counts().target_bytes, KIB);
        fetch(KIB);
        ck_assert_uint_eq(counts().target_bytes, CAPACITY);
        ck_assert_uint_ge(held_bytes(), CAPACITY - KIB);
        pool_drop(pool, POOL_DROP_SEED);
    }
    pool_fill_up(pool, false);
    fetch(16);
    fetch(KIB);
    ck_assert_uint_lt(counts().target_bytes, CAPACITY / 2);
}

TEST(the_target_is_never_more_than_the_pool_may_hold)
{
    serve(10 * CAPACITY);
    ck_assert_uint_eq(target_now(), CAPACITY);
    ck_assert_uint_le(held_bytes(), CAPACITY);
    pool_limit(pool, 3 * KIB);
    ck_assert_uint_eq(counts().most_bytes, 3 * KIB);
    ck_assert_uint_le(held_bytes(), 3 * KIB);
    serve(10 * KIB);
    ck_assert_uint_eq(target_now(), 3 * KIB);
    ck_assert_uint_le(held_bytes(), 3 * KIB);
    pool_limit(pool, 2 * CAPACITY);
    ck_assert_uint_eq(counts().most_bytes, CAPACITY);
}

/* What slices took leaves less room for the ring, until it was dropped. */
TEST(slices_and_ring_together_hold_no_more_than_the_pool_may)
{
    for (int drop = 0; drop < 2; drop++) {
        raise_target(CAPACITY);
        ck_assert_uint_gt(held_bytes(), CAPACITY / 4 * 3);
        for (unsigned slice = 0; slice < POOL_SLICES; slice++)
            ck_assert_int_ne(take(slice, piece, 8), POOL_MISS);
        while (fetch(0) != 0)
            ;
        ck_assert_uint_le(held_bytes(), CAPACITY);
        pool_drop(pool, POOL_DROP_SEED);
    }
}

TEST(a_pool_that_may_hold_next_to_nothing_holds_nothing)
{
    struct pool_fetch f;
    hold();
    pool_limit(pool, POOL_TARGET_MIN - 1);
    ck_assert_uint_lt(held_bytes(), POOL_TARGET_MIN);
    pool_limit(pool, 0);
    ck_assert_uint_eq(held_bytes(), 0);
    ck_assert_uint_eq(words_in_memory(), 0);
    ck_assert(!pool_fetch_begin(pool, KIB, 8, &f));
    ck_assert_int_eq(take(0, piece, 8), POOL_MISS);
}

TEST(a_draw_says_when_the_low_mark_is_passed)
{
    struct pool_fetch f;
    raise_target(8 * KIB);
    ck_assert(!pool_fetch_begin(pool, KIB, /* caller_bytes= */ 0, &f));
    enum pool_answer answer;
    size_t served = 0;
    while ((answer = take(0, piece, LARGE)) == POOL_SERVED)
        served += LARGE;
    ck_assert_int_eq(answer, POOL_SERVED_LOW);
    ck_assert_uint_ge(served, KIB);
    ck_assert_uint_le(served, 3 * KIB);
    ck_assert(pool_fetch_begin(pool, KIB, 0, &f));
    pool_fetch_end(pool, &f, 0, NULL, 0);
}

TEST(a_miss_is_counted_once)
{
    struct pool_fetch f;
    ck_assert(pool_fetch_begin(pool, KIB, 8, &f));
    ck_assert(!pool_fetch_begin(pool, KIB, 8, &(struct pool_fetch){0}));
    pool_fetch_end(pool, &f, 0, NULL, 0);
    ck_assert_uint_eq(counts().missed, 2);
    ck_assert_uint_eq(counts().fetches, 0);
    fetch(8);
    ck_assert_uint_eq(counts().missed, 3);
    ck_assert_uint_eq(counts().fetches, 1);
    ck_assert_uint_eq(counts().fetched_bytes, held_bytes());
}

int main(void)
{
    return test_main("pool_time", set_up, tear_down);
}
