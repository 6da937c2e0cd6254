/* test_sessions.c - the application's sessions are all that it sees: ours is never in the way. */
#include "run.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ours.h"
#include "words_seen.h"

enum { MANY = 20000 };

static CK_BYTE pin[] = "1234";

static void begin(const char *settings)
{
    words_begin();
    proxy_before("counting", settings);
    initialize();
}

START_TEST(tens_of_thousands_of_sessions_are_told_apart)
{
    static CK_SESSION_HANDLE sessions[MANY];
    CK_BYTE bytes[8];
    unsetenv("COUNTING_LOG");
    begin("");
    for (unsigned i = 0; i < MANY; i++)
        sessions[i] = open_session(0, i % 2 == 0 ? 0 : CKF_RW_SESSION);
    for (unsigned i = 0; i < MANY; i++)
        EXPECT(fn->C_GenerateRandom(sessions[i], bytes, sizeof bytes), CKR_OK);
    ck_assert_uint_eq(token_info(0).ulSessionCount, MANY);
    ck_assert_uint_eq(token_info(0).ulRwSessionCount, MANY / 2);
    for (unsigned i = 0; i < MANY; i += 3)
        EXPECT(fn->C_CloseSession(sessions[i]), CKR_OK);
    for (unsigned i = 0; i < MANY; i++)
        EXPECT(fn->C_GenerateRandom(sessions[i], bytes, sizeof bytes),
               i % 3 == 0 ? CKR_SESSION_HANDLE_INVALID : CKR_OK);
    EXPECT(fn->C_CloseAllSessions(0), CKR_OK);
    for (unsigned i = 0; i < MANY; i++)
        EXPECT(fn->C_GenerateRandom(sessions[i], bytes, sizeof bytes), CKR_SESSION_HANDLE_INVALID);
}
END_TEST

START_TEST(a_handle_that_is_used_again_belongs_to_its_new_slot)
{
    knob("SLOTS", "2");
    knob("REUSE_HANDLES", "1");
    begin(_i == 0 ? "" : "x-pool-threads: never");
    CK_SESSION_HANDLE kept = open_session(0, 0);
    words_draw(kept, 16, 4096);
    for (int round = 0; round < 100; round++)
        for (CK_SLOT_ID slot = 0; slot < 2; slot++) {
            CK_SESSION_HANDLE session = open_session(slot, 0);
            ck_assert_uint_eq(word_draw(session).slot, slot);
            EXPECT(fn->C_CloseSession(session), CKR_OK);
        }
    ck_assert_uint_eq(word_draw(kept).slot, 0);
    words_check(600);
}
END_TEST

/* _i: whether the token makes ours a read/write one. */
START_TEST(ours_is_not_counted)
{
    begin("");
    CK_SESSION_HANDLE first = open_session(0, CKF_RW_SESSION);
    open_session(0, 0);
    if (_i == 1)
        knob("RO_REFUSAL", "0x5");
    draw_until_ours_is_open_beside(2, first);
    for (int i = 0; i < 200; i++) {
        ck_assert_uint_eq(token_info(0).ulSessionCount, 2);
        ck_assert_uint_eq(token_info(0).ulRwSessionCount, 1);
        words_draw(first, 64, 8192);
    }
}
END_TEST

START_TEST(ours_does_not_exist_for_the_application)
{
    CK_SESSION_INFO info;
    CK_BYTE bytes[16];
    CK_ULONG len_bytes = 0;
    CK_MECHANISM mechanism = {CKM_SHA256, NULL, 0};
    begin("x-pool-max-age: 1min");
    CK_SESSION_HANDLE session = open_with_ours(0);
    /* Handles ascend, so ours is the next one. */
    CK_SESSION_HANDLE ours = session + 1;
    EXPECT(fn->C_GetSessionInfo(ours, &info), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_GenerateRandom(ours, bytes, sizeof bytes), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_SeedRandom(ours, bytes, sizeof bytes), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_Login(ours, CKU_USER, pin, 4), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_Logout(ours), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_DigestInit(ours, &mechanism), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_DigestFinal(ours, bytes, &len_bytes), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_CloseSession(ours), CKR_SESSION_HANDLE_INVALID);
    /* The target heard of each, but not of our session: hidden calls, by the thread, are not about it. */
    static const char *const calls[] = {"C_GetSessionInfo", "C_SeedRandom", "C_Login",
                                        "C_Logout",         "C_DigestInit", "C_DigestFinal",
                                        "C_CloseSession"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        ck_assert_uint_eq(target_calls_by_us(calls[i]), 1);
        ck_assert_uint_eq(target_calls_with(calls[i], " session=0 "), 1);
    }
    /* What else is wrong with a call is the target's to say, as it does for any handle of nothing. */
    EXPECT(fn->C_VerifyFinal(ours, bytes, sizeof bytes), CKR_FUNCTION_NOT_SUPPORTED);
    EXPECT(fn->C_VerifyFinal(ours + 1, bytes, sizeof bytes), CKR_FUNCTION_NOT_SUPPORTED);
}
END_TEST

