/* test_slots.c - slots that change their numbers, tokens that change their slots, and a slot that is broken. */
#include "run.h"

#include <stdio.h>

#include "words_seen.h"

enum { DRAWS = 200, WARM_BYTES = 4096 };

static void begin(const char *slots)
{
    words_begin();
    proxy_before("counting", "x-pool-max-age: 1min");
    knob("SLOTS", slots);
    initialize();
}

static CK_SESSION_HANDLE open_warm(CK_SLOT_ID slot)
{
    CK_SESSION_HANDLE session = open_session(slot, 0);
    words_draw(session, 16, WARM_BYTES);
    return session;
}

static void expect_words_of(CK_SESSION_HANDLE session, unsigned token)
{
    for (int i = 0; i < DRAWS; i++) {
        struct word word = word_draw(session);
        ck_assert_msg(word.slot == token, "draw %d is token %u's, not %u's", i, word.slot, token);
    }
}

static char serial_of(CK_SLOT_ID slot)
{
    CK_TOKEN_INFO info;
    EXPECT(fn->C_GetTokenInfo(slot, &info), CKR_OK);
    return (char)info.serialNumber[0];
}

/* As whoever wants to know which slots there are now. */
static CK_SLOT_ID first_of(CK_ULONG count)
{
    CK_SLOT_ID slots[8];
    CK_ULONG there = 0;
    EXPECT(fn->C_GetSlotList(CK_TRUE, NULL, &there), CKR_OK);
    ck_assert_uint_eq(there, count);
    EXPECT(fn->C_GetSlotList(CK_TRUE, slots, &there), CKR_OK);
    return slots[0];
}

START_TEST(slots_get_other_numbers_and_sessions_stay_with_their_tokens)
{
    begin("2");
    CK_SESSION_HANDLE first = open_warm(0);
    CK_SESSION_HANDLE second = open_warm(1);
    wait_until_quiet();
    knob("SLOT_BASE", "1");
    ck_assert_uint_eq(first_of(2), 1);
    EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &(CK_SESSION_HANDLE){0}),
           CKR_SLOT_ID_INVALID);
    ck_assert_int_eq(serial_of(1), '0');
    ck_assert_int_eq(serial_of(2), '1');
    /* The number that the second token had is the first one's now. */
    CK_SESSION_HANDLE third = open_session(1, 0);
    CK_SESSION_HANDLE fourth = open_session(2, 0);
    for (int round = 0; round < 2; round++) {
        expect_words_of(third, 0);
        expect_words_of(first, 0);
        expect_words_of(second, 1);
        expect_words_of(fourth, 1);
        wait_until_quiet();
    }
    words_check(1000);
}
END_TEST

/* Its token went without a word, so nobody closed its session. */
START_TEST(a_session_of_that_number_on_another_slot_tells_of_it)
{
    words_begin();
    proxy_before("counting", "x-pool-max-age: 1min\nx-pool-threads: never");
    knob("SLOTS", "2");
    knob("REUSE_HANDLES", "1");
    initialize();
    CK_SESSION_HANDLE first = open_warm(0);
    knob("FIRST_TOKEN", "2");
    ck_assert_uint_eq(open_session(1, 0), first);
    expect_words_of(open_session(0, 0), 2);
}
END_TEST

START_TEST(numbers_that_nobody_asked_for_are_right_as_well)
{
    begin("2");
    CK_SESSION_HANDLE first = open_warm(0);
    CK_SESSION_HANDLE second = open_warm(1);
    wait_until_quiet();
    knob("SLOT_BASE", "1");
    CK_SESSION_HANDLE third = open_session(1, 0);
    for (int round = 0; round < 2; round++) {
        expect_words_of(third, 0);
        expect_words_of(second, 1);
        expect_words_of(first, 0);
        wait_until_quiet();
    }
}
END_TEST

static bool ours_is_closed(void)
{
    return target_calls_by_others("C_CloseSession") != 0;
}

/* It closes its session when that was idle, and opens another when there is demand. */
START_TEST(the_threads_next_session_is_on_the_right_token)
{
    begin("2");
    CK_SESSION_HANDLE second = open_warm(1);
    ck_assert(wait_for(ours_is_closed));
    unsigned before = target_calls_by_others("C_OpenSession");
    knob("SLOT_BASE", "1");
    for (int round = 0; round < 40; round++)
        expect_words_of(second, 1);
    wait_until_quiet();
    ck_assert_uint_gt(target_calls_by_others("C_OpenSession"), before);
    expect_words_of(second, 1);
}
END_TEST

/* Ways to find that there is another token in the slot. */

static void ask_for_the_token(CK_SESSION_HANDLE gone)
{
    (void)gone;
    ck_assert_int_eq(serial_of(0), '1');
}

static void close_what_is_gone(CK_SESSION_HANDLE gone)
{
    EXPECT(fn->C_CloseSession(gone), CKR_SESSION_HANDLE_INVALID);
}

static void close_all(CK_SESSION_HANDLE gone)
{
    (void)gone;
    EXPECT(fn->C_CloseAllSessions(0), CKR_OK);
}

static void ask_for_the_session(CK_SESSION_HANDLE gone)
{
    CK_SESSION_INFO info;
    EXPECT(fn->C_GetSessionInfo(gone, &info), CKR_SESSION_HANDLE_INVALID);
}

