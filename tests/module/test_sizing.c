/* test_sizing.c - which sizes a token takes, and how long its calls last, is learned from what it does, not from what it says. */
#include "served.h"

#include <time.h>

#include "clock.h"

static CK_SESSION_HANDLE session;
static CK_BYTE bytes[128 * 1024];

enum { KIB = 1024, FEW_REFUSALS = 24, FEW_LINES = 12 };

/* What tokens say to a request that is too long for them. */
static const CK_RV codes[] = {CKR_GENERAL_ERROR,  CKR_FUNCTION_FAILED,  CKR_ARGUMENTS_BAD,
                              CKR_DATA_LEN_RANGE, CKR_DEVICE_ERROR,     CKR_DEVICE_MEMORY,
                              CKR_DATA_INVALID,   CKR_BUFFER_TOO_SMALL, CKR_FUNCTION_NOT_SUPPORTED};
static const char *const settings[] = {"x-pool-max-age: 1min",
                                       "x-pool-max-age: 1min\nx-pool-threads: never"};

enum { CODES = sizeof codes / sizeof *codes };

TEST_EACH(a_token_that_refuses_more_than_256_bytes_is_asked_for_less, 0, 2 * CODES)
{
    enum { DRAWS = 2000 };
    script("C_GenerateRandom over 256: fail 0x%lx", codes[_i % CODES]);
    session = begin(settings[_i / CODES]);
    for (int i = 0; i < DRAWS; i++)
        draw(session, 16, 16);
    ck_assert_uint_le(CALLS(C_GenerateRandom), DRAWS / 2);
    ck_assert_uint_le(CALLS(C_GenerateRandom, .outcome = FAILED), FEW_REFUSALS);
    ck_assert_uint_le(messages_with(""), FEW_LINES);
    served_once(DRAWS * 2);
}

/* It takes less than it took before: another application has its memory, say. */
TEST_EACH(a_limit_that_shrinks_later_is_learned_too, 0, 2 * CODES)
{
    static const CK_ULONG limits[] = {4096, 512, 100, 32, 8};
    session = begin(settings[_i / CODES]);
    draw(session, 16, 16 * KIB);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        script("C_GenerateRandom over %lu: fail 0x%lx", limits[i], codes[_i % CODES]);
        unsigned calls = CALLS(C_GenerateRandom);
        unsigned refused = CALLS(C_GenerateRandom, .outcome = FAILED);
        draw(session, 8, 16 * KIB);
        ck_assert_uint_le(CALLS(C_GenerateRandom, .outcome = FAILED) - refused, FEW_REFUSALS);
        ck_assert_uint_le(CALLS(C_GenerateRandom) - calls, 2 * KIB + FEW_REFUSALS);
    }
    ck_assert_uint_le(messages_with(""), 5 * FEW_LINES);
    served_once(6 * 2 * KIB);
}

static const struct limits {
    CK_ULONG min;
    CK_ULONG max;
    CK_RV code;
} limits[] = {{8, 1024, CKR_ARGUMENTS_BAD},  {1, 256, CKR_ARGUMENTS_BAD},
              {1, 32, CKR_GENERAL_ERROR},    {1, 250, CKR_DATA_LEN_RANGE},
              {64, 128, CKR_DATA_LEN_RANGE}, {8, 8, CKR_DATA_INVALID},
              {512, 4096, CKR_DEVICE_ERROR}};

enum { LIMITS = sizeof limits / sizeof *limits };

static void limit(const struct limits *l)
{
    script("C_GenerateRandom under %lu: fail 0x%lx; C_GenerateRandom over %lu: fail 0x%lx", l->min,
           l->code, l->max, l->code);
}

