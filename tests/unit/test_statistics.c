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

/* What calls of a size lasted, how many there were, and what a call for so many bytes costs by that. */
static const struct {
    struct {
        uint64_t len_bytes, ns, times;
    } timed[3];
    uint64_t asked_bytes, least_ns, most_ns;
} costs[] = {
    {{{0}}, 32, 0, 0},
    /* One size does not tell the price of a byte. */
    {{{1024, 5000, OFTEN}}, 32, 0, 0},
    /* A card: 20 ms, and 1 us a byte. */
    {{{1024, 21024000, OFTEN}, {2048, 22048000, OFTEN}}, 24, 20024000, 20024000},
    /* A round trip costs the same whatever it carries. */
    {{{1024, 1000000, OFTEN}, {32768, 1000000, OFTEN}}, 16, 1000000, 1000000},
    /* Of a quick call the machine may take longer than the token: one is no evidence. Some slow ones are. */
    {{{1024, 3500, ONCE}, {32768, 80000, OFTEN}}, 32, 0, 0},
    {{{1024, 1020000, SOMETIMES}, {32768, 1030000, SOMETIMES}}, 32, 1000000, 1030000},
    {{{1024, 1020000, ONCE}, {32768, 1030000, SOMETIMES}}, 32, 0, 0},
    /* The first call found everything cold, or the machine was busy. */
    {{{512, 196000, OFTEN}, {1024, 3500, OFTEN}, {32768, 80000, OFTEN}}, 32, 1000, 1200},
    /* A price below nothing is not known. */
    {{{1024, 1000, OFTEN}, {2048, 1000000, OFTEN}}, 32, 0, 0},
};

TEST_EACH(two_sizes_with_evidence_give_a_price_of_the_call_and_of_each_byte, 0,
          sizeof costs / sizeof *costs)
{
    for (int i = 0; i < 3 && costs[_i].timed[i].times != 0; i++)
        lasts(costs[_i].timed[i].len_bytes, costs[_i].timed[i].ns, costs[_i].timed[i].times);
    ck_assert_uint_ge(statistics_call_ns(&pool, costs[_i].asked_bytes), costs[_i].least_ns);
    ck_assert_uint_le(statistics_call_ns(&pool, costs[_i].asked_bytes), costs[_i].most_ns);
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
