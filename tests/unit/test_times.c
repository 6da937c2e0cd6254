/* test_times.c - the quantiles that p11-proxy bench prints. */
#include "../check_main.h"
#include "bench/bench.h"

static struct times times, others;

static void set_up(void)
{
    times = others = (struct times){.count = 0};
}

TEST(quantiles_are_right_to_a_percent_from_nanoseconds_to_hours)
{
    for (int64_t unit_ns = 1; unit_ns <= INT64_C(10000000000); unit_ns *= 10) {
        set_up();
        for (int64_t i = 1; i <= 1000; i++)
            times_add(i % 2 == 0 ? &times : &others, i * unit_ns);
        times_merge(&times, &others);
        for (int64_t i = 1; i <= 1000; i += i < 100 ? 1 : 30) {
            int64_t ns = times_quantile(&times, (double)i / 1000);
            ck_assert_int_ge(ns, i * unit_ns);
            ck_assert_int_le(ns, i * unit_ns + i * unit_ns / 100 + 1);
        }
        ck_assert_int_eq(times_quantile(&times, 0), times_quantile(&times, 0.001));
    }
}

TEST(what_is_shorter_than_the_clock_costs_counts_as_zero)
{
    ck_assert_int_eq(times_quantile(&times, 0.5), 0);
    times_add(&times, -5);
    times_add(&times, 7);
    ck_assert_int_eq(times_quantile(&times, 0.2), 0);
    ck_assert_int_eq(times_quantile(&times, 1), 7);
}

int main(void)
{
    return test_main("times", set_up, NULL);
}