START_TEST(the_last_close_logs_out)
{
    CK_SESSION_INFO info;
    begin("x-pool-max-age: 1min");
    CK_SESSION_HANDLE session = open_with_ours(0);
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_OK);
    words_draw(session, 32, 32768);
    if (_i == 0)
        EXPECT(fn->C_CloseSession(session), CKR_OK);
    else
        EXPECT(fn->C_CloseAllSessions(0), CKR_OK);
    ck_assert(!ours_is_open_beside(0) || _i == 1);
    session = open_session(0, 0);
    EXPECT(fn->C_GetSessionInfo(session, &info), CKR_OK);
    ck_assert_uint_eq(info.state, CKS_RO_PUBLIC_SESSION);
    ck_assert_uint_eq(word_draw(session).login, 0);
}
END_TEST

/* _i: whether the child initialises anew; the target answers then that it is initialised. */
START_TEST(a_child_closes_what_it_inherits_of_ours)
{
    CK_SESSION_INFO info;
    int status;
    knob("LAX_FORK", "1");
    begin("x-pool-max-age: 1min");
    CK_SESSION_HANDLE session = open_with_ours(0);
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_OK);
    draw_until_ours_is_open_beside(1, session);
    pid_t child = fork();
    if (child == 0) {
        if (_i == 1 && fn->C_Initialize(&os_locking) != CKR_CRYPTOKI_ALREADY_INITIALIZED)
            _exit(1);
        if (fn->C_CloseSession(session) != CKR_OK)
            _exit(2);
        if (fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session) != CKR_OK)
            _exit(3);
        _exit(fn->C_GetSessionInfo(session, &info) == CKR_OK && info.state == CKS_RO_PUBLIC_SESSION
                  ? 0
                  : 4);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    EXPECT(fn->C_GetSessionInfo(session, &info), CKR_OK);
    ck_assert_uint_eq(info.state, CKS_RO_USER_FUNCTIONS);
}
END_TEST

START_TEST(a_token_can_be_initialized_once_the_application_has_no_session)
{
    CK_UTF8CHAR label[32];
    memset(label, ' ', sizeof label);
    begin("");
    CK_SESSION_HANDLE session = open_with_ours(0);
    EXPECT(fn->C_InitToken(0, pin, 4, label), CKR_SESSION_EXISTS);
    EXPECT(fn->C_CloseSession(session), CKR_OK);
    EXPECT(fn->C_InitToken(0, pin, 4, label), CKR_OK);
    session = open_session(0, 0);
    words_draw(session, 32, 4096);
    EXPECT(fn->C_InitToken(0, pin, 4, label), CKR_SESSION_EXISTS);
}
END_TEST

START_TEST(the_so_can_log_in_beside_read_write_sessions)
{
    CK_SESSION_HANDLE other;
    begin("");
    CK_SESSION_HANDLE session = open_with_ours(CKF_RW_SESSION);
    EXPECT(fn->C_Login(session, CKU_SO, pin, 4), CKR_OK);
    for (int i = 0; i < 20; i++) {
        words_draw(session, 32, 8192);
        usleep(2000);
    }
    ck_assert_uint_eq(word_draw(session).login, 2);
    /* None of ours is tried meanwhile. */
    ck_assert_uint_eq(target_calls_with("C_OpenSession", " rv=0xb8 "), 0);
    EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &other),
           CKR_SESSION_READ_WRITE_SO_EXISTS);
    EXPECT(fn->C_Logout(session), CKR_OK);
    ck_assert_uint_eq(word_draw(session).login, 0);
    other = open_session(0, 0);
    EXPECT(fn->C_Login(session, CKU_SO, pin, 4), CKR_SESSION_READ_ONLY_EXISTS);
}
END_TEST

