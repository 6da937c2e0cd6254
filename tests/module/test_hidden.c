/* test_hidden.c - our own session, on tokens that lose sessions, have few of them or will not close them. */
#include "run.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ours.h"
#include "words_seen.h"

static CK_BYTE pin[] = "1234";
static CK_SESSION_INFO info;

static void begin(const char *settings)
{
    words_begin();
    proxy_before("counting", settings);
    initialize();
}

/* A token that closes sessions without a word: idle ones, or all when it was pulled out. */
static void token_loses(CK_SESSION_HANDLE session)
{
    CK_FUNCTION_LIST_PTR bare;
    EXPECT(((CK_C_GetFunctionList)target_symbol("C_GetFunctionList"))(&bare), CKR_OK);
    EXPECT(bare->C_CloseSession(session), CKR_OK);
}

static void works(CK_SESSION_HANDLE session)
{
    EXPECT(fn->C_GetSessionInfo(session, &info), CKR_OK);
    words_draw(session, 16, 1024);
}

/* Handles ascend, so ours is the next one; then the token uses it again. */
START_TEST(the_handle_of_ours_that_the_token_gave_away_is_the_applications)
{
    knob("REUSE_HANDLES", "1");
    begin("x-pool-max-age: 1min");
    CK_SESSION_HANDLE session = open_with_ours(0);
    wait_until_quiet();
    CK_SESSION_HANDLE ours = session + 1;
    token_loses(ours);
    CK_SESSION_HANDLE second = open_session(0, 0);
    ck_assert_uint_eq(second, ours);
    works(second);
    ck_assert_uint_eq(token_info(0).ulSessionCount, 2);
    EXPECT(fn->C_CloseSession(second), CKR_OK);
    works(session);
    words_check(1024);
}
END_TEST

START_TEST(closing_all_leaves_no_handle_of_ours_behind)
{
    knob("REUSE_HANDLES", "1");
    begin("x-pool-max-age: 1min");
    open_with_ours(0);
    EXPECT(fn->C_CloseAllSessions(0), CKR_OK);
    unsigned others = target_calls_by_others("C_GenerateRandom");
    CK_SESSION_HANDLE sessions[] = {open_session(0, 0), open_session(0, 0), open_session(0, 0)};
    for (int i = 0; i < 3; i++)
        EXPECT(fn->C_GetSessionInfo(sessions[i], &info), CKR_OK);
    ck_assert_uint_eq(token_info(0).ulSessionCount, 3);
    ck_assert_uint_eq(target_calls_by_others("C_GenerateRandom"), others);
}
END_TEST

/* The prefetch is in the token when all is closed: it comes out first. */
START_TEST(closing_all_waits_until_ours_is_out)
{
    begin("x-pool-max-age: 1min");
    CK_SESSION_HANDLE session = open_with_ours(0);
    for (int i = 0; i < 20; i++) {
        EXPECT(fn->C_CloseAllSessions(0), CKR_OK);
        session = open_session(0, 0);
        words_draw(session, 32, 65536);
    }
    ck_assert_uint_eq(target_calls_with("C_GenerateRandom", " rv=0xb3 "), 0);
}
END_TEST

/* The application's session is gone, and it does not close what is gone. */
START_TEST(ours_alone_does_not_keep_a_token_from_being_initialized)
{
    CK_UTF8CHAR label[32];
    memset(label, ' ', sizeof label);
    begin("x-pool-max-age: 1min");
    CK_SESSION_HANDLE session = open_with_ours(0);
    token_loses(session);
    EXPECT(fn->C_InitToken(0, pin, 4, label), CKR_OK);
}
END_TEST

START_TEST(after_an_so_the_prefetch_comes_back)
{
    begin("x-pool-max-age: 1min");
    CK_SESSION_HANDLE session = open_with_ours(CKF_RW_SESSION);
    EXPECT(fn->C_Login(session, CKU_SO, pin, 4), CKR_OK);
    if (_i == 0)
        EXPECT(fn->C_Logout(session), CKR_OK);
    else {
        EXPECT(_i == 1 ? fn->C_CloseSession(session) : fn->C_CloseAllSessions(0), CKR_OK);
        session = open_session(0, 0);
    }
    unsigned opened = target_calls_by_others("C_OpenSession");
    while (target_calls_by_others("C_OpenSession") ==
           opened) { /* in vain as long as a test may take */
        words_draw(session, 32, 32768);
        usleep(5000);
    }
}
END_TEST

