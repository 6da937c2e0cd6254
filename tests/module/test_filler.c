/* test_filler.c - the proxy's thread comes with demand and goes without it, and its session is never in the way. */
#include "served.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static CK_SESSION_HANDLE session;
static CK_BYTE pin[] = "1234";
static CK_UTF8CHAR label[] = "anew                            ";

static CK_TOKEN_INFO token_info(void)
{
    CK_TOKEN_INFO info;
    EXPECT(fn->C_GetTokenInfo(0, &info), CKR_OK);
    return info;
}

static CK_STATE state_of(CK_SESSION_HANDLE of)
{
    CK_SESSION_INFO info;
    EXPECT(fn->C_GetSessionInfo(of, &info), CKR_OK);
    return info.state;
}

static void begin_filled(const char *script_text, CK_FLAGS more_flags)
{
    script("%s", script_text);
    proxy_with("x-pool-max-age: 1min");
    initialize();
    session = open_session(0, more_flags);
    draw_until_filled(session);
}

static CK_SESSION_HANDLE fillers_session(void)
{
    return LAST_CALL(C_GenerateRandom, .by = FILLER)->session;
}

START_TEST(it_comes_with_the_second_fetch_and_has_a_name_and_takes_no_signals)
{
    char path[64];
    char text[4096] = "";
    sigset_t callers;
    begin_a_thread_and_end_it();
    unsigned threads = threads_now();
    session = begin("x-pool-max-age: 1min");
    draw(session, 16, 1024);
    ck_assert_uint_eq(threads_now(), threads);
    draw_until_filled(session);
    ck_assert_uint_eq(threads_now(), threads + 1);
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &callers), 0);
    ck_assert(sigisemptyset(&callers));
    snprintf(path, sizeof path, "/proc/self/task/%ld/status", filler_thread());
    FILE *status = fopen(path, "re");
    ck_assert_ptr_nonnull(status);
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, status), 0);
    fclose(status);
    const char *blocked = strstr(text, "SigBlk:\t");
    ck_assert_ptr_nonnull(blocked);
    unsigned long mask = strtoul(blocked + strlen("SigBlk:\t"), NULL, 16);
    for (int i = SIGHUP; i <= SIGSYS; i++)
        ck_assert(i == SIGKILL || i == SIGSTOP || (mask >> (i - 1) & 1) != 0);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    WAIT_UNTIL(threads_now() == threads);
}
END_TEST

/* What a process of several threads may not do, such as entering another user namespace, it may again. */
START_TEST(it_ends_without_demand_its_session_first_and_comes_again)
{
    begin_a_thread_and_end_it();
    unsigned threads = threads_now();
    session = begin("x-pool-max-age: 1min");
    for (int i = 0; i < 3; i++) {
        draw_until_filled(session);
        WAIT_UNTIL(threads_now() == threads);
        ck_assert_uint_eq(CALLS(C_OpenSession, .by = FILLER), CALLS(C_CloseSession, .by = FILLER));
        ck_assert_uint_eq(token_info().ulSessionCount, 1);
        /* What was fetched for a minute is there still. */
        uint64_t made = words_made();
        ck_assert_uint_le(draw(session, 16, 16), made);
    }
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    served_once(128);
}
END_TEST

START_TEST(once_it_ended_a_process_may_enter_a_namespace)
{
    SKIP_IF_SANITIZED();
    pid_t child = fork();
    if (child == 0)
        _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    SKIP_IF(status != 0, "no user namespace is permitted here");
    session = begin("x-pool-max-age: 1min");
    draw_until_filled(session);
    WAIT_UNTIL(threads_now() == 1);
    ck_assert_int_eq(unshare(CLONE_NEWUSER), 0);
    draw(session, 16, 4096);
}
END_TEST

/* The kernel's count of threads is not zero as long as there is one of ours. */
static void *draw_a_while(void *unused)
{
    if (fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session) != CKR_OK)
        _exit(2);
    draw_until_filled(session);
    return unused;
}

static void end_with_the_last_thread(void)
{
    pthread_t thread;
    if (fn->C_Initialize(&os_locking) != CKR_OK ||
        pthread_create(&thread, NULL, draw_a_while, NULL) != 0)
        _exit(1);
    pthread_detach(thread);
    pthread_exit(NULL);
}

START_TEST(a_program_ends_with_its_own_last_thread)
{
    SKIP_IF_SANITIZED();
    proxy_with("x-pool-max-age: 1min");
    reap(child_that(end_with_the_last_thread));
}
END_TEST

