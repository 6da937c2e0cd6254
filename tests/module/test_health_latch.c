/* test_health_latch.c - a token whose generator failed is asked once more, and then no more for its life. */
#include "run.h"

#include <stdio.h>
#include <string.h>

#include "words_seen.h"

static CK_SESSION_HANDLE session;

/* What the counting target does for CKR_OK, instead of writing its words. */
static const char *const faults[] = {"1", "2", "3"};

enum { FAULTS = sizeof faults / sizeof *faults, LENGTH_MOST = 1024 };

static const char *const settings[] = {"", "x-pool-threads: never", "x-pool: off"};

enum { SETTINGS = sizeof settings / sizeof *settings };

static void begin(const char *more)
{
    words_begin();
    proxy_before("counting", more);
    initialize();
    session = open_session(0, 0);
}

/* A request that fails leaves nothing in buf but what was there, or zeros. */
static CK_RV request(CK_ULONG len_bytes)
{
    static CK_BYTE buf[4 * LENGTH_MOST];
    memset(buf, 0, sizeof buf);
    CK_RV rv = fn->C_GenerateRandom(session, buf, len_bytes);
    for (size_t i = 0; rv != CKR_OK && i < sizeof buf; i++)
        ck_assert_msg(buf[i] == 0, "a request of %lu failed, and byte %zu is %02x", len_bytes, i,
                      buf[i]);
    if (rv == CKR_OK)
        words_note(buf, len_bytes);
    return rv;
}

/* Two alarms in a row. */
static void break_generator(const char *fault)
{
    knob("FAULT", fault);
    for (int i = 0; i < 64 && messages_with("no random bytes until C_Finalize") == 0; i++)
        request(LENGTH_MOST);
    EXPECT(request(LENGTH_MOST), CKR_DEVICE_ERROR);
}

START_TEST(bytes_that_are_bad_once_are_thrown_away_and_the_next_ones_served)
{
    knob("FAULT", faults[_i % FAULTS]);
    knob("FAULTY_CALLS", "1");
    begin(settings[_i / FAULTS]);
    EXPECT(request(64), CKR_OK);
    ck_assert_uint_eq(messages_with("and the next ones decide"), 1);
    for (int i = 0; i < 100; i++)
        EXPECT(request(64), CKR_OK);
    ck_assert_uint_eq(messages_with("and the next ones decide"), 1);
    ck_assert_uint_eq(messages_with("no random bytes"), 0);
    words_check(101 * 64 / WORD_BYTES);
}
END_TEST

/* Far apart they prove nothing: each is forgotten when good bytes follow. */
START_TEST(alarms_that_are_not_in_a_row_do_not_add_up)
{
    begin("x-pool: off");
    for (unsigned i = 1; i <= 3; i++) {
        char calls[16];
        knob("FAULT", "1");
        snprintf(calls, sizeof calls, "%u", target_calls("C_GenerateRandom") + 1);
        knob("FAULTY_CALLS", calls);
        EXPECT(request(64), CKR_OK);
        EXPECT(request(64), CKR_OK);
        ck_assert_uint_eq(messages_with("and the next ones decide"), i);
    }
    words_check(3 * 2 * 8);
}
END_TEST

START_TEST(bytes_that_are_bad_twice_end_it_for_every_length_below_the_token)
{
    begin(settings[_i / FAULTS]);
    EXPECT(request(64), CKR_OK);
    break_generator(faults[_i % FAULTS]);
    for (CK_ULONG len_bytes = 1; len_bytes <= 4 * LENGTH_MOST; len_bytes += len_bytes < 40 ? 1 : 99)
        EXPECT(request(len_bytes), CKR_DEVICE_ERROR);
    ck_assert_uint_eq(messages_with("and the next ones decide"), 1);
    ck_assert_uint_eq(messages_with("no random bytes until C_Finalize"), 1);
}
END_TEST

/* Nobody knows what it was, so nobody trusts what comes now; and the token is left alone. */
START_TEST(a_token_that_recovers_late_is_not_believed_until_finalize)
{
    begin(settings[_i]);
    EXPECT(request(64), CKR_OK);
    break_generator("3");
    knob("FAULT", NULL);
    wait_until_quiet();
    unsigned asked = target_calls("C_GenerateRandom");
    for (int i = 0; i < 50; i++)
        EXPECT(request(32), CKR_DEVICE_ERROR);
    CK_SESSION_HANDLE first = session;
    session = open_session(0, 0);
    EXPECT(request(32), CKR_DEVICE_ERROR);
    EXPECT(fn->C_CloseSession(first), CKR_OK);
    EXPECT(fn->C_SeedRandom(session, (CK_BYTE_PTR) "seed", 4), CKR_OK);
    EXPECT(request(32), CKR_DEVICE_ERROR);
    ck_assert_uint_eq(target_calls("C_GenerateRandom"), asked);

    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    initialize();
    session = open_session(0, 0);
    for (int i = 0; i < 100; i++)
        EXPECT(request(32), CKR_OK);
    words_check(400);
}
END_TEST

/* What the standard lets only the token answer, it answers still. */
START_TEST(requests_for_nothing_are_still_the_tokens_to_answer)
{
    CK_BYTE byte;
    begin("");
    break_generator("1");
    EXPECT(fn->C_GenerateRandom(session, NULL, 0), CKR_OK);
    EXPECT(fn->C_GenerateRandom(session, &byte, 0), CKR_OK);
    EXPECT(fn->C_GenerateRandom(session, NULL, 16), CKR_ARGUMENTS_BAD);
    EXPECT(fn->C_GenerateRandom(session + 1, &byte, 1), CKR_SESSION_HANDLE_INVALID);
}
END_TEST

START_TEST(one_slot_that_fails_leaves_the_others_alone)
{
    knob("SLOTS", "2");
    begin("x-pool-threads: never");
    break_generator("1");
    knob("FAULT", NULL);
    session = open_session(1, 0);
    EXPECT(request(64), CKR_OK);
    words_check(8);
}
END_TEST

/* The thread met them, not a caller: what it had read ahead before is dropped as well. */
START_TEST(what_the_prefetch_finds_counts_too)
{
    begin("x-pool-max-age: 1min");
    for (int i = 0; i < 64; i++)
        EXPECT(request(64), CKR_OK);
    wait_until_quiet();
    knob("FAULT", "2");
    CK_RV rv = CKR_OK;
    for (int i = 0; i < 10000 && rv == CKR_OK; i++)
        rv = request(64);
    EXPECT(rv, CKR_DEVICE_ERROR);
    EXPECT(request(8), CKR_DEVICE_ERROR);
    words_check(512);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, bytes_that_are_bad_once_are_thrown_away_and_the_next_ones_served, 0,
                        FAULTS * SETTINGS);
    tcase_add_test(tcase, alarms_that_are_not_in_a_row_do_not_add_up);
    tcase_add_loop_test(tcase, bytes_that_are_bad_twice_end_it_for_every_length_below_the_token, 0,
                        FAULTS * SETTINGS);
    tcase_add_loop_test(tcase, a_token_that_recovers_late_is_not_believed_until_finalize, 0,
                        SETTINGS);
    tcase_add_test(tcase, requests_for_nothing_are_still_the_tokens_to_answer);
    tcase_add_test(tcase, one_slot_that_fails_leaves_the_others_alone);
    tcase_add_test(tcase, what_the_prefetch_finds_counts_too);
}

int main(void)
{
    return run_tests("health_latch", add_tests);
}