/* _i + 1 sessions are all that the token has. */
START_TEST(all_sessions_of_the_token_are_the_applications)
{
    CK_SESSION_HANDLE sessions[8];
    CK_SESSION_HANDLE more;
    CK_ULONG count = (CK_ULONG)_i + 1;
    char most[16];
    snprintf(most, sizeof most, "%lu", count);
    knob("SESSIONS_MAX", most);
    begin("");
    for (CK_ULONG i = 0; i < count; i++) {
        sessions[i] = open_session(0, 0);
        words_draw(sessions[i], 32, 16384);
        usleep(20000);
    }
    ck_assert_uint_eq(token_info(0).ulSessionCount, count);
    ck_assert_uint_eq(token_info(0).ulMaxSessionCount, count);
    EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &more), CKR_SESSION_COUNT);
    for (int i = 0; i < 300; i++)
        word_draw(sessions[0]);
    EXPECT(fn->C_CloseSession(sessions[0]), CKR_OK);
    open_session(0, 0);
    words_check(300);
}
END_TEST

/* A ceiling that the token does not tell is met by trying: ours gives way. */
START_TEST(ours_gives_way_when_the_token_has_no_session_left)
{
    CK_SESSION_HANDLE more;
    begin("x-pool-max-age: 1min");
    CK_SESSION_HANDLE session = open_with_ours(0);
    knob("SESSIONS_MAX", "2");
    open_session(0, 0);
    EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &more), CKR_SESSION_COUNT);
    words_draw(session, 32, 8192);
    ck_assert(!ours_is_open_beside(2));
}
END_TEST

/* A token that closes what is idle does not say so. Nobody but us notices. */
START_TEST(ours_dies_and_is_opened_anew)
{
    CK_FUNCTION_LIST_PTR bare;
    begin("x-pool-max-age: 1min");
    CK_SESSION_HANDLE session = open_with_ours(0);
    EXPECT(((CK_C_GetFunctionList)target_symbol("C_GetFunctionList"))(&bare), CKR_OK);
    EXPECT(bare->C_CloseSession(session + 1), CKR_OK);
    ck_assert(!ours_is_open_beside(1));
    draw_until_ours_is_open_beside(1, session);
    words_check(1000);
}
END_TEST

static unsigned wrong_answers[4];

static void *open_draw_and_close(void *number)
{
    unsigned *wrong = number;
    CK_BYTE bytes[16];
    for (int i = 0; i < 1500; i++) {
        CK_SESSION_HANDLE session;
        CK_SLOT_ID slot = (CK_SLOT_ID)(i % 3);
        *wrong += fn->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &session) != CKR_OK;
        *wrong += fn->C_GenerateRandom(session, bytes, sizeof bytes) != CKR_OK;
        *wrong += fn->C_CloseSession(session) != CKR_OK;
        *wrong += fn->C_GenerateRandom(CK_INVALID_HANDLE, bytes, 8) != CKR_SESSION_HANDLE_INVALID;
    }
    return NULL;
}

START_TEST(threads_open_and_close_beside_each_other)
{
    pthread_t threads[4];
    unsetenv("COUNTING_LOG");
    knob("SLOTS", "3");
    begin("");
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, open_draw_and_close, &wrong_answers[i]),
                         0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_uint_eq(wrong_answers[i], 0);
    }
    for (CK_SLOT_ID slot = 0; slot < 3; slot++)
        ck_assert_uint_eq(token_info(slot).ulSessionCount, 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, tens_of_thousands_of_sessions_are_told_apart);
    tcase_add_loop_test(tcase, a_handle_that_is_used_again_belongs_to_its_new_slot, 0, 2);
    tcase_add_loop_test(tcase, ours_is_not_counted, 0, 2);
    tcase_add_test(tcase, ours_does_not_exist_for_the_application);
    tcase_add_loop_test(tcase, the_last_close_logs_out, 0, 2);
    if (CHILDREN_CAN_RUN)
        tcase_add_loop_test(tcase, a_child_closes_what_it_inherits_of_ours, 0, 2);
    tcase_add_test(tcase, a_token_can_be_initialized_once_the_application_has_no_session);
    tcase_add_test(tcase, the_so_can_log_in_beside_read_write_sessions);
    tcase_add_loop_test(tcase, all_sessions_of_the_token_are_the_applications, 0, 4);
    tcase_add_test(tcase, ours_gives_way_when_the_token_has_no_session_left);
    tcase_add_test(tcase, ours_dies_and_is_opened_anew);
    tcase_add_test(tcase, threads_open_and_close_beside_each_other);
}

int main(void)
{
    return run_tests("sessions", add_tests);
}
