/* test_durations.c - how much a token is asked for at once, by how long its calls last.
 *
 * The proxy and the target call this program's clock_gettime() and nanosleep(), not the C library's: time goes on
 * while the target sleeps, and hardly otherwise, however long the machine lets this program wait.
 */
#include "run.h"

#include <stdatomic.h>
#include <time.h>

#include "words_seen.h"

#define NS_PER_S 1000000000LL

enum { A_LOOK_NS = 100 };

static _Atomic int64_t now_ns = 1000 * NS_PER_S;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int64_t ns = atomic_fetch_add(&now_ns, A_LOOK_NS);
    (void)clock;
    now->tv_sec = (time_t)(ns / NS_PER_S);
    now->tv_nsec = (long)(ns % NS_PER_S);
    return 0;
}

int nanosleep(const struct timespec *duration, struct timespec *left)
{
    (void)left;
    atomic_fetch_add(&now_ns, duration->tv_sec * NS_PER_S + duration->tv_nsec);
    return 0;
}

static CK_SESSION_HANDLE session;

static void begin(void)
{
    words_begin();
    proxy_before("counting", "x-pool-threads: never\nx-pool-max-age: 60min");
    initialize();
    session = open_session(0, 0);
}

/* Where it is the call that costs, the token is asked for more at once. */
START_TEST(calls_grow_where_bytes_cost_nothing)
{
    knob("DELAY_US", "20000");
    begin();
    for (int i = 0; i < 20; i++)
        words_draw(session, 32, 32768);
    ck_assert_uint_ge(target_longest_request(), 8192);
}
END_TEST

/* Whoever needs a few bytes at once waits for all of a call: only where it is the same wait, it is for a whole pool. */
START_TEST(a_whole_pool_comes_by_calls_that_are_long_anyway)
{
    static const char *const delays_us[] = {"1000", "20000", "0"};
    knob("DELAY_US", delays_us[_i]);
    begin();
    for (int i = 0; i < 20; i++)
        words_draw(session, 32, 32768);
    if (_i < 2)
        ck_assert_uint_gt(target_longest_request(), 49152);
    else
        ck_assert_uint_eq(target_longest_request(), 32768);
}
END_TEST

/* 1 KiB takes 20 ms, of which other callers of a serial token would have to wait for every one. */
START_TEST(calls_stay_short_where_bytes_cost)
{
    knob("BYTE_NS", "20000");
    begin();
    words_draw(session, 32, 8192);
    ck_assert_uint_le(target_longest_request(), 1024);
    ck_assert_uint_ge(target_calls("C_GenerateRandom"), 8192 / 512);
}
END_TEST

/* A process that was stopped, a machine that was busy: the token is not to blame. */
START_TEST(single_slow_calls_shrink_nothing)
{
    begin();
    for (int i = 0; i < 300; i++)
        words_draw(session, 1024, 1024);
    unsigned long longest = target_longest_request();
    ck_assert_uint_gt(longest, 8192);
    for (int hiccup = 0; hiccup < 20; hiccup++) {
        unsigned before = target_calls("C_GenerateRandom");
        knob("DELAY_US", "8000");
        while (target_calls("C_GenerateRandom") == before)
            words_draw(session, 1024, 1024);
        knob("DELAY_US", NULL);
        words_draw(session, 1024, 65536);
    }
    unsigned before = target_calls("C_GenerateRandom");
    for (int i = 0; i < 4; i++)
        words_draw(session, 1024, 65536);
    ck_assert_uint_le(target_calls("C_GenerateRandom") - before, 4 * 65536 / longest * 2 + 4);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, calls_grow_where_bytes_cost_nothing);
    tcase_add_loop_test(tcase, a_whole_pool_comes_by_calls_that_are_long_anyway, 0, 3);
    tcase_add_test(tcase, calls_stay_short_where_bytes_cost);
    tcase_add_test(tcase, single_slow_calls_shrink_nothing);
}

int main(void)
{
    return run_tests("durations", add_tests);
}
