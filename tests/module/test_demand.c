/* test_demand.c - how much is fetched follows what was served, and which sizes the token takes and how long its calls last,
 * which is learned from what it does, not from what it says. */
#include "fixture.h"

#include <time.h>

#include "clock.h"

enum { KIB = 1024, POOL_BYTES = 64 * KIB, FEW_REFUSALS = 24, FEW_LINES = 12, GROWING_CALLS = 5 };

static unsigned long made_bytes(void)
{
    return (unsigned long)words_made() * WORD_BYTES;
}

TEST(who_draws_nothing_causes_no_call)
{
    CK_SLOT_ID slot;
    CK_ULONG count = 1;
    proxy_with("");
    initialize();
    EXPECT(fn->C_GetSlotList(CK_TRUE, &slot, &count), CKR_OK);
    EXPECT(fn->C_GetTokenInfo(slot, &(CK_TOKEN_INFO){0}), CKR_OK);
    EXPECT(fn->C_CloseSession(open_session(0, 0)), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    ck_assert_uint_eq(target_calls_in_all(), 6);
}

/* A program that draws once never has a thread. */
TEST_EACH(the_first_fetch_is_1_KiB_and_what_it_holds_costs_no_call_and_no_thread, 0, 8)
{
    static const CK_ULONG sizes[] = {1, 16, 512, KIB};
    unsigned threads = threads_now();
    begin(_i / 4 == 0 ? "x-pool-max-age: 1min" : "x-pool-threads: never");
    draw(session, sizes[_i % 4], KIB);
    ck_assert_uint_eq(CALLS(C_GenerateRandom), 1);
    ck_assert_uint_eq(target_longest_request(), KIB);
    ck_assert_uint_eq(threads_now(), threads);
    ck_assert_uint_eq(CALLS(C_OpenSession), 1);
    ck_assert_uint_eq(CALLS(C_GetTokenInfo, .by = CALLERS), CALLS(C_GetTokenInfo));
}

static atomic_uint failures;

enum { CYCLES = 500 };

static void *open_draw_and_close(void *unused)
{
    uint8_t bytes[16];
    for (int i = 0; i < CYCLES; i++) {
        CK_SESSION_HANDLE own;
        if (fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &own) != CKR_OK ||
            fn->C_GenerateRandom(own, bytes, sizeof bytes) != CKR_OK ||
            fn->C_CloseSession(own) != CKR_OK || served(bytes, sizeof bytes) == UINT64_MAX)
            atomic_fetch_add(&failures, 1);
    }
    return unused;
}

/* Sessions are opened and closed without a login: the bytes stay. */
TEST_EACH(opening_drawing_and_closing_takes_few_calls, 0, 4)
{
    unsigned count = _i % 2 == 0 ? 1 : 4;
    proxy_with(_i / 2 == 0 ? "x-pool-max-age: 1min"
                           : "x-pool-max-age: 1min\nx-pool-threads: never");
    initialize();
    start_threads(count, open_draw_and_close, NULL);
    join_threads();
    ck_assert_uint_eq(failures, 0);
    /* While one thread fetches, however long the machine lets it wait, the others ask the token as without a pool. */
    ck_assert_uint_le(CALLS(C_GenerateRandom), count == 1 ? CYCLES / 8 : count * CYCLES);
    ck_assert_uint_le(made_bytes(), count * CYCLES * 16 + POOL_BYTES);
    /* One of each by the application, and of ours a few at most. Threads that draw first at the same time may each ask. */
    ck_assert_uint_eq(CALLS(C_OpenSession, .by = CALLERS), count * CYCLES);
    ck_assert_uint_le(CALLS(C_OpenSession, .by = FILLER), count * CYCLES / 8);
    ck_assert_uint_le(CALLS(C_GetTokenInfo), count + CALLS(C_OpenSession, .by = FILLER));
    ck_assert_uint_eq(CALLS(C_GetSessionInfo), 0);
}

/* Each last close logs out, and each life is as short: no more calls than bare, and none of more than 1 KiB. */
TEST_EACH(a_login_each_time_costs_no_call_more_than_bare, 0, 2)
{
    proxy_with(_i == 0 ? "" : "x-pool-threads: never");
    initialize();
    for (int i = 0; i < CYCLES; i++) {
        session = open_session(0, 0);
        EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_OK);
        ck_assert_uint_eq(draw_word(session).login, 1);
        EXPECT(fn->C_CloseSession(session), CKR_OK);
    }
    ck_assert_uint_le(CALLS(C_GenerateRandom), CYCLES);
    ck_assert_uint_le(target_longest_request(), KIB);
    ck_assert_uint_le(CALLS(C_OpenSession), CYCLES);
}

