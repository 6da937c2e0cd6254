/* test_times.c - the quantiles that p11-proxy bench prints. */
#include "../check_main.h"
#include "bench/times.h"

static struct times times, others;

static void set_up(void)
{
    times = others = (struct times){.count = 0};
}

/* Within a percent, and one nanosecond. */
static void is_about(int64_t ns, int64_t right_ns)
{
    ck_assert_int_ge(ns, right_ns - right_ns / 100 - 1);
    ck_assert_int_le(ns, right_ns + right_ns / 100 + 1);
}

TEST(quantiles_are_right_to_a_percent_from_nanoseconds_to_hours)
{
    for (int64_t unit_ns = 1; unit_ns <= INT64_C(10000000000); unit_ns *= 10) {
        set_up();
        for (int64_t i = 1; i <= 1000; i++)
            times_add(i % 2 == 0 ? &times : &others, i * unit_ns);
        times_merge(&times, &others);
        ck_assert_uint_eq(times.count, 1000);
        for (int64_t i = 200; i < 1000; i += 30)
            is_about(times_quantile(&times, (double)i / 1000), (i + 1) * unit_ns);
        ck_assert_int_eq(times.min_ns, unit_ns);
        ck_assert_int_eq(times.max_ns, 1000 * unit_ns);
        is_about(times_quantile(&times, 0), unit_ns);
        ck_assert_int_eq(times_quantile(&times, 1), 1000 * unit_ns);
    }
}

TEST(no_quantile_is_beyond_what_was_measured)
{
    for (int64_t ns = 1000; ns < 1020; ns++) {
        set_up();
        times_add(&times, ns);
        for (int i = 0; i <= 10; i++)
            ck_assert_int_eq(times_quantile(&times, i / 10.0), ns);
    }
}

TEST(what_is_shorter_than_the_clock_costs_counts_as_zero)
{
    times_add(&times, -5);
    times_add(&others, 7);
    times_merge(&times, &others);
    ck_assert_int_eq(times.min_ns, 0);
    ck_assert_int_eq(times_quantile(&times, 0.2), 0);
    ck_assert_int_eq(times.max_ns, 7);
    set_up();
    ck_assert_int_eq(times_quantile(&times, 0.5), 0);
}

int main(void)
{
    return test_main("times", set_up, NULL);
}