/* As with `ulimit -s 64`: whoever makes threads gets small ones. The target is not used to that. */
START_TEST(it_has_a_stack_that_targets_are_used_to)
{
    pthread_attr_t small;
    SKIP_IF_SANITIZED();
    pthread_attr_init(&small);
    ck_assert_int_eq(pthread_attr_setstacksize(&small, 16384), 0);
    ck_assert_int_eq(pthread_setattr_default_np(&small), 0);
    begin_filled("stack KiB 256", 0);
    served_once(64);
}
END_TEST

/* _i: whether the token makes it a read/write session only. */
START_TEST(its_session_is_not_counted)
{
    begin_filled(_i == 0 ? "" : "C_OpenSession by filler read-only: fail 0x5", CKF_RW_SESSION);
    open_session(0, 0);
    for (int i = 0; i < 100; i++) {
        ck_assert_uint_eq(token_info().ulSessionCount, 2);
        ck_assert_uint_eq(token_info().ulRwSessionCount, 1);
        draw(session, 64, 4096);
    }
    script("untold counts");
    ck_assert_uint_eq(token_info().ulSessionCount, CK_UNAVAILABLE_INFORMATION);
}
END_TEST

static void *ask_for_the_token(void *info)
{
    *(CK_TOKEN_INFO *)info = token_info();
    return NULL;
}

/* The token has opened it, and its handle has not come back yet; or closed it. */
START_TEST(it_is_not_counted_either_while_it_is_opened_or_closed)
{
    CK_TOKEN_INFO info;
    pthread_t asker;
    script("C_OpenSession by filler: hold once; C_CloseSession by filler: hold first once");
    session = begin("x-pool-max-age: 1min");
    if (_i == 0)
        DRAW_UNTIL(session, script_held() == 1);
    else {
        script_release();
        draw_until_filled(session);
        script("C_CloseSession by filler: hold first once");
        WAIT_UNTIL(CALLS(C_GenerateRandom, .by = FILLER) != 0);
    }
    ck_assert_int_eq(pthread_create(&asker, NULL, ask_for_the_token, &info), 0);
    script_release();
    pthread_join(asker, NULL);
    ck_assert_uint_eq(info.ulSessionCount, 1);
}
END_TEST

START_TEST(its_session_does_not_exist_for_the_application)
{
    CK_SESSION_INFO info;
    CK_BYTE bytes[16];
    CK_ULONG len_bytes = sizeof bytes;
    CK_MECHANISM mechanism = {CKM_SHA256, NULL, 0};
    begin_filled("", 0);
    CK_SESSION_HANDLE theirs = fillers_session();
    EXPECT(fn->C_GetSessionInfo(theirs, &info), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_GenerateRandom(theirs, bytes, sizeof bytes), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_GenerateRandom(theirs, NULL, 2048), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_SeedRandom(theirs, bytes, sizeof bytes), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_Login(theirs, CKU_USER, pin, 4), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_Logout(theirs), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_DigestInit(theirs, &mechanism), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_Digest(theirs, bytes, sizeof bytes, bytes, &len_bytes),
           CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_FindObjectsInit(theirs, NULL, 0), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_CloseSession(theirs), CKR_SESSION_HANDLE_INVALID);
    ck_assert_uint_eq(CALLS(C_CloseSession, .session = theirs), 0);
}
END_TEST

START_TEST(the_last_close_logs_out)
{
    begin_filled("", 0);
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_OK);
    draw_until_filled(session);
    if (_i == 0)
        EXPECT(fn->C_CloseSession(session), CKR_OK);
    else
        EXPECT(fn->C_CloseAllSessions(0), CKR_OK);
    session = open_session(0, 0);
    ck_assert_uint_eq(state_of(session), CKS_RO_PUBLIC_SESSION);
    ck_assert_uint_eq(draw_word(session).login, 0);
}
END_TEST

START_TEST(a_token_can_be_initialized_once_the_application_has_no_session)
{
    begin_filled("", 0);
    EXPECT(fn->C_InitToken(0, pin, 4, label), CKR_SESSION_EXISTS);
    EXPECT(fn->C_CloseSession(session), CKR_OK);
    EXPECT(fn->C_InitToken(0, pin, 4, label), CKR_OK);
    session = open_session(0, 0);
    draw_until_filled(session);
}
END_TEST