TEST(steady_demand_is_met_by_few_large_calls)
{
    begin("x-pool-threads: never\nx-pool-max-age: 60min");
    clock_stop();
    for (int i = 0; i < 20; i++)
        draw(session, 32, 32 * KIB);
    unsigned before = CALLS(C_GenerateRandom);
    draw(session, 32, 64 * KIB);
    ck_assert_uint_le(CALLS(C_GenerateRandom) - before, 8);
    ck_assert_uint_le(made_bytes(), (20 * 32 + 64) * KIB + POOL_BYTES);
    clock_true();
}

/* One small request, a long pause, and then fifty: all of them could have been fetched in the pause. */
TEST(a_slow_token_delays_neither_start_nor_warm_callers)
{
    script("C_GenerateRandom: last 50ms");
    begin("x-pool-max-age: 1min");
    ck_assert_uint_eq(CALLS(C_GenerateRandom), 0);
    draw_word(session);
    ck_assert_uint_eq(CALLS(C_GenerateRandom, .by = CALLERS), 1);
    let_filler_work();
    unsigned own = CALLS(C_GenerateRandom, .by = CALLERS);
    draw(session, 16, 800);
    ck_assert_uint_eq(CALLS(C_GenerateRandom, .by = CALLERS), own);
}

TEST_EACH(without_a_thread_callers_read_ahead, 0, 2)
{
    unsigned threads = threads_now();
    begin_with(_i == 0 ? &no_threads : &os_locking, _i == 0 ? "" : "x-pool-threads: never");
    draw(session, 16, 16 * KIB);
    ck_assert_uint_eq(threads_now(), threads);
    ck_assert_uint_eq(CALLS(C_OpenSession), 1);
    ck_assert_uint_le(CALLS(C_GenerateRandom), 16);
}

static CK_BYTE bytes[8];

/* What tokens say to a request that is too long for them. */
static const CK_RV codes[] = {CKR_GENERAL_ERROR,  CKR_FUNCTION_FAILED,  CKR_ARGUMENTS_BAD,
                              CKR_DATA_LEN_RANGE, CKR_DEVICE_ERROR,     CKR_DEVICE_MEMORY,
                              CKR_DATA_INVALID,   CKR_BUFFER_TOO_SMALL, CKR_FUNCTION_NOT_SUPPORTED};
static const char *const settings[] = {"x-pool-max-age: 1min",
                                       "x-pool-max-age: 1min\nx-pool-threads: never"};

enum { CODES = COUNT_OF(codes) };

/* It takes less than it took before: another application has its memory, say. */
TEST_EACH(a_limit_is_learned_though_it_shrinks_later, 0, 2 * CODES)
{
    static const CK_ULONG limits[] = {4096, 512, 100, 32, 8};
    begin(settings[_i / CODES]);
    draw(session, 16, 16 * KIB);
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        script("C_GenerateRandom over %lu: fail 0x%lx", limits[i], codes[_i % CODES]);
        unsigned calls = CALLS(C_GenerateRandom);
        unsigned refused = CALLS(C_GenerateRandom, .outcome = FAILED);
        draw(session, 8, 16 * KIB);
        ck_assert_uint_le(CALLS(C_GenerateRandom, .outcome = FAILED) - refused, FEW_REFUSALS);
        ck_assert_uint_le(CALLS(C_GenerateRandom) - calls, 2 * KIB + FEW_REFUSALS);
    }
    ck_assert_uint_le(messages_with(""), 5 * FEW_LINES);
}

static const struct limits {
    CK_ULONG min;
    CK_ULONG max;
    CK_RV code;
} limits[] = {{8, 1024, CKR_ARGUMENTS_BAD},  {1, 256, CKR_ARGUMENTS_BAD},
              {1, 32, CKR_GENERAL_ERROR},    {1, 250, CKR_DATA_LEN_RANGE},
              {64, 128, CKR_DATA_LEN_RANGE}, {8, 8, CKR_DATA_INVALID},
              {512, 4096, CKR_DEVICE_ERROR}};

enum { LIMITS = COUNT_OF(limits) };

static void limit(const struct limits *l)
{
    script("C_GenerateRandom under %lu: fail 0x%lx; C_GenerateRandom over %lu: fail 0x%lx", l->min,
           l->code, l->max, l->code);
}

/* Whether something is held, all is dropped just now, or the filler was refused first. */
TEST_EACH(small_requests_succeed_whatever_sizes_the_token_takes, 0, 2 * LIMITS)
{
    limit(&limits[_i % LIMITS]);
    begin(settings[_i / LIMITS]);
    for (CK_ULONG len = 1; len <= KIB; len += 31) {
        EXPECT(draw_or_fail(session, len), CKR_OK);
        EXPECT(draw_or_fail(session, len), CKR_OK);
        EXPECT(fn->C_SeedRandom(session, bytes, 8), CKR_OK);
        EXPECT(draw_or_fail(session, len), CKR_OK);
    }
    ck_assert_uint_le(CALLS(C_GenerateRandom, .outcome = FAILED), FEW_REFUSALS);
    ck_assert_uint_ge(served_words(), 100);
}