TEST_EACH(small_requests_succeed_whatever_sizes_the_token_takes, 0, 2 * LIMITS)
{
    static const CK_ULONG sizes[] = {1, 7, 8, 9, 31, 32, 33, 255, 256, 257, 1000, 1023, 1024};
    limit(&limits[_i % LIMITS]);
    session = begin(settings[_i / LIMITS]);
    for (int round = 0; round < 20; round++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            draw(session, sizes[i], sizes[i]);
    ck_assert_uint_le(CALLS(C_GenerateRandom, .outcome = FAILED), FEW_REFUSALS);
    served_once(100);
}

/* One column of codes, whether something is held, all is dropped just now, or the filler was refused first. */
TEST_EACH(the_answer_never_depends_on_what_is_held, 0, 2 * LIMITS)
{
    const struct limits *l = &limits[_i % LIMITS];
    limit(l);
    session = begin(settings[_i / LIMITS]);
    for (CK_ULONG len = 1; len <= 2048; len += 31) {
        CK_RV rv = len <= 1024 || len <= l->max ? CKR_OK : l->code;
        EXPECT(draw_or_fail(session, len), rv);
        EXPECT(draw_or_fail(session, len), rv);
        EXPECT(fn->C_SeedRandom(session, bytes, 8), CKR_OK);
        EXPECT(draw_or_fail(session, len), rv);
    }
    served_once(100);
}

/* Then there is no room in the pool for what a caller fetches, so each request goes to the token by itself. */
TEST_EACH(the_answer_is_the_same_while_the_filler_is_in_the_token, 0, LIMITS)
{
    session = begin("x-pool-max-age: 1min");
    script("C_GenerateRandom by filler: hold");
    DRAW_UNTIL(session, script_held() == 1);
    limit(&limits[_i]);
    for (CK_ULONG len = 1; len <= 1024; len += 31) {
        EXPECT(fn->C_SeedRandom(session, bytes, 8), CKR_OK);
        EXPECT(draw_or_fail(session, len), CKR_OK);
    }
    script_release();
    served_once(100);
}

TEST_EACH(large_requests_get_the_tokens_own_answer, 0, LIMITS)
{
    static const CK_ULONG sizes[] = {1025, 4096, 65535};
    const struct limits *l = &limits[_i];
    limit(l);
    session = begin("");
    draw(session, 16, KIB);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned calls = CALLS(C_GenerateRandom, .by = CALLERS, .bytes = sizes[i]);
        EXPECT(draw_or_fail(session, sizes[i]), sizes[i] <= l->max ? CKR_OK : l->code);
        ck_assert_uint_eq(CALLS(C_GenerateRandom, .by = CALLERS, .bytes = sizes[i]), calls + 1);
    }
}

/* Each caller has the code from the token itself, the filler asks rarely, and no restart is needed. */
TEST_EACH(a_token_that_always_fails_is_asked_once_a_request_and_heals, 0, 6)
{
    static const CK_RV failures[] = {CKR_DATA_INVALID,    CKR_ARGUMENTS_BAD,
                                     CKR_DEVICE_ERROR,    CKR_USER_NOT_LOGGED_IN,
                                     CKR_FUNCTION_FAILED, CKR_GENERAL_ERROR};
    enum { DRAWS = 200, SOME_TRIES = 40 };
    script("C_GenerateRandom: fail 0x%lx", failures[_i]);
    session = begin("");
    for (int i = 0; i < DRAWS; i++)
        EXPECT(draw_or_fail(session, 32), failures[_i]);
    ck_assert_uint_ge(CALLS(C_GenerateRandom, .by = CALLERS), DRAWS);
    ck_assert_uint_le(CALLS(C_GenerateRandom), DRAWS + SOME_TRIES);
    ck_assert_uint_le(messages_with(""), FEW_LINES);
    script("C_GenerateRandom: ok");
    EXPECT(draw_or_fail(session, 32), CKR_OK);
    draw_until_held(session);
    served_once(4);
}