/* And no session is tried while the SO is logged in. Afterwards the filler is back. */
START_TEST(the_so_can_log_in_beside_read_write_sessions)
{
    CK_SESSION_HANDLE other;
    begin_filled("", CKF_RW_SESSION);
    EXPECT(fn->C_Login(session, CKU_SO, pin, 4), CKR_OK);
    ck_assert_uint_eq(state_of(session), CKS_RW_SO_FUNCTIONS);
    draw(session, 32, 32768);
    ck_assert_uint_eq(draw_word(session).login, 2);
    ck_assert_uint_eq(CALLS(C_OpenSession, .by = FILLER, .outcome = FAILED), 0);
    EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &other),
           CKR_SESSION_READ_WRITE_SO_EXISTS);
    if (_i == 0)
        EXPECT(fn->C_Logout(session), CKR_OK);
    else
        EXPECT(_i == 1 ? fn->C_CloseSession(session) : fn->C_CloseAllSessions(0), CKR_OK);
    session = open_session(0, 0);
    unsigned opened = CALLS(C_OpenSession, .by = FILLER);
    DRAW_UNTIL(session, CALLS(C_OpenSession, .by = FILLER, .outcome = GOOD) > opened);
    ck_assert_uint_eq(draw_word(session).login, 0);
    EXPECT(fn->C_Login(session, CKU_SO, pin, 4), CKR_SESSION_READ_ONLY_EXISTS);
}
END_TEST

/* _i + 1 sessions are all that the token has, and it tells. */
START_TEST(all_sessions_of_the_token_are_the_applications)
{
    CK_SESSION_HANDLE more;
    CK_ULONG count = (CK_ULONG)_i + 1;
    script("sessions at most %lu", count);
    session = begin("");
    for (CK_ULONG i = 1; i < count; i++) {
        draw(session, 32, 32768);
        open_session(0, 0);
    }
    draw(session, 32, 32768);
    ck_assert_uint_eq(token_info().ulSessionCount, count);
    ck_assert_uint_eq(token_info().ulMaxSessionCount, count);
    EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &more), CKR_SESSION_COUNT);
    EXPECT(fn->C_CloseSession(session), CKR_OK);
    session = open_session(0, 0);
    draw(session, 32, 32768);
    served_once(1024);
}
END_TEST

/* A ceiling that the token does not tell is met by trying, and tokens say it in different ways. */
START_TEST(its_session_gives_way_whatever_the_token_is_short_of)
{
    static const char *const codes[] = {"0xb1", "0x31", "0x2", "0x201"};
    CK_SESSION_HANDLE more;
    begin_filled("", 0);
    script("sessions at most 2; session refusal %s", codes[_i]);
    open_session(0, 0);
    EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &more),
           strtoul(codes[_i], NULL, 16));
    draw(session, 32, 8192);
    script("sessions at most 3");
    open_session(0, 0);
}
END_TEST

/* A token that closes what is idle does not say so. The handle is the next session's then, the application's. */
START_TEST(its_session_dies_and_another_is_opened)
{
    CK_SESSION_INFO info;
    begin_filled("reuse handles", 0);
    CK_SESSION_HANDLE theirs = fillers_session();
    EXPECT(bare_list()->C_CloseSession(theirs), CKR_OK);
    CK_SESSION_HANDLE second = open_session(0, 0);
    ck_assert_uint_eq(second, theirs);
    EXPECT(fn->C_GetSessionInfo(second, &info), CKR_OK);
    draw(second, 16, 1024);
    ck_assert_uint_eq(token_info().ulSessionCount, 2);
    EXPECT(fn->C_CloseSession(second), CKR_OK);
    unsigned opened = CALLS(C_OpenSession, .by = FILLER);
    DRAW_UNTIL(session, CALLS(C_OpenSession, .by = FILLER, .outcome = GOOD) > opened);
    served_once(64);
}
END_TEST

/* It comes out of the token first, so that it never uses a handle that is somebody else's by then. */
START_TEST(closing_all_leaves_nothing_of_it_behind)
{
    CK_SESSION_INFO info;
    begin_filled("reuse handles", 0);
    for (int i = 0; i < 20; i++) {
        EXPECT(fn->C_CloseAllSessions(0), CKR_OK);
        for (int k = 0; k < 3; k++)
            EXPECT(fn->C_GetSessionInfo(session = open_session(0, 0), &info), CKR_OK);
        ck_assert_uint_eq(token_info().ulSessionCount, 3);
        draw(session, 32, 32768);
    }
    ck_assert_uint_eq(CALLS(C_GenerateRandom, .rv = CKR_SESSION_HANDLE_INVALID), 0);
}
END_TEST

