/* test_clock.c - whatever the clocks do, no byte that was fetched longer ago than x-pool-max-age is served; and
 * how often a token is tried that fails.
 *
 * The proxy and its thread call this program's clock_gettime(), not the C library's.
 */
#include "run.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "words_seen.h"

#define NS_PER_MS 1000000LL
#define NS_PER_S  1000000000LL

/* What the clocks say on top of the true time: all of them, and the wall's alone. */
static _Atomic int64_t ahead_ns, wall_ahead_ns;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, now);
    int64_t ns = now->tv_sec * NS_PER_S + now->tv_nsec + atomic_load(&ahead_ns);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        ns += atomic_load(&wall_ahead_ns);
    now->tv_sec = (time_t)(ns / NS_PER_S);
    now->tv_nsec = (long)(ns % NS_PER_S);
    return rc;
}

enum { MAX_AGE_S = 60, HOUR_S = 3600 };

static const struct step {
    const char *name;
    int64_t ahead_ns;
    int64_t wall_ahead_ns;
} steps[] = {
    {"the age passes", MAX_AGE_S *NS_PER_S + NS_PER_MS, 0},
    {"time since boot goes back a second", -NS_PER_S, NS_PER_S},
    {"all clocks go back a second", -NS_PER_S, 0},
    {"all clocks go back far", -100 * NS_PER_S, 0},
    {"the machine sleeps for a moment", 0, 200 * NS_PER_MS},
    {"the machine sleeps for an hour", 0, HOUR_S *NS_PER_S},
    {"the wall clock is set back", 0, -200 * NS_PER_MS},
};

enum { STEPS = sizeof steps / sizeof *steps };

static CK_SESSION_HANDLE session;

/* Something is held, for five seconds already. */
static uint64_t begin(CK_C_INITIALIZE_ARGS *args)
{
    words_begin();
    proxy_before("counting", "x-pool-max-age: 1min");
    EXPECT(fn->C_Initialize(args), CKR_OK);
    session = open_session(0, 0);
    words_draw(session, 16, 8192);
    wait_until_quiet();
    atomic_fetch_add(&ahead_ns, 5 * NS_PER_S);
    uint64_t made = words_made();
    ck_assert_uint_le(words_draw(session, 16, 64), made);
    return words_made();
}

static void happen(const struct step *step)
{
    static const struct timespec a_tick = {.tv_nsec = 20 * NS_PER_MS};
    atomic_fetch_add(&ahead_ns, step->ahead_ns);
    atomic_fetch_add(&wall_ahead_ns, step->wall_ahead_ns);
    /* What the serve path reads moves on by ticks. */
    nanosleep(&a_tick, NULL);
}

static void nothing_is_served_from_before(const char *step, uint64_t made)
{
    for (int round = 0; round < 2; round++) {
        uint64_t lowest = words_draw(session, 16, 16384);
        ck_assert_msg(lowest > made, "%s: word %lu is served, of %lu made before", step,
                      (unsigned long)lowest, (unsigned long)made);
        wait_until_quiet();
    }
    words_check(1024);
}

static CK_C_INITIALIZE_ARGS *const ways[] = {&os_locking, &no_threads};

/* Check reads the clock too, when a test ends. */
static void true_time(void)
{
    atomic_store(&ahead_ns, 0);
    atomic_store(&wall_ahead_ns, 0);
}

START_TEST(what_was_held_when_a_clock_stepped_is_not_served)
{
    const struct step *step = &steps[_i % STEPS];
    uint64_t made = begin(ways[_i / STEPS]);
    happen(step);
    nothing_is_served_from_before(step->name, made);
    true_time();
}
END_TEST

/* Clocks are slewed all the time. */
START_TEST(what_is_young_is_served_though_the_clocks_drift)
{
    uint64_t made = begin(ways[_i]);
    happen(&(struct step){"they drift", 20 * NS_PER_S, 50 * NS_PER_MS});
    ck_assert_uint_le(words_draw(session, 16, 64), made);
    words_check(1024);
    true_time();
}
END_TEST

/* Not while the token fails, nor when it is back. */
START_TEST(a_failed_refill_makes_no_old_bytes_fresh)
{
    CK_BYTE buf[16];
    const struct step *step = &steps[_i % STEPS];
    uint64_t made = begin(ways[_i / STEPS]);
    knob("FAIL_CODE", "0x6"); /* CKR_FUNCTION_FAILED, which drops nothing */
    knob("FAIL_AFTER", "0");
    happen(step);
    for (int i = 0; i < 100; i++)
        EXPECT(fn->C_GenerateRandom(session, buf, sizeof buf), CKR_FUNCTION_FAILED);
    knob("FAIL_AFTER", NULL);
    nothing_is_served_from_before(step->name, made);
    true_time();
}
END_TEST

/* A minute, in steps of 5 ms, each with a request: the token answers it, and is seldom asked for more. */
START_TEST(a_token_that_fails_is_tried_less_and_less_often_and_not_given_up)
{
    enum { REQUEST = 24, STEPS_OF_5_MS = 12000, TRIES_LEAST = 10, TRIES_MOST = 20 };
    CK_BYTE buf[REQUEST];
    knob("FAIL_CODE", "0x6");
    knob("FAIL_AFTER", "0");
    words_begin();
    proxy_before("counting", "");
    EXPECT(fn->C_Initialize(&no_threads), CKR_OK);
    session = open_session(0, 0);
    for (int i = 0; i < STEPS_OF_5_MS; i++) {
        EXPECT(fn->C_GenerateRandom(session, buf, sizeof buf), CKR_FUNCTION_FAILED);
        atomic_fetch_add(&ahead_ns, 5 * NS_PER_MS);
    }
    unsigned tries =
        target_calls("C_GenerateRandom") - target_calls_with("C_GenerateRandom", " len=24 ");
    true_time();
    ck_assert_uint_ge(tries, TRIES_LEAST);
    ck_assert_uint_le(tries, TRIES_MOST);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, what_was_held_when_a_clock_stepped_is_not_served, 0, 2 * STEPS);
    tcase_add_loop_test(tcase, what_is_young_is_served_though_the_clocks_drift, 0, 2);
    tcase_add_loop_test(tcase, a_failed_refill_makes_no_old_bytes_fresh, 0, 2 * STEPS);
    tcase_add_test(tcase, a_token_that_fails_is_tried_less_and_less_often_and_not_given_up);
}

int main(void)
{
    return run_tests("clock", add_tests);
}