static void ask_nothing(CK_SESSION_HANDLE gone)
{
    (void)gone;
}

static void (*const ways[])(CK_SESSION_HANDLE gone) = {ask_for_the_token, close_what_is_gone,
                                                       close_all, ask_for_the_session, ask_nothing};

START_TEST(another_token_in_the_slot_is_another_generator)
{
    begin("1");
    CK_SESSION_HANDLE gone = open_warm(0);
    wait_until_quiet();
    ck_assert_int_eq(serial_of(0), '0');
    knob("FIRST_TOKEN", "1");
    ways[_i](gone);
    CK_SESSION_HANDLE session = open_session(0, 0);
    for (int round = 0; round < 2; round++) {
        expect_words_of(session, 1);
        wait_until_quiet();
    }
    knob("FIRST_TOKEN", "0");
    ck_assert_int_eq(serial_of(0), '0');
    words_check(100);
}
END_TEST

START_TEST(a_new_session_that_gets_the_handle_of_ours_is_the_applications)
{
    begin("1");
    knob("REUSE_HANDLES", "1");
    open_warm(0);
    wait_until_quiet();
    knob("FIRST_TOKEN", "1");
    /* Their two, and ours: all are given anew. */
    for (int i = 0; i < 4; i++) {
        CK_SESSION_INFO info;
        CK_SESSION_HANDLE session = open_session(0, 0);
        EXPECT(fn->C_GetSessionInfo(session, &info), CKR_OK);
        expect_words_of(session, 1);
        EXPECT(fn->C_GetSessionInfo(session, &info), CKR_OK);
    }
}
END_TEST

static const CK_SLOT_ID good[] = {0, 2};

static void expect_good_slots_to_work(void)
{
    for (int i = 0; i < 2; i++) {
        CK_SESSION_HANDLE session = open_session(good[i], 0);
        expect_words_of(session, (unsigned)good[i]);
        wait_until_quiet();
        unsigned by_caller = target_calls_by_us("C_GenerateRandom");
        words_draw(session, 16, 256);
        ck_assert_uint_eq(target_calls_by_us("C_GenerateRandom"), by_caller);
    }
}

START_TEST(a_broken_slot_is_no_matter_to_those_beside_it)
{
    CK_TOKEN_INFO info;
    CK_SESSION_HANDLE session;
    begin("3");
    knob("BAD_SLOT", "1");
    for (int round = 0; round < 3; round++) {
        EXPECT(fn->C_GetTokenInfo(1, &info), CKR_DEVICE_ERROR);
        EXPECT(fn->C_OpenSession(1, CKF_SERIAL_SESSION, NULL, NULL, &session), CKR_DEVICE_ERROR);
        expect_good_slots_to_work();
    }
    knob("BAD_SLOT", NULL);
    ck_assert_int_eq(serial_of(1), '1');
    expect_words_of(open_session(1, 0), 1);

    /* In the middle of it, with a session open there. */
    session = open_warm(1);
    knob("BAD_SLOT", "1");
    knob("BAD_CODE", "0xe0");
    EXPECT(fn->C_GetTokenInfo(1, &info), CKR_TOKEN_NOT_PRESENT);
    expect_words_of(session, 1);
    expect_good_slots_to_work();
    words_check(1000);
}
END_TEST

START_TEST(what_slots_and_tokens_say_is_asked_for_each_time)
{
    CK_SLOT_ID slots[8];
    CK_ULONG count = 8;
    begin("2");
    CK_SESSION_HANDLE session = open_warm(0);
    for (unsigned i = 1; i <= 5; i++) {
        char number[8];
        snprintf(number, sizeof number, "%u", i);
        knob("SLOT_BASE", number);
        count = 8;
        EXPECT(fn->C_GetSlotList(CK_FALSE, slots, &count), CKR_OK);
        ck_assert_uint_eq(count, 2);
        ck_assert_uint_eq(slots[0], i);
        ck_assert_uint_eq(slots[1], i + 1);
        ck_assert_int_eq(serial_of(i), '0');
        CK_SESSION_INFO info;
        EXPECT(fn->C_GetSessionInfo(session, &info), CKR_OK);
        ck_assert_uint_eq(info.slotID, i);
        expect_words_of(session, 0);
    }
    ck_assert_uint_eq(target_calls("C_GetSlotList"), 5);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, slots_get_other_numbers_and_sessions_stay_with_their_tokens);
    tcase_add_test(tcase, a_session_of_that_number_on_another_slot_tells_of_it);
    tcase_add_test(tcase, numbers_that_nobody_asked_for_are_right_as_well);
    tcase_add_test(tcase, the_threads_next_session_is_on_the_right_token);
    tcase_add_loop_test(tcase, another_token_in_the_slot_is_another_generator, 0,
                        sizeof ways / sizeof *ways);
    tcase_add_test(tcase, a_new_session_that_gets_the_handle_of_ours_is_the_applications);
    tcase_add_test(tcase, a_broken_slot_is_no_matter_to_those_beside_it);
    tcase_add_test(tcase, what_slots_and_tokens_say_is_asked_for_each_time);
}

int main(void)
{
    return run_tests("slots", add_tests);
}