/* Of its token nothing is left, and another may be in the slot. */
START_TEST(a_token_that_is_pulled_out_takes_it_along)
{
    begin_filled("reuse handles", 0);
    script("empty slot 0");
    EXPECT(fn->C_GenerateRandom(session, NULL, 2048), CKR_SESSION_HANDLE_INVALID);
    script("empty slot none; first token 1");
    for (int i = 0; i < 3; i++) {
        session = open_session(0, 0);
        struct word word = draw_word(session);
        ck_assert_uint_eq(word.slot, 1);
    }
    ck_assert_uint_eq(token_info().ulSessionCount, 3);
    draw_until_filled(session);
    served_once(64);
}
END_TEST

START_TEST(a_close_that_fails_leaves_session_and_pool_as_they_were)
{
    session = begin("x-pool-max-age: 1min\nx-pool-threads: never");
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_OK);
    draw_until_held(session);
    script("C_CloseSession: fail 0x6 once");
    EXPECT(fn->C_CloseSession(session), CKR_FUNCTION_FAILED);
    ck_assert_uint_eq(draw_word(session).login, 1);
    draw_until_held(session);
    EXPECT(fn->C_CloseSession(session), CKR_OK);
    ck_assert_uint_eq(state_of(open_session(0, 0)), CKS_RO_PUBLIC_SESSION);
}
END_TEST

/* A token may refuse random bytes, or lose the operation, while one is open. */
START_TEST(it_stands_aside_while_an_operation_is_open)
{
    CK_MECHANISM mechanism = {CKM_SHA256, NULL, 0};
    CK_BYTE bytes[32];
    CK_ULONG len_bytes = sizeof bytes;
    session = begin("");
    EXPECT(fn->C_DigestInit(session, &mechanism), CKR_OK);
    draw(session, 16, 32768);
    let_filler_work();
    ck_assert_uint_eq(CALLS(C_GenerateRandom, .by = FILLER), 0);
    EXPECT(fn->C_Digest(session, pin, 4, bytes, &len_bytes), CKR_OK);
    DRAW_UNTIL(session, CALLS(C_GenerateRandom, .by = FILLER) > 0);
    served_once(2048);
}
END_TEST

static void *sign(void *own)
{
    CK_MECHANISM mechanism = {CKM_RSA_PKCS, NULL, 0};
    CK_BYTE bytes[32];
    CK_ULONG len_bytes = sizeof bytes;
    EXPECT(fn->C_SignInit((CK_SESSION_HANDLE)own, &mechanism, 1), CKR_OK);
    EXPECT(fn->C_Sign((CK_SESSION_HANDLE)own, pin, 4, bytes, &len_bytes), CKR_OK);
    return NULL;
}

/* A card does one thing at a time: the signature would wait. */
START_TEST(it_stands_aside_while_a_call_is_under_way)
{
    pthread_t signer;
    session = begin("x-pool-max-age: 1min");
    script("C_Sign: hold");
    ck_assert_int_eq(pthread_create(&signer, NULL, sign, (void *)open_session(0, 0)), 0);
    WAIT_UNTIL(script_held() == 1);
    draw(session, 16, 32768);
    let_filler_work();
    ck_assert_uint_eq(CALLS(C_GenerateRandom, .by = FILLER), 0);
    script_release();
    pthread_join(signer, NULL);
    DRAW_UNTIL(session, CALLS(C_GenerateRandom, .by = FILLER) > 0);
    served_once(2048);
}
END_TEST

/* Nobody needs it: each call gets the token's answer, and those of the pool too. */
START_TEST(while_it_hangs_other_calls_are_answered)
{
    CK_SESSION_HANDLE more;
    CK_SLOT_INFO slot;
    CK_SLOT_ID slots[4];
    CK_ULONG count = 4;
    session = begin("x-pool-max-age: 1min");
    script("slots 2; C_GenerateRandom by filler: hold");
    DRAW_UNTIL(session, script_held() == 1);
    draw(session, 16, 65536);
    EXPECT(draw_or_fail(session, 4096), CKR_OK);
    EXPECT(fn->C_SeedRandom(session, pin, 4), CKR_OK);
    EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &more), CKR_OK);
    EXPECT(fn->C_CloseSession(more), CKR_OK);
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_OK);
    EXPECT(fn->C_Logout(session), CKR_OK);
    EXPECT(fn->C_GetSlotInfo(0, &slot), CKR_OK);
    EXPECT(fn->C_GetSlotList(CK_TRUE, slots, &count), CKR_OK);
    ck_assert_uint_eq(token_info().ulSessionCount, 1);
    draw(open_session(1, 0), 16, 1024);
    ck_assert_uint_eq(script_held(), 1);
    script_release();
    served_once(8192);
}
END_TEST

static atomic_ulong answer_inside;
static atomic_bool was_inside;

/* What the target does on whatever thread its generator runs. _i of the test is here. */
static int way_inside;