/* Then there is no room in the pool for what a caller fetches, so each request goes to the token by itself. */
TEST_EACH(they_do_while_the_filler_is_in_the_token_too, 0, LIMITS)
{
    begin("x-pool-max-age: 1min");
    script("C_GenerateRandom by filler: hold");
    DRAW_UNTIL(session, script_held() == 1);
    limit(&limits[_i]);
    for (CK_ULONG len = 1; len <= 1024; len += 31) {
        EXPECT(fn->C_SeedRandom(session, bytes, 8), CKR_OK);
        EXPECT(draw_or_fail(session, len), CKR_OK);
    }
    script_release();
    ck_assert_uint_ge(served_words(), 100);
}

TEST_EACH(large_requests_get_the_tokens_own_answer, 0, LIMITS)
{
    static const CK_ULONG sizes[] = {1025, 4096, 65535};
    const struct limits *l = &limits[_i];
    limit(l);
    begin("");
    draw(session, 16, KIB);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        unsigned calls = CALLS(C_GenerateRandom, .by = CALLERS, .bytes = sizes[i]);
        EXPECT(draw_or_fail(session, sizes[i]), sizes[i] <= l->max ? CKR_OK : l->code);
        ck_assert_uint_eq(CALLS(C_GenerateRandom, .by = CALLERS, .bytes = sizes[i]), calls + 1);
    }
}

/* _i % 2: something is held when it begins. Then each caller has the code from the token itself, the filler asks
 * rarely, and no restart is needed. */
TEST_EACH(a_token_that_fails_is_asked_once_a_request_and_heals, 0, 6)
{
    static const CK_RV outages[] = {CKR_FUNCTION_FAILED, CKR_GENERAL_ERROR, CKR_HOST_MEMORY};
    enum { DRAWS = 1000, SOME_TRIES = 40 };
    begin("x-pool-max-age: 1min");
    if (_i % 2 == 1)
        draw_until_filled(session);
    script("C_GenerateRandom: fail 0x%lx", outages[_i / 2]);
    EXPECT(draw_or_fail(session, 16), _i % 2 == 1 ? CKR_OK : outages[_i / 2]);
    WAIT_UNTIL(draw_or_fail(session, 64) != CKR_OK);
    unsigned calls = CALLS(C_GenerateRandom);
    for (int i = 0; i < DRAWS; i++)
        EXPECT(draw_or_fail(session, 64), outages[_i / 2]);
    ck_assert_uint_ge(CALLS(C_GenerateRandom), calls + DRAWS);
    ck_assert_uint_le(CALLS(C_GenerateRandom), calls + DRAWS + SOME_TRIES);
    ck_assert_uint_le(messages_with(""), FEW_LINES);
    script("C_GenerateRandom: ok");
    draw_until_held(session);
}

/* A minute, in steps of 5 ms, each with a request: the token answers it, and is seldom asked for more. */
TEST(a_token_that_fails_is_tried_less_and_less_often_and_not_given_up)
{
    enum { REQUEST = 24, STEPS = 12000, TRIES_LEAST = 6, TRIES_MOST = 30 };
    static const struct timespec step = {.tv_nsec = 5 * NS_PER_MS};
    script("C_GenerateRandom: fail 0x6");
    begin("x-pool-threads: never");
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

/* How long a call lasts, by a clock that goes on while the target sleeps, and hardly otherwise. */
static void begin_timed(const char *what)
{
    script("C_GenerateRandom: last %s", what);
    begin("x-pool-threads: never\nx-pool-max-age: 60min");
    clock_stop();
}

/* A caller of a few bytes waits for the whole call, so a call asks for a whole pool only if that takes no longer. */
TEST_EACH(calls_grow_where_bytes_cost_nothing_and_stay_short_where_they_cost, 0, 3)
{
    static const char *const lasts[] = {"1ms", "20ms", "0ns and 20us a byte"};
    begin_timed(lasts[_i]);
    for (int i = 0; i < 20; i++)
        draw(session, 32, 32 * KIB);
    clock_true();
    if (_i < 2) {
        ck_assert_uint_le(CALLS(C_GenerateRandom), 20 * 32 / 64 + GROWING_CALLS);
        ck_assert_uint_gt(target_longest_request(), 48 * KIB);
    } else
        ck_assert_uint_le(target_longest_request(), KIB);
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
