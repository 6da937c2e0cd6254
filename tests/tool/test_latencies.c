/* test_latencies.c - the tool's distribution of times tells them to within a few percent. */
#include <check.h>
#include <stdlib.h>

#include "../hang.h"
#include "bench/latencies.h"

static struct latencies latencies;

static void start(void)
{
    latencies = (struct latencies){0};
}

/* What a single time is told as, where the largest does not cap it. */
static int64_t told(int64_t ns)
{
    struct latencies one = {0};

    latencies_add(&one, ns);
    one.max_ns = INT64_MAX;
    return latencies_quantile(&one, 0);
}

START_TEST(nothing_is_told_as_zero)
{
    ck_assert_int_eq(latencies_quantile(&latencies, 0.5), 0);
}
END_TEST

START_TEST(short_times_are_exact)
{
    for (int64_t ns = 0; ns < 64; ns++)
        ck_assert_int_eq(told(ns), ns);
}
END_TEST

START_TEST(no_time_is_told_shorter_or_much_longer)
{
    for (int64_t ns = 64; ns < (int64_t)10 * 1000 * 1000 * 1000; ns += ns / 50) {
        ck_assert_int_ge(told(ns), ns);
        ck_assert_int_le(told(ns), ns + ns / 31);
    }
}
END_TEST

START_TEST(places_are_in_order)
{
    for (unsigned i = 1; i < LATENCY_PLACES; i++)
        ck_assert_int_gt(latencies_place_ns(i), latencies_place_ns(i - 1));
}
END_TEST

START_TEST(a_time_beyond_the_scale_counts_and_is_the_longest)
{
    latencies_add(&latencies, INT64_MAX);
    ck_assert_int_eq(latencies_quantile(&latencies, 0.5), INT64_MAX);
}
END_TEST

START_TEST(quantiles_of_a_hundred_times)
{
    for (int64_t ns = 100; ns >= 1; ns--)
        latencies_add(&latencies, ns * 1000);
    ck_assert_int_eq(latencies.min_ns, 1000);
    ck_assert_int_eq(latencies.max_ns, 100000);
    ck_assert_int_ge(latencies_quantile(&latencies, 0.5), 51000);
    ck_assert_int_le(latencies_quantile(&latencies, 0.5), 53000);
    ck_assert_int_eq(latencies_quantile(&latencies, 0.99), 100000);
}
END_TEST

START_TEST(joining_is_adding_all)
{
    struct latencies other = {0};

    latencies_join(&latencies, &other);
    ck_assert_uint_eq(latencies.count, 0);
    latencies_add(&other, 5);
    latencies_join(&latencies, &other);
    other = (struct latencies){0};
    latencies_add(&other, 3);
    latencies_add(&other, 9);
    latencies_join(&latencies, &other);
    ck_assert_uint_eq(latencies.count, 3);
    ck_assert_int_eq(latencies.min_ns, 3);
    ck_assert_int_eq(latencies.max_ns, 9);
    ck_assert_int_eq(latencies_quantile(&latencies, 0.5), 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("latencies");
    TCase *tcase = tcase_create("latencies");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, HANG_S);
    tcase_add_checked_fixture(tcase, start, NULL);
    tcase_add_test(tcase, nothing_is_told_as_zero);
    tcase_add_test(tcase, short_times_are_exact);
    tcase_add_test(tcase, no_time_is_told_shorter_or_much_longer);
    tcase_add_test(tcase, places_are_in_order);
    tcase_add_test(tcase, a_time_beyond_the_scale_counts_and_is_the_longest);
    tcase_add_test(tcase, quantiles_of_a_hundred_times);
    tcase_add_test(tcase, joining_is_adding_all);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
