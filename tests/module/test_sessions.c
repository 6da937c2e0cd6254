/* test_sessions.c - the filler's session is invisible: it is not counted, takes no place, and keeps no login. And no
 * session is too many, no slot a matter to others. */
#include "fixture.h"

static CK_UTF8CHAR label[] = "anew                            ";

static CK_STATE state_of(CK_SESSION_HANDLE of)
{
    CK_SESSION_INFO info;
    EXPECT(fn->C_GetSessionInfo(of, &info), CKR_OK);
    return info.state;
}

static CK_SESSION_HANDLE fillers_session(void)
{
    return LAST_CALL(C_GenerateRandom, .by = FILLER)->session;
}

/* _i: whether the token makes it a read/write session only. */
TEST_EACH(its_session_is_not_counted, 0, 2)
{
    script("%s", _i == 0 ? "" : "C_OpenSession by filler read-only: fail 0x5");
    begin_filled();
    open_session(0, 0);
    for (int i = 0; i < 100; i++) {
        ck_assert_uint_eq(token_info().ulSessionCount, 2);
        ck_assert_uint_eq(token_info().ulRwSessionCount, 1);
        draw(session, 64, 4096);
    }
    script("untold counts");
    ck_assert_uint_eq(token_info().ulSessionCount, CK_UNAVAILABLE_INFORMATION);
}

static void *ask_for_the_token(void *info)
{
    *(CK_TOKEN_INFO *)info = token_info();
    return NULL;
}

/* The token has opened it, and its handle has not come back yet; or closed it. */
TEST_EACH(it_is_not_counted_either_while_it_is_opened_or_closed, 0, 2)
{
    CK_TOKEN_INFO info;
    script("C_OpenSession by filler: hold once; C_CloseSession by filler: hold first once");
    begin("x-pool-max-age: 1min");
    if (_i == 0)
        DRAW_UNTIL(session, script_held() == 1);
    else {
        script_release();
        draw_until_filled(session);
        script("C_CloseSession by filler: hold first once");
        WAIT_UNTIL(CALLS(C_GenerateRandom, .by = FILLER) != 0);
    }
    start_threads(1, ask_for_the_token, &info);
    script_release();
    join_threads();
    ck_assert_uint_eq(info.ulSessionCount, 1);
}

TEST(its_session_does_not_exist_for_the_application)
{
    CK_BYTE bytes[16];
    CK_MECHANISM mechanism = {CKM_SHA256, NULL, 0};
    begin_filled();
    CK_SESSION_HANDLE theirs = fillers_session();
    EXPECT(fn->C_GetSessionInfo(theirs, &(CK_SESSION_INFO){0}), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_GenerateRandom(theirs, bytes, sizeof bytes), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_SeedRandom(theirs, bytes, sizeof bytes), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_Login(theirs, CKU_USER, pin, 4), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_DigestInit(theirs, &mechanism), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_CloseSession(theirs), CKR_SESSION_HANDLE_INVALID);
    ck_assert_uint_eq(CALLS(C_CloseSession, .session = theirs), 0);
}

TEST(a_token_can_be_initialized_once_the_application_has_no_session)
{
    begin_filled();
    EXPECT(fn->C_InitToken(0, pin, 4, label), CKR_SESSION_EXISTS);
    EXPECT(fn->C_CloseSession(session), CKR_OK);
    EXPECT(fn->C_InitToken(0, pin, 4, label), CKR_OK);
    session = open_session(0, 0);
    draw_until_filled(session);
}

/* And no session is tried while the SO is logged in. Afterwards the filler is back. */
TEST_EACH(the_so_can_log_in_beside_read_write_sessions, 0, 3)
{
    CK_SESSION_HANDLE other;
    begin_filled();
    EXPECT(fn->C_Login(session, CKU_SO, pin, 4), CKR_OK);
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_USER_ALREADY_LOGGED_IN);
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

/* _i + 1 sessions are all that the token has, and it tells. */
TEST_EACH(all_sessions_of_the_token_are_the_applications, 0, 4)
{
    CK_SESSION_HANDLE more;
    CK_ULONG count = (CK_ULONG)_i + 1;
    script("sessions at most %lu", count);
    begin("");
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
}

/* A ceiling that the token does not tell is met by trying, and tokens say it in different ways. */
TEST_EACH(its_session_gives_way_whatever_the_token_is_short_of, 0, 4)
{
    static const char *const codes[] = {"0xb1", "0x31", "0x2", "0x201"};
    CK_SESSION_HANDLE more;
    begin_filled();
    script("sessions at most 2; session refusal %s", codes[_i]);
    open_session(0, 0);
    EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &more),
           strtoul(codes[_i], NULL, 16));
    draw(session, 32, 8192);
    script("sessions at most 3");
    open_session(0, 0);
}

/* A token that closes what is idle does not say so. The handle is the next session's then, the application's. */
TEST(its_session_dies_and_another_is_opened)
{
    script("reuse handles");
    begin_filled();
    CK_SESSION_HANDLE theirs = fillers_session();
    unsigned opened = CALLS(C_OpenSession, .by = FILLER);
    EXPECT(bare_list()->C_CloseSession(theirs), CKR_OK);
    CK_SESSION_HANDLE second = open_session(0, 0);
    ck_assert_uint_eq(second, theirs);
    EXPECT(fn->C_GetSessionInfo(second, &(CK_SESSION_INFO){0}), CKR_OK);
    draw(second, 16, 1024);
    ck_assert_uint_eq(token_info().ulSessionCount, 2);
    EXPECT(fn->C_CloseSession(second), CKR_OK);
    DRAW_UNTIL(session, CALLS(C_OpenSession, .by = FILLER, .outcome = GOOD) > opened);
}

