/* test_manners.c - tokens that take few sizes, fail, are slow or want to be left alone. */
#include "run.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "words_seen.h"

static CK_SESSION_HANDLE session;
static CK_BYTE bytes[128 * 1024];

static void begin(const char *settings)
{
    words_begin();
    proxy_before("counting", settings);
    initialize();
    session = open_session(0, 0);
}

static const struct limits {
    const char *min;
    const char *max;
    CK_ULONG max_bytes;
    const char *code;
    CK_RV rv;
} limits[] = {
    {"8", "1024", 1024, "0x7", CKR_ARGUMENTS_BAD},   {"1", "256", 256, "0x7", CKR_ARGUMENTS_BAD},
    {"1", "32", 32, "0x7", CKR_ARGUMENTS_BAD},       {"1", "250", 250, "0x21", CKR_DATA_LEN_RANGE},
    {"64", "128", 128, "0x21", CKR_DATA_LEN_RANGE},  {"8", "8", 8, "0x20", CKR_DATA_INVALID},
    {"512", "4096", 4096, "0x7", CKR_ARGUMENTS_BAD},
};

static void limit(const struct limits *l)
{
    knob("RANDOM_MIN", l->min);
    knob("RANDOM_MAX", l->max);
    knob("RANDOM_REFUSAL", l->code);
}

enum { FEW_REFUSALS = 24 };

START_TEST(small_requests_succeed_whatever_sizes_the_token_takes)
{
    static const CK_ULONG sizes[] = {1, 7, 8, 9, 31, 32, 33, 255, 256, 257, 1000, 1023, 1024};
    limit(&limits[_i]);
    begin("");
    for (int round = 0; round < 20; round++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            EXPECT(fn->C_GenerateRandom(session, bytes, sizes[i]), CKR_OK);
            words_note(bytes, sizes[i]);
        }
    words_check(100);
    char refused[32];
    snprintf(refused, sizeof refused, " rv=%s ", limits[_i].code);
    ck_assert_uint_le(target_calls_with("C_GenerateRandom", refused), FEW_REFUSALS);
}
END_TEST

/* The thread learns of the limit first, and the caller's next request is one that the token refuses too. */
START_TEST(a_refusal_of_the_prefetchs_size_is_not_the_callers_answer)
{
    limit(&limits[_i]);
    begin("");
    for (CK_ULONG size = limits[_i].max_bytes + 1; size <= 1024; size = size * 2 + 1) {
        EXPECT(fn->C_GenerateRandom(session, bytes, 1), CKR_OK);
        wait_until_quiet();
        EXPECT(fn->C_GenerateRandom(session, bytes, size), CKR_OK);
    }
}
END_TEST

START_TEST(large_requests_get_the_tokens_own_answer)
{
    static const CK_ULONG sizes[] = {1025, 4096, 65536, 65537};
    limit(&limits[_i]);
    begin("");
    words_draw(session, 16, 1024);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        EXPECT(fn->C_GenerateRandom(session, bytes, sizes[i]),
               sizes[i] <= limits[_i].max_bytes ? CKR_OK : limits[_i].rv);
}
END_TEST

/* One column of codes, whether the pool is new, full or dropped just now. */
START_TEST(the_answer_never_depends_on_what_is_held)
{
    limit(&limits[_i]);
    begin("");
    for (CK_ULONG len = 1; len <= 2048; len += 23) {
        CK_RV rv = len <= 1024 || len <= limits[_i].max_bytes ? CKR_OK : limits[_i].rv;
        EXPECT(fn->C_GenerateRandom(session, bytes, len), rv);
        EXPECT(fn->C_GenerateRandom(session, bytes, len), rv);
        EXPECT(fn->C_SeedRandom(session, bytes, 8), CKR_OK);
        EXPECT(fn->C_GenerateRandom(session, bytes, len), rv);
    }
}
END_TEST

static bool works_again(void)
{
    return fn->C_GenerateRandom(session, bytes, 32) == CKR_OK;
}

enum { SOME_TRIES = 60 };

/* Each caller gets the code from the token itself; the prefetch does not hammer it. */
START_TEST(a_token_that_always_fails_is_asked_once_a_request_and_heals)
{
    static const struct {
        const char *code;
        CK_RV rv;
    } failures[] = {{"0x20", CKR_DATA_INVALID},
                    {"0x7", CKR_ARGUMENTS_BAD},
                    {"0x30", CKR_DEVICE_ERROR},
                    {"0x101", CKR_USER_NOT_LOGGED_IN},
                    {"0x6", CKR_FUNCTION_FAILED}};
    knob("FAIL_AFTER", "0");
    knob("FAIL_CODE", failures[_i].code);
    begin("");
    for (int i = 0; i < 100; i++)
        EXPECT(fn->C_GenerateRandom(session, bytes, 32), failures[_i].rv);
    sleep(1);
    ck_assert_uint_le(target_calls("C_GenerateRandom"), 100 + SOME_TRIES);
    ck_assert_uint_eq(messages_with("gives no random bytes"), 1);

    knob("FAIL_AFTER", NULL);
    ck_assert(works_again());
    words_draw(session, 16, 4096);
    wait_until_quiet();
    ck_assert_uint_eq(messages_with("gives random bytes again"), 1);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
}
END_TEST