static void come_back(void)
{
    CK_SESSION_HANDLE more = 0;
    CK_TOKEN_INFO info;
    CK_BYTE bytes[1025];
    static __thread bool inside;
    if (inside || (way_inside >= 100) != (filler_thread() == gettid()))
        return;
    inside = true;
    CK_RV rv = CKR_OK;
    switch (way_inside % 100) {
    case 0:
        rv = fn->C_CloseAllSessions(0);
        break;
    case 1:
        rv = fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &more);
        break;
    case 2:
        rv = fn->C_InitToken(0, pin, 4, label);
        break;
    case 3:
        rv = fn->C_Login(session, CKU_SO, pin, 4);
        break;
    case 4:
        rv = fn->C_GetTokenInfo(0, &info);
        break;
    case 5:
        rv = fn->C_Finalize(NULL);
        break;
    case 6:
        rv = fn->C_Initialize(&os_locking);
        break;
    case 7:
        rv = fn->C_GenerateRandom(session, bytes, sizeof bytes);
        break;
    case 8:
        rv = fn->C_GenerateRandom(session, bytes, 1);
        break;
    case 9:
        rv = fn->C_CloseSession(session);
    }
    atomic_store(&answer_inside, rv);
    atomic_store(&was_inside, true);
    inside = false;
}

/* A target whose generator comes back to us, through OpenSSL perhaps: an error or an answer, and no hang. */
START_TEST(a_generator_that_comes_back_is_answered_on_whatever_thread)
{
    way_inside = _i / 10 * 100 + _i % 10;
    script_calls_back(come_back);
    script("slots 2; C_GenerateRandom: call back; C_GetSessionInfo: ok");
    session = begin("x-pool-max-age: 1min");
    CK_SESSION_HANDLE other = open_session(1, 0);
    for (unsigned long since_ms = 0; !was_inside; wait_a_moment(&since_ms, "was_inside")) {
        CK_BYTE bytes[512];
        fn->C_GenerateRandom(session, bytes, sizeof bytes);
        fn->C_GenerateRandom(other, bytes, sizeof bytes);
    }
    switch (way_inside % 100) {
    case 5: /* that waits for the very call */
    case 7:
        ck_assert_uint_eq(answer_inside, CKR_FUNCTION_FAILED);
        break;
    case 0:
    case 2:
    case 3:
        if (way_inside >= 100)
            ck_assert_uint_eq(answer_inside, CKR_FUNCTION_FAILED);
    }
    script("C_GenerateRandom: ok");
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    atomic_store(&shared->complaints, 0); /* of the target's own calls on that thread */
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, it_comes_with_the_second_fetch_and_has_a_name_and_takes_no_signals);
    tcase_add_test(tcase, it_ends_without_demand_its_session_first_and_comes_again);
    tcase_add_test(tcase, once_it_ended_a_process_may_enter_a_namespace);
    tcase_add_test(tcase, a_program_ends_with_its_own_last_thread);
    tcase_add_test(tcase, it_has_a_stack_that_targets_are_used_to);
    tcase_add_loop_test(tcase, its_session_is_not_counted, 0, 2);
    tcase_add_loop_test(tcase, it_is_not_counted_either_while_it_is_opened_or_closed, 0, 2);
    tcase_add_test(tcase, its_session_does_not_exist_for_the_application);
    tcase_add_loop_test(tcase, the_last_close_logs_out, 0, 2);
    tcase_add_test(tcase, a_token_can_be_initialized_once_the_application_has_no_session);
    tcase_add_loop_test(tcase, the_so_can_log_in_beside_read_write_sessions, 0, 3);
    tcase_add_loop_test(tcase, all_sessions_of_the_token_are_the_applications, 0, 4);
    tcase_add_loop_test(tcase, its_session_gives_way_whatever_the_token_is_short_of, 0, 4);
    tcase_add_test(tcase, its_session_dies_and_another_is_opened);
    tcase_add_test(tcase, closing_all_leaves_nothing_of_it_behind);
    tcase_add_test(tcase, a_token_that_is_pulled_out_takes_it_along);
    tcase_add_test(tcase, a_close_that_fails_leaves_session_and_pool_as_they_were);
    tcase_add_test(tcase, it_stands_aside_while_an_operation_is_open);
    tcase_add_test(tcase, it_stands_aside_while_a_call_is_under_way);
    tcase_add_test(tcase, while_it_hangs_other_calls_are_answered);
    tcase_add_loop_test(tcase, a_generator_that_comes_back_is_answered_on_whatever_thread, 0, 20);
}

int main(void)
{
    return run_tests("filler", add_tests);
}