START_TEST(counts_that_the_token_does_not_tell_stay_untold)
{
    knob("COUNT_SESSIONS", "0");
    begin("x-pool-max-age: 1min");
    open_with_ours(0);
    ck_assert_uint_eq(token_info(0).ulSessionCount, CK_UNAVAILABLE_INFORMATION);
    ck_assert_uint_eq(token_info(0).ulRwSessionCount, CK_UNAVAILABLE_INFORMATION);
}
END_TEST

/* Another process may want the token's last sessions. */
START_TEST(the_last_sessions_of_a_token_are_not_taken)
{
    knob("SESSIONS_MAX", _i == 0 ? "2" : "3");
    begin("x-pool-max-age: 1min");
    CK_SESSION_HANDLE session = open_session(0, 0);
    words_draw(session, 32, 65536);
    wait_until_quiet();
    ck_assert_uint_eq(target_calls_by_others("C_OpenSession"), _i == 0 ? 0U : 1U);
}
END_TEST

/* Tokens say it in different ways. */
START_TEST(ours_gives_way_whatever_the_token_is_short_of)
{
    static const char *const codes[] = {"0xb1", "0x31", "0x2", "0x201"};
    CK_SESSION_HANDLE more;
    begin("x-pool-max-age: 1min");
    open_with_ours(0);
    knob("SESSIONS_MAX", "2");
    knob("SESSIONS_REFUSAL", codes[_i]);
    open_session(0, 0);
    EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &more),
           strtoul(codes[_i], NULL, 16));
}
END_TEST

START_TEST(a_session_that_the_token_will_not_close_stays_what_it_was)
{
    begin("x-pool-max-age: 1min");
    CK_SESSION_HANDLE session = open_with_ours(0);
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_OK);
    knob("CLOSE_CODE", "0x6");
    EXPECT(fn->C_CloseSession(session), CKR_FUNCTION_FAILED);
    knob("CLOSE_CODE", NULL);
    words_draw(session, 16, 4096);
    wait_until_quiet();
    unsigned own = target_calls_by_us("C_GenerateRandom");
    words_draw(session, 16, 1024);
    ck_assert_uint_eq(target_calls_by_us("C_GenerateRandom"), own);
    EXPECT(fn->C_CloseSession(session), CKR_OK);
    EXPECT(fn->C_GetSessionInfo(open_session(0, 0), &info), CKR_OK);
    ck_assert_uint_eq(info.state, CKS_RO_PUBLIC_SESSION);
}
END_TEST

/* The pool is full, another session draws from it, and this one is known to be dead. */
START_TEST(a_session_that_the_token_calls_dead_is_served_nothing)
{
    CK_BYTE bytes[8];
    begin("x-pool-max-age: 1min");
    CK_SESSION_HANDLE session = open_with_ours(0);
    CK_SESSION_HANDLE lost = open_session(0, 0);
    words_draw(session, 16, 4096);
    wait_until_quiet();
    token_loses(lost);
    EXPECT(fn->C_GetSessionInfo(lost, &info), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_GenerateRandom(lost, bytes, sizeof bytes), CKR_SESSION_HANDLE_INVALID);
    works(session);
}
END_TEST

START_TEST(sessions_that_were_closed_with_all_are_served_nothing_later)
{
    CK_BYTE bytes[8];
    begin("x-pool-max-age: 1min");
    CK_SESSION_HANDLE closed = open_with_ours(0);
    EXPECT(fn->C_CloseAllSessions(0), CKR_OK);
    CK_SESSION_HANDLE session = open_session(0, 0);
    words_draw(session, 16, 16384);
    wait_until_quiet();
    EXPECT(fn->C_GenerateRandom(closed, bytes, sizeof bytes), CKR_SESSION_HANDLE_INVALID);
    works(session);
}
END_TEST

static void *open_one(void *session)
{
    CK_RV rv = fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, session);
    return rv == CKR_OK ? NULL : session;
}

static bool second_is_open(void)
{
    return target_calls_with("C_OpenSession", " rv=0x0 ") >= 2;
}