START_TEST(while_the_pool_lasts_an_outage_is_not_noticed)
{
    static const char *const codes[] = {"0xb3", "0x30", "0xe0", "0x32"};
    begin("x-pool-max-age: 1min");
    words_draw(session, 16, 16384);
    wait_until_quiet();
    knob("FAIL_CODE", codes[_i]);
    knob("FAIL_AFTER", "0");
    EXPECT(fn->C_GenerateRandom(session, bytes, 16), CKR_OK);
    unsigned failed = 0;
    for (int i = 0; i < 4000; i++)
        failed += fn->C_GenerateRandom(session, bytes, 64) != CKR_OK;
    ck_assert_uint_gt(failed, 0);
    ck_assert_uint_le(target_calls_by_others("C_GenerateRandom"), 100);
    knob("FAIL_AFTER", NULL);
    ck_assert(wait_for(works_again));
    words_draw(session, 16, 4096);
    words_check(512);
}
END_TEST

START_TEST(a_slow_token_delays_neither_start_nor_warm_callers)
{
    knob("DELAY_US", "50000");
    words_begin();
    proxy_before("counting", "x-pool-max-age: 1min");
    initialize();
    ck_assert_uint_eq(target_calls("C_GenerateRandom"), 0);
    session = open_session(0, 0);
    ck_assert_uint_eq(target_calls("C_GenerateRandom"), 0);

    word_draw(session);
    ck_assert_uint_eq(target_calls_by_us("C_GenerateRandom"), 1);
    wait_until_quiet();
    unsigned own = target_calls_by_us("C_GenerateRandom");
    words_draw(session, 16, 512);
    ck_assert_uint_eq(target_calls_by_us("C_GenerateRandom"), own);
    words_check(60);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
}
END_TEST

static bool ours_is_closed(void)
{
    unsigned opened = target_calls_by_others("C_OpenSession");
    return opened != 0 && target_calls_by_others("C_CloseSession") == opened;
}

static bool calls_are_large(void)
{
    words_draw(session, 32, 65536);
    return target_longest_request() > 32768;
}

/* A busy machine may let the prefetch come in between, but not every time. */
static bool met_in_whole_pools(void)
{
    enum { POOLS = 4 };
    unsigned before = target_calls("C_GenerateRandom");
    for (int i = 0; i < POOLS; i++)
        words_draw(session, 32, 65536);
    return target_calls("C_GenerateRandom") - before <= POOLS + POOLS / 2;
}

/* A fill that is begun at half a pool comes too late then, and brings half as much. */
START_TEST(a_demand_beyond_the_token_is_met_in_whole_pools)
{
    knob("DELAY_US", "20000");
    begin("x-pool-max-age: 1min");
    ck_assert(wait_for(calls_are_large));
    ck_assert(wait_for(met_in_whole_pools));
}
END_TEST

/* Its session is given back, too. */
START_TEST(idle_means_silent)
{
    begin("x-pool-max-age: 1s");
    words_draw(session, 16, 16384);
    ck_assert(wait_for(ours_is_closed));
    wait_until_quiet();
    unsigned before = target_calls_in_all();
    sleep(3);
    ck_assert_uint_eq(target_calls_in_all(), before);
}
END_TEST