/* The filler leaves the token first, so that it never uses a handle that the token has given to another session. */
TEST(closing_all_leaves_nothing_of_it_behind)
{
    script("reuse handles");
    begin_filled();
    for (int i = 0; i < 20; i++) {
        EXPECT(fn->C_CloseAllSessions(0), CKR_OK);
        for (int k = 0; k < 3; k++)
            EXPECT(fn->C_GetSessionInfo(session = open_session(0, 0), &(CK_SESSION_INFO){0}),
                   CKR_OK);
        ck_assert_uint_eq(token_info().ulSessionCount, 3);
        draw(session, 32, 32768);
    }
    ck_assert_uint_eq(CALLS(C_GenerateRandom, .rv = CKR_SESSION_HANDLE_INVALID), 0);
}

/* Of its token nothing is left, and another may be in the slot. */
TEST(a_token_that_is_pulled_out_takes_it_along)
{
    script("reuse handles");
    begin_filled();
    let_filler_work(); /* a call that it has begun would be on the next owner's session */
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
}

TEST(a_close_that_fails_leaves_session_and_pool_as_they_were)
{
    begin("x-pool-max-age: 1min\nx-pool-threads: never");
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_OK);
    draw_until_held(session);
    script("C_CloseSession: fail 0x6 once");
    EXPECT(fn->C_CloseSession(session), CKR_FUNCTION_FAILED);
    ck_assert_uint_eq(draw_word(session).login, 1);
    draw_until_held(session);
    EXPECT(fn->C_CloseSession(session), CKR_OK);
    ck_assert_uint_eq(state_of(open_session(0, 0)), CKS_RO_PUBLIC_SESSION);
}

static void expect_words_of(CK_SESSION_HANDLE on, unsigned slot)
{
    for (int i = 0; i < 200; i++)
        ck_assert_uint_eq(draw_word(on).slot, slot);
}

static void expect_good_slots_to_work(void)
{
    for (CK_SLOT_ID slot = 0; slot < 3; slot += 2) {
        session = open_session(slot, 0);
        expect_words_of(session, (unsigned)slot);
        small_draws_are_served_ahead(session);
    }
}

TEST(a_broken_slot_is_no_matter_to_those_beside_it)
{
    script("slots 3; C_GetTokenInfo in slot 1: fail 0x30; C_OpenSession in slot 1: fail 0x30");
    proxy_with("x-pool-max-age: 1min");
    initialize();
    for (int round = 0; round < 3; round++) {
        EXPECT(fn->C_GetTokenInfo(1, &(CK_TOKEN_INFO){0}), CKR_DEVICE_ERROR);
        EXPECT(fn->C_OpenSession(1, CKF_SERIAL_SESSION, NULL, NULL, &session), CKR_DEVICE_ERROR);
        expect_good_slots_to_work();
    }
    script("C_GetTokenInfo in slot 1: ok; C_OpenSession in slot 1: ok");
    expect_words_of(open_session(1, 0), 1);
}

/* Each of them, those that take the places of closed ones, and none that is closed. */
TEST(tens_of_thousands_of_sessions_are_served_from_the_pool)
{
    enum { SESSIONS = 30000 };
    static CK_SESSION_HANDLE sessions[SESSIONS];
    CK_BYTE byte;
    script("quiet");
    proxy_with("x-pool-max-age: 1min\nx-pool-size: 1MiB\nx-pool-threads: never");
    initialize();
    for (int i = 0; i < SESSIONS; i++)
        sessions[i] = open_session(0, 0);
    for (int i = 0; i < SESSIONS; i += 3) {
        EXPECT(fn->C_CloseSession(sessions[i]), CKR_OK);
        EXPECT(fn->C_GenerateRandom(sessions[i], &byte, 1), CKR_SESSION_HANDLE_INVALID);
        sessions[i] = open_session(0, 0);
    }
    unsigned before = CALLS(C_GenerateRandom, .outcome = GOOD);
    for (int i = 0; i < SESSIONS; i++)
        EXPECT(fn->C_GenerateRandom(sessions[i], &byte, 1), CKR_OK);
    ck_assert_uint_lt(CALLS(C_GenerateRandom, .outcome = GOOD), before + 200);
    EXPECT(fn->C_CloseAllSessions(0), CKR_OK);
    for (int i = 0; i < SESSIONS; i++)
        EXPECT(fn->C_GenerateRandom(sessions[i], &byte, 1), CKR_SESSION_HANDLE_INVALID);
}

static void *close_all(void *unused)
{
    EXPECT(fn->C_CloseAllSessions(0), CKR_OK);
    return unused;
}

/* _i: 0 before the token closes them; 1 after it has. The pool must not answer for what the token has closed. */
TEST_EACH(a_session_opened_while_all_are_closed_is_open_if_the_token_says_so, 0, 2)
{
    script("slots 2; C_CloseAllSessions: %s", _i == 0 ? "hold first" : "hold");
    begin("x-pool-max-age: 1min");
    draw(session, 16, 1024);
    start_threads(1, close_all, NULL);
    WAIT_UNTIL(script_held() == 1);
    CK_SESSION_HANDLE meanwhile = open_session(0, 0), other = open_session(1, 0);
    script_release();
    join_threads();
    small_draws_are_served_ahead(open_session(0, 0));
    small_draws_are_served_ahead(other);
    EXPECT(draw_or_fail(session, 16), CKR_SESSION_HANDLE_INVALID);
    EXPECT(draw_or_fail(meanwhile, 16), _i == 0 ? CKR_SESSION_HANDLE_INVALID : CKR_OK);
}
