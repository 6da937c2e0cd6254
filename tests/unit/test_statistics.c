/* test_statistics.c - what a draw would have cost, by the fills that were timed. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../hang.h"
#include "statistics.h"

static struct statistics_slot slot;

static void begin(void)
{
    memset(&slot, 0, sizeof slot);
}

static void lasts(uint64_t len_bytes, uint64_t ns)
{
    statistic_set(&slot.least_ns[statistics_size(len_bytes)], ns);
}

START_TEST(sizes_are_powers_of_two)
{
    ck_assert_uint_eq(statistics_size(1), 0);
    ck_assert_uint_eq(statistics_size(32), 5);
    ck_assert_uint_eq(statistics_size(33), 6);
    ck_assert_uint_eq(statistics_size(1024), 10);
    ck_assert_uint_eq(statistics_size(UINT64_MAX), STATISTICS_SIZES - 1);
}
END_TEST

START_TEST(nothing_seen_is_nothing_known)
{
    begin();
    ck_assert_uint_eq(statistics_call_ns(&slot, 32), 0);
}
END_TEST

START_TEST(one_size_is_all_that_is_known)
{
    begin();
    lasts(1024, 5000);
    ck_assert_uint_eq(statistics_call_ns(&slot, 32), 5000);
    ck_assert_uint_eq(statistics_call_ns(&slot, 1024), 5000);
    ck_assert_uint_eq(statistics_call_ns(&slot, 4096), 5000);
}
END_TEST

START_TEST(two_sizes_give_a_price_for_the_call_and_for_each_byte)
{
    begin();
    lasts(1024, 20000000 + 1024 * 1000); /* a card: 20 ms, and 1 us a byte */
    lasts(2048, 20000000 + 2048 * 1000);
    ck_assert_uint_eq(statistics_call_ns(&slot, 24), 20024000);
}
END_TEST

START_TEST(a_round_trip_costs_the_same_whatever_it_carries)
{
    begin();
    lasts(1024, 1000000);
    lasts(32768, 1000000);
    ck_assert_uint_eq(statistics_call_ns(&slot, 16), 1000000);
}
END_TEST

/* The first call found everything cold, or the machine was busy. */
START_TEST(a_longer_call_that_took_less_time_says_it_of_shorter_ones)
{
    begin();
    lasts(32, 196000);
    lasts(512, 1500);
    lasts(32768, 40000);
    ck_assert_uint_eq(statistics_call_ns(&slot, 32), 1500);
    begin();
    lasts(1024, 196000);
    lasts(32768, 40000);
    ck_assert_uint_le(statistics_call_ns(&slot, 32), 40000);
}
END_TEST

START_TEST(never_less_than_nothing)
{
    begin();
    lasts(1024, 10);
    lasts(2048, 1000000);
    ck_assert_uint_eq(statistics_call_ns(&slot, 1), 1);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("statistics");
    Suite *suite = suite_create("statistics");
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(tcase, HANG_S);
    tcase_add_test(tcase, sizes_are_powers_of_two);
    tcase_add_test(tcase, nothing_seen_is_nothing_known);
    tcase_add_test(tcase, one_size_is_all_that_is_known);
    tcase_add_test(tcase, two_sizes_give_a_price_for_the_call_and_for_each_byte);
    tcase_add_test(tcase, a_round_trip_costs_the_same_whatever_it_carries);
    tcase_add_test(tcase, a_longer_call_that_took_less_time_says_it_of_shorter_ones);
    tcase_add_test(tcase, never_less_than_nothing);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
