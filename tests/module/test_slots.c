/* test_slots.c - a slot that is broken is no matter to others, and no session is too many. */
#include "served.h"

#include <pthread.h>

static void expect_words_of(CK_SESSION_HANDLE session, unsigned slot)
{
    for (int i = 0; i < 200; i++)
        ck_assert_uint_eq(draw_word(session).slot, slot);
}

static void expect_good_slots_to_work(void)
{
    for (CK_SLOT_ID slot = 0; slot < 3; slot += 2) {
        CK_SESSION_HANDLE session = open_session(slot, 0);
        expect_words_of(session, (unsigned)slot);
        small_draws_are_served_ahead(session);
    }
}

TEST(a_broken_slot_is_no_matter_to_those_beside_it)
{
    CK_TOKEN_INFO info;
    CK_SESSION_HANDLE session;
    script("slots 3; C_GetTokenInfo in slot 1: fail 0x30; C_OpenSession in slot 1: fail 0x30");
    proxy_with("x-pool-max-age: 1min");
    initialize();
    for (int round = 0; round < 3; round++) {
        EXPECT(fn->C_GetTokenInfo(1, &info), CKR_DEVICE_ERROR);
        EXPECT(fn->C_OpenSession(1, CKF_SERIAL_SESSION, NULL, NULL, &session), CKR_DEVICE_ERROR);
        expect_good_slots_to_work();
    }
    script("C_GetTokenInfo in slot 1: ok; C_OpenSession in slot 1: ok");
    expect_words_of(open_session(1, 0), 1);
    served_once(1000);
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
    pthread_t closer;
    script("slots 2; C_CloseAllSessions: %s", _i == 0 ? "hold first" : "hold");
    proxy_with("x-pool-max-age: 1min");
    initialize();
    CK_SESSION_HANDLE before = open_session(0, 0);
    draw(before, 16, 1024);
    ck_assert_int_eq(pthread_create(&closer, NULL, close_all, NULL), 0);
    WAIT_UNTIL(script_held() == 1);
    CK_SESSION_HANDLE meanwhile = open_session(0, 0), other = open_session(1, 0);
    script_release();
    pthread_join(closer, NULL);
    small_draws_are_served_ahead(open_session(0, 0));
    small_draws_are_served_ahead(other);
    EXPECT(draw_or_fail(before, 16), CKR_SESSION_HANDLE_INVALID);
    EXPECT(draw_or_fail(meanwhile, 16), _i == 0 ? CKR_SESSION_HANDLE_INVALID : CKR_OK);
}

int main(void)
{
    return test_main("slots", set_up, tear_down);
}