/* The token has opened it and closed it again before its handle has come back. */
START_TEST(a_session_that_was_closed_while_it_was_opened_is_not_believed)
{
    CK_SESSION_HANDLE slow = CK_INVALID_HANDLE;
    CK_BYTE bytes[8];
    pthread_t thread;
    void *failed;
    begin("x-pool-threads: never\nx-pool-max-age: 1min");
    open_session(0, 0);
    void (*gate)(bool) = (void (*)(bool))target_symbol("counting_gate");
    knob("OPEN_GATE", "1");
    gate(true);
    ck_assert_int_eq(pthread_create(&thread, NULL, open_one, &slow), 0);
    ck_assert(wait_for(second_is_open));
    EXPECT(fn->C_CloseAllSessions(0), CKR_OK);
    gate(false);
    pthread_join(thread, &failed);
    ck_assert_ptr_null(failed);
    CK_SESSION_HANDLE session = open_session(0, 0);
    words_draw(session, 16, 4096);
    EXPECT(fn->C_GenerateRandom(slow, bytes, sizeof bytes), CKR_SESSION_HANDLE_INVALID);
}
END_TEST

/* A child that goes on with its parent's sessions finds no more of them than its parent had. */
START_TEST(a_child_does_not_count_what_it_inherits_of_ours)
{
    CK_TOKEN_INFO token;
    CK_SESSION_HANDLE more;
    int status;
    knob("LAX_FORK", "1");
    begin("x-pool-max-age: 1min");
    open_with_ours(0);
    knob("SESSIONS_MAX", "2");
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_HANGS_S);
        if (_i == 0 && (fn->C_GetTokenInfo(0, &token) != CKR_OK || token.ulSessionCount != 1))
            _exit(1);
        if (fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &more) != CKR_OK)
            _exit(2);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

static atomic_bool asking;
static pid_t asker;

static void *open_gate_once_the_asker_waits(void *unused)
{
    while (!atomic_load(&asking) || !thread_sleeps(asker))
        sched_yield();
    ((void (*)(bool))target_symbol("counting_gate"))(false);
    return unused;
}

/* The token has opened it, and its handle has not come back yet. */
START_TEST(ours_is_not_counted_while_it_is_opened_either)
{
    pthread_t opener;
    begin("x-pool-max-age: 1min");
    CK_SESSION_HANDLE session = open_session(0, 0);
    knob("OPEN_GATE", "1");
    ((void (*)(bool))target_symbol("counting_gate"))(true);
    words_draw_until(session, (bool (*)(void))target_symbol("counting_is_at_gate"));
    asker = (pid_t)syscall(SYS_gettid);
    ck_assert_int_eq(pthread_create(&opener, NULL, open_gate_once_the_asker_waits, NULL), 0);
    atomic_store(&asking, true);
    ck_assert_uint_eq(token_info(0).ulSessionCount, 1);
    pthread_join(opener, NULL);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, the_handle_of_ours_that_the_token_gave_away_is_the_applications);
    tcase_add_test(tcase, closing_all_leaves_no_handle_of_ours_behind);
    tcase_add_test(tcase, closing_all_waits_until_ours_is_out);
    tcase_add_test(tcase, ours_alone_does_not_keep_a_token_from_being_initialized);
    tcase_add_loop_test(tcase, after_an_so_the_prefetch_comes_back, 0, 3);
    tcase_add_test(tcase, ours_is_not_counted_while_it_is_opened_either);
    tcase_add_test(tcase, counts_that_the_token_does_not_tell_stay_untold);
    tcase_add_loop_test(tcase, the_last_sessions_of_a_token_are_not_taken, 0, 2);
    tcase_add_loop_test(tcase, ours_gives_way_whatever_the_token_is_short_of, 0, 4);
    tcase_add_test(tcase, a_session_that_the_token_will_not_close_stays_what_it_was);
    tcase_add_test(tcase, a_session_that_the_token_calls_dead_is_served_nothing);
    tcase_add_test(tcase, sessions_that_were_closed_with_all_are_served_nothing_later);
    tcase_add_test(tcase, a_session_that_was_closed_while_it_was_opened_is_not_believed);
    if (CHILDREN_CAN_RUN)
        tcase_add_loop_test(tcase, a_child_does_not_count_what_it_inherits_of_ours, 0, 2);
}

int main(void)
{
    return run_tests("hidden", add_tests);
}