/* A minute, in steps of 5 ms, each with a request: the token answers it, and is seldom asked for more. */
TEST(a_token_that_fails_is_tried_less_and_less_often_and_not_given_up)
{
    enum { REQUEST = 24, STEPS = 12000, TRIES_LEAST = 6, TRIES_MOST = 30 };
    static const struct timespec step = {.tv_nsec = 5 * NS_PER_MS};
    script("C_GenerateRandom: fail 0x6");
    session = begin("x-pool-threads: never");
    clock_stop();
    for (int i = 0; i < STEPS; i++) {
        EXPECT(draw_or_fail(session, REQUEST), CKR_FUNCTION_FAILED);
        nanosleep(&step, NULL);
    }
    clock_true();
    unsigned tries = CALLS(C_GenerateRandom) - CALLS(C_GenerateRandom, .bytes = REQUEST);
    ck_assert_uint_ge(tries, TRIES_LEAST);
    ck_assert_uint_le(tries, TRIES_MOST);
}

TEST_EACH(while_the_pool_lasts_an_outage_is_not_noticed, 0, 3)
{
    static const CK_RV outages[] = {CKR_FUNCTION_FAILED, CKR_GENERAL_ERROR, CKR_HOST_MEMORY};
    session = begin("x-pool-max-age: 1min");
    draw_until_filled(session);
    script("C_GenerateRandom: fail 0x%lx", outages[_i]);
    EXPECT(draw_or_fail(session, 16), CKR_OK);
    WAIT_UNTIL(draw_or_fail(session, 64) != CKR_OK);
    unsigned by_filler = CALLS(C_GenerateRandom, .by = FILLER);
    for (int i = 0; i < 1000; i++)
        EXPECT(draw_or_fail(session, 64), outages[_i]);
    ck_assert_uint_le(CALLS(C_GenerateRandom, .by = FILLER) - by_filler, 40);
    script("C_GenerateRandom: ok");
    draw_until_held(session);
    served_once(16);
}

/* How long a call lasts, by a clock that goes on while the target sleeps, and hardly otherwise. */
static void begin_timed(const char *what)
{
    script("C_GenerateRandom: last %s", what);
    session = begin("x-pool-threads: never\nx-pool-max-age: 60min");
    clock_stop();
}

enum { GROWING_CALLS = 5 };

/* A caller of a few bytes waits for the whole call, so a call asks for a whole pool only if that takes no longer. */
TEST_EACH(calls_grow_where_bytes_cost_nothing, 0, 2)
{
    static const char *const lasts[] = {"1ms", "20ms"};
    begin_timed(lasts[_i]);
    for (int i = 0; i < 20; i++)
        draw(session, 32, 32 * KIB);
    clock_true();
    ck_assert_uint_le(CALLS(C_GenerateRandom), 20 * 32 / 64 + GROWING_CALLS);
    ck_assert_uint_gt(target_longest_request(), 48 * KIB);
    served_once(80 * KIB);
}

/* 1 KiB takes 20 ms, of which other callers of a serial token would have to wait for every one. */
TEST(calls_stay_short_where_bytes_cost)
{
    begin_timed("0ns and 20us a byte");
    draw(session, 32, 8 * KIB);
    clock_true();
    ck_assert_uint_le(target_longest_request(), KIB);
    served_once(KIB);
}

/* A process that was stopped, a machine that was busy: the token is not to blame. */
TEST(single_slow_calls_shrink_nothing)
{
    begin_timed("0ns");
    for (int i = 0; i < 300; i++)
        draw(session, KIB, KIB);
    CK_ULONG longest = target_longest_request();
    ck_assert_uint_gt(longest, 8 * KIB);
    for (int hiccup = 0; hiccup < 10; hiccup++) {
        unsigned before = CALLS(C_GenerateRandom);
        script("C_GenerateRandom: last 8ms once");
        while (CALLS(C_GenerateRandom) == before)
            draw(session, KIB, KIB);
        draw(session, KIB, 64 * KIB);
    }
    unsigned before = CALLS(C_GenerateRandom);
    for (int i = 0; i < 4; i++)
        draw(session, KIB, 64 * KIB);
    clock_true();
    ck_assert_uint_le(CALLS(C_GenerateRandom) - before, 4 * 64 * KIB / longest * 2 + 4);
}

int main(void)
{
    return test_main("sizing", set_up, tear_down);
}
