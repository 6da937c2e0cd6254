/* test_statistics.c - what a reader computes of the counters. */
#include "../check_main.h"
#include "statistics.h"

static struct statistics_pool pool;

static void begin(void)
{
    memset(&pool, 0, sizeof pool);
}

TEST(sizes_are_powers_of_two)
{
    ck_assert_uint_eq(statistics_size(1), 0);
    ck_assert_uint_eq(statistics_size(32), 5);
    ck_assert_uint_eq(statistics_size(33), 6);
    ck_assert_uint_eq(statistics_size(UINT64_MAX), STATISTICS_SIZES - 1);
}

/* What calls of a size lasted, how many there were, and what a call for so many bytes costs by that. */
static const struct {
    struct {
        uint64_t len_bytes, ns, times;
    } timed[3];
    uint64_t asked_bytes, least_ns, most_ns;
} costs[] = {
    {{{0}}, 32, 0, 0},
    /* One size does not tell the price of a byte. */
    {{{1024, 5000, 8}}, 32, 0, 0},
    /* A card: 20 ms, and 1 us a byte. */
    {{{1024, 21024000, 8}, {2048, 22048000, 8}}, 24, 20024000, 20024000},
    /* A round trip costs the same whatever it carries. */
    {{{1024, 1000000, 8}, {32768, 1000000, 8}}, 16, 1000000, 1000000},
    /* Of a quick call the machine may take longer than the token: one is no evidence. Some slow ones are. */
    {{{1024, 3500, 1}, {32768, 80000, 8}}, 32, 0, 0},
    {{{1024, 1020000, 4}, {32768, 1030000, 4}}, 32, 1000000, 1030000},
    /* The first call found everything cold, or the machine was busy. */
    {{{512, 196000, 8}, {1024, 3500, 8}, {32768, 80000, 8}}, 32, 1000, 1200},
    /* A price below nothing is not known. */
    {{{1024, 1000, 8}, {2048, 1000000, 8}}, 32, 0, 0},
};

TEST_EACH(two_sizes_with_evidence_give_a_price_of_the_call_and_of_each_byte, 0,
          sizeof costs / sizeof *costs)
{
    for (int i = 0; i < 3 && costs[_i].timed[i].times != 0; i++) {
        unsigned size = statistics_size(costs[_i].timed[i].len_bytes);
        statistic_set(&pool.fill_times[size].least_ns, costs[_i].timed[i].ns);
        statistic_set(&pool.fill_times[size].times, costs[_i].timed[i].times);
    }
    ck_assert_uint_eq(statistics_call_ns(&pool), 0); /* before any draw */
    statistic_set(&pool.pool_draws, 2);
    statistic_set(&pool.pool_drawn_bytes, 2 * costs[_i].asked_bytes);
    ck_assert_uint_ge(statistics_call_ns(&pool), costs[_i].least_ns);
    ck_assert_uint_le(statistics_call_ns(&pool), costs[_i].most_ns);
}

TEST(lines_of_processors_are_added_and_what_is_held_is_what_did_not_leave)
{
    statistic_set(&pool.pool_draws, 1);
    statistic_set(&pool.lines[0].draws, 2);
    statistic_set(&pool.lines[POOL_LINES - 1].draws, 4);
    statistic_set(&pool.lines[3].drawn_bytes, 100);
    statistic_set(&pool.filled_bytes, 1000);
    statistic_set(&pool.expired_bytes, 200);
    statistic_set(&pool.dropped_bytes, 300);
    statistics_add_up(&pool);
    ck_assert_uint_eq(pool.pool_draws, 7);
    ck_assert_uint_eq(pool.pool_drawn_bytes, 100);
    ck_assert_uint_eq(pool.held_bytes, 400);
    /* Numbers of different instants never make a huge pool. */
    statistic_set(&pool.dropped_bytes, 1000);
    statistics_add_up(&pool);
    ck_assert_uint_eq(pool.held_bytes, 0);
}

int main(void)
{
    return test_main("statistics", begin, NULL);
}