START_TEST(who_draws_nothing_causes_no_call_of_ours)
{
    CK_TOKEN_INFO info;
    CK_SLOT_ID slot;
    CK_ULONG count = 1;
    words_begin();
    proxy_before("counting", "");
    initialize();
    EXPECT(fn->C_GetSlotList(CK_TRUE, &slot, &count), CKR_OK);
    EXPECT(fn->C_GetTokenInfo(slot, &info), CKR_OK);
    session = open_session(0, 0);
    EXPECT(fn->C_CloseSession(session), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    ck_assert_uint_eq(target_calls_in_all(), 6);
}
END_TEST

static bool the_prefetch_is_back(void)
{
    words_draw(session, 16, 4096);
    return target_calls_by_others("C_GenerateRandom") > 0;
}

/* A token may refuse random bytes, or lose the operation, while one is open. */
START_TEST(the_prefetch_stands_aside_while_an_operation_is_open)
{
    CK_MECHANISM mechanism = {CKM_SHA256, NULL, 0};
    CK_ULONG len_bytes = 0;
    begin("");
    EXPECT(fn->C_DigestInit(session, &mechanism), CKR_OK);
    words_draw(session, 16, 32768);
    wait_until_quiet();
    ck_assert_uint_eq(target_calls_by_others("C_GenerateRandom"), 0);
    EXPECT(fn->C_DigestFinal(session, bytes, &len_bytes), CKR_OK);
    /* It looks again after a quarter of a second at the latest. */
    ck_assert(wait_for(the_prefetch_is_back));
    words_check(2048);
}
END_TEST

enum { IN_CALLS = 4 }; /* that one of them is overlooked is in order */

static void *draw_large(void *large)
{
    EXPECT(fn->C_GenerateRandom(session, large, 2048), CKR_OK);
    return NULL;
}

/* A serial token would make the one wait for the other. */
START_TEST(the_prefetch_stands_aside_while_a_call_is_under_way)
{
    static CK_BYTE large[IN_CALLS][2048];
    pthread_t callers[IN_CALLS];
    begin("x-pool-max-age: 1min");
    void (*gate)(bool) = (void (*)(bool))target_symbol("counting_gate");
    gate(true);
    for (int i = 0; i < IN_CALLS; i++)
        ck_assert_int_eq(pthread_create(&callers[i], NULL, draw_large, large[i]), 0);
    wait_until_quiet();
    words_draw(session, 16, 32768);
    wait_until_quiet();
    ck_assert_uint_eq(target_calls_by_others("C_GenerateRandom"), IN_CALLS);
    gate(false);
    for (int i = 0; i < IN_CALLS; i++)
        pthread_join(callers[i], NULL);
    words_draw(session, 16, 32768);
    wait_until_quiet();
    ck_assert_uint_gt(target_calls_by_others("C_GenerateRandom"), IN_CALLS);
}
END_TEST

/* The refresh of the list of slots is the application's to ask for. */
START_TEST(slots_that_come_and_go_are_seen)
{
    CK_ULONG count = 0;
    begin("");
    EXPECT(fn->C_GetSlotList(CK_FALSE, NULL, &count), CKR_OK);
    ck_assert_uint_eq(count, 1);
    words_draw(session, 16, 1024);
    knob("SLOTS", "3");
    EXPECT(fn->C_GetSlotList(CK_FALSE, NULL, &count), CKR_OK);
    ck_assert_uint_eq(count, 3);
    ck_assert_uint_eq(word_draw(open_session(2, 0)).slot, 2);
    knob("SLOTS", "1");
    EXPECT(fn->C_GetSlotList(CK_FALSE, NULL, &count), CKR_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(target_calls("C_GetSlotList(NULL)"), 3);
    words_check(100);
}
END_TEST

/* One small request, a long pause, and then fifty: all of them could have been fetched in the pause. */
START_TEST(a_pause_is_enough_for_fifty_requests_of_16_bytes)
{
    knob("DELAY_US", "50000");
    words_begin();
    proxy_before("counting", "x-pool-max-age: 1min");
    initialize();
    CK_SESSION_HANDLE patient = open_session(0, 0);
    words_draw(patient, 16, 16);
    wait_until_quiet();
    unsigned own = target_calls_by_us("C_GenerateRandom");
    words_draw(patient, 16, 800);
    ck_assert_uint_eq(target_calls_by_us("C_GenerateRandom"), own);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_pause_is_enough_for_fifty_requests_of_16_bytes);
    int count = sizeof limits / sizeof *limits;
    tcase_add_loop_test(tcase, small_requests_succeed_whatever_sizes_the_token_takes, 0, count);
    tcase_add_loop_test(tcase, a_refusal_of_the_prefetchs_size_is_not_the_callers_answer, 0, count);
    tcase_add_loop_test(tcase, large_requests_get_the_tokens_own_answer, 0, count);
    tcase_add_loop_test(tcase, the_answer_never_depends_on_what_is_held, 0, count);
    tcase_add_loop_test(tcase, a_token_that_always_fails_is_asked_once_a_request_and_heals, 0, 5);
    tcase_add_loop_test(tcase, while_the_pool_lasts_an_outage_is_not_noticed, 0, 4);
    tcase_add_test(tcase, a_slow_token_delays_neither_start_nor_warm_callers);
    tcase_add_test(tcase, a_demand_beyond_the_token_is_met_in_whole_pools);
    tcase_add_test(tcase, idle_means_silent);
    tcase_add_test(tcase, who_draws_nothing_causes_no_call_of_ours);
    tcase_add_test(tcase, the_prefetch_stands_aside_while_an_operation_is_open);
    tcase_add_test(tcase, the_prefetch_stands_aside_while_a_call_is_under_way);
    tcase_add_test(tcase, slots_that_come_and_go_are_seen);
}

int main(void)
{
    return run_tests("manners", add_tests);
}
