/* test_demand.c - how much is fetched, and how often, follows what was served; no demand, no fetch. */
#include "fixture.h"

#include "clock.h"

enum { KIB = 1024, POOL_BYTES = 64 * KIB };

static unsigned long made_bytes(void)
{
    return (unsigned long)words_made() * WORD_BYTES;
}

TEST(who_draws_nothing_causes_no_call)
{
    CK_TOKEN_INFO info;
    CK_SLOT_ID slot;
    CK_ULONG count = 1;
    proxy_with("");
    initialize();
    EXPECT(fn->C_GetSlotList(CK_TRUE, &slot, &count), CKR_OK);
    EXPECT(fn->C_GetTokenInfo(slot, &info), CKR_OK);
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
            fn->C_CloseSession(own) != CKR_OK)
            atomic_fetch_add(&failures, 1);
        served(bytes, sizeof bytes);
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
    /* One of each by the application, and of ours a few at most. */
    ck_assert_uint_eq(CALLS(C_OpenSession, .by = CALLERS), count * CYCLES);
    ck_assert_uint_le(CALLS(C_OpenSession, .by = FILLER), count * CYCLES / 8);
    ck_assert_uint_le(CALLS(C_GetTokenInfo), 1 + CALLS(C_OpenSession, .by = FILLER));
    ck_assert_uint_eq(CALLS(C_GetSessionInfo), 0);
    served_once(count * CYCLES * 2);
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
    served_once(CYCLES);
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
    served_once(80 * KIB);
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
    served_once(90);
}

TEST_EACH(without_a_thread_callers_read_ahead, 0, 2)
{
    unsigned threads = threads_now();
    begin_with(_i == 0 ? &no_threads : &os_locking, _i == 0 ? "" : "x-pool-threads: never");
    draw(session, 16, 16 * KIB);
    ck_assert_uint_eq(threads_now(), threads);
    ck_assert_uint_eq(CALLS(C_OpenSession), 1);
    ck_assert_uint_le(CALLS(C_GenerateRandom), 16);
    served_once(2 * KIB);
}
