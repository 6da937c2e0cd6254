/* test_statistics.c - what a reader computes of the counters. */

#include "../check_main.h"
#include "statistics.h"

enum { OFTEN = 8, ONCE = 1, SOMETIMES = 4 };

static struct statistics_pool pool;

static void begin(void)
{
    memset(&pool, 0, sizeof pool);
}

static void lasts(uint64_t len_bytes, uint64_t ns, uint64_t times)
{
    struct statistics_time *time = &pool.fill_times[statistics_size(len_bytes)];
    statistic_set(&time->least_ns, ns);
    statistic_set(&time->times, times);
}

TEST(sizes_are_powers_of_two)
{
    ck_assert_uint_eq(statistics_size(1), 0);
    ck_assert_uint_eq(statistics_size(32), 5);
    ck_assert_uint_eq(statistics_size(33), 6);
    ck_assert_uint_eq(statistics_size(1024), 10);
    ck_assert_uint_eq(statistics_size(UINT64_MAX), STATISTICS_SIZES - 1);
}

TEST(nothing_timed_is_nothing_known)
{
    ck_assert_uint_eq(statistics_call_ns(&pool, 32), 0);
}

TEST(one_size_does_not_tell_the_price_of_a_byte)
{
    lasts(1024, 5000, OFTEN);
    ck_assert_uint_eq(statistics_call_ns(&pool, 32), 0);
}

TEST(two_sizes_give_a_price_of_the_call_and_of_each_byte)
{
    lasts(1024, 20000000 + 1024 * 1000, OFTEN); /* a card: 20 ms, and 1 us a byte */
    lasts(2048, 20000000 + 2048 * 1000, OFTEN);
    ck_assert_uint_eq(statistics_call_ns(&pool, 24), 20024000);
}

TEST(a_round_trip_costs_the_same_whatever_it_carries)
{
    lasts(1024, 1000000, OFTEN);
    lasts(32768, 1000000, OFTEN);
    ck_assert_uint_eq(statistics_call_ns(&pool, 16), 1000000);
}

/* Of a quick call the machine may take longer than the token. */
TEST(a_few_quick_calls_of_a_size_are_no_evidence)
{
    lasts(1024, 3500, ONCE);
    lasts(32768, 80000, OFTEN);
    ck_assert_uint_eq(statistics_call_ns(&pool, 32), 0);
}

TEST(a_few_slow_calls_of_each_size_are)
{
    lasts(1024, 1020000, SOMETIMES);
    lasts(32768, 1030000, SOMETIMES);
    ck_assert_uint_ge(statistics_call_ns(&pool, 32), 1000000);
    ck_assert_uint_le(statistics_call_ns(&pool, 32), 1030000);
}

TEST(fewer_are_not)
{
    lasts(1024, 1020000, ONCE);
    lasts(32768, 1030000, SOMETIMES);
    ck_assert_uint_eq(statistics_call_ns(&pool, 32), 0);
}

/* The first call found everything cold, or the machine was busy. */
TEST(a_small_call_that_took_longer_than_a_larger_one_does_not_count)
{
    lasts(512, 196000, OFTEN);
    lasts(1024, 3500, OFTEN);
    lasts(32768, 80000, OFTEN);
    ck_assert_uint_ge(statistics_call_ns(&pool, 32), 1000);
    ck_assert_uint_le(statistics_call_ns(&pool, 32), 1200);
}

TEST(a_price_of_the_call_below_nothing_is_not_known)
{
    lasts(1024, 1000, OFTEN);
    lasts(2048, 1000000, OFTEN);
    ck_assert_uint_eq(statistics_call_ns(&pool, 32), 0);
}

TEST(lines_of_processors_are_added_and_what_is_held_is_what_did_not_leave)
{
    statistic_set(&pool.pool_draws, 1);
    statistic_set(&pool.cpus[0].draws, 2);
    statistic_set(&pool.cpus[STATISTICS_CPUS - 1].draws, 4);
    statistic_set(&pool.cpus[3].drawn_bytes, 100);
    statistic_set(&pool.filled_bytes, 1000);
    statistic_set(&pool.expired_bytes, 200);
    statistic_set(&pool.dropped_bytes, 300);
    statistics_add_up(&pool);
    ck_assert_uint_eq(pool.pool_draws, 7);
    ck_assert_uint_eq(pool.pool_drawn_bytes, 100);
    ck_assert_uint_eq(pool.held_bytes, 400);
}

TEST(numbers_of_different_instants_never_make_a_huge_pool)
{
    statistic_set(&pool.filled_bytes, 10);
    statistic_set(&pool.dropped_bytes, 11);
    statistics_add_up(&pool);
    ck_assert_uint_eq(pool.held_bytes, 0);
}

/* Each row's own number, and a unit that its name ends with. */
TEST(rows_have_their_own_places)
{
    for (const struct statistics_row *row = statistics_pool_rows; row->name != NULL; row++) {
        ck_assert_uint_eq(row->offset, (size_t)(row - statistics_pool_rows) * sizeof(statistic));
        size_t unit_len = strlen(row->unit);
        ck_assert_str_eq(row->name + strlen(row->name) - unit_len, row->unit);
    }
}

int main(void)
{
    return test_main("statistics", begin, NULL);
}
