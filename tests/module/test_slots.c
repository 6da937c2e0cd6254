/* test_slots.c - a slot that is broken is no matter to others, and nothing that slots say is remembered. */
#include "served.h"

#include <stdio.h>

enum { DRAWS = 200, WARM_BYTES = 4096 };

static void begin_with(const char *said)
{
    script("%s", said);
    proxy_with("x-pool-max-age: 1min");
    initialize();
}

static CK_SESSION_HANDLE open_warm(CK_SLOT_ID slot)
{
    CK_SESSION_HANDLE session = open_session(slot, 0);
    draw(session, 16, WARM_BYTES);
    return session;
}

static void expect_words_of(CK_SESSION_HANDLE session, unsigned token)
{
    for (int i = 0; i < DRAWS; i++) {
        struct word word = draw_word(session);
        ck_assert_msg(word.slot == token, "draw %d is token %u's, not %u's", i, word.slot, token);
    }
}

static char serial_of(CK_SLOT_ID slot)
{
    CK_TOKEN_INFO info;
    EXPECT(fn->C_GetTokenInfo(slot, &info), CKR_OK);
    return (char)info.serialNumber[0];
}

static const CK_SLOT_ID good[] = {0, 2};

static void expect_good_slots_to_work(void)
{
    for (int i = 0; i < 2; i++) {
        CK_SESSION_HANDLE session = open_session(good[i], 0);
        expect_words_of(session, (unsigned)good[i]);
        let_filler_work();
        unsigned by_caller = CALLS(C_GenerateRandom, .by = THIS_THREAD);
        draw(session, 16, 256);
        ck_assert_uint_eq(CALLS(C_GenerateRandom, .by = THIS_THREAD), by_caller);
    }
}

TEST(a_broken_slot_is_no_matter_to_those_beside_it)
{
    CK_TOKEN_INFO info;
    CK_SESSION_HANDLE session;
    begin_with("slots 3; C_GetTokenInfo in slot 1: fail 0x30; C_OpenSession in slot 1: fail 0x30");
    for (int round = 0; round < 3; round++) {
        EXPECT(fn->C_GetTokenInfo(1, &info), CKR_DEVICE_ERROR);
        EXPECT(fn->C_OpenSession(1, CKF_SERIAL_SESSION, NULL, NULL, &session), CKR_DEVICE_ERROR);
        expect_good_slots_to_work();
    }
    script("C_GetTokenInfo in slot 1: ok; C_OpenSession in slot 1: ok");
    ck_assert_int_eq(serial_of(1), '1');
    expect_words_of(open_session(1, 0), 1);

    /* In the middle of it, with a session open there. */
    session = open_warm(1);
    script("C_GetTokenInfo in slot 1: fail 0xe0");
    EXPECT(fn->C_GetTokenInfo(1, &info), CKR_TOKEN_NOT_PRESENT);
    expect_words_of(session, 1);
    expect_good_slots_to_work();
    served_once(1000);
}

int main(void)
{
    return test_main("slots", set_up, tear_down);
}
