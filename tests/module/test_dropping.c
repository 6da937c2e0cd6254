/* test_dropping.c - after an event that changes what the token is or who uses it, nothing older is served. */
#include "served.h"

#include <pthread.h>
#include <unistd.h>

static CK_SESSION_HANDLE session;
static CK_BYTE pin[] = "1234";

/* Events. Each leaves a session to draw on. */

static void seed(void)
{
    EXPECT(fn->C_SeedRandom(session, pin, 4), CKR_OK);
}

static void log_in(void)
{
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_OK);
}

static void log_out(void)
{
    EXPECT(fn->C_Logout(session), CKR_OK);
}

static void log_the_so_in(void)
{
    EXPECT(fn->C_Login(session, CKU_SO, pin, 4), CKR_OK);
}

static void close_all(void)
{
    EXPECT(fn->C_CloseAllSessions(0), CKR_OK);
    session = open_session(0, CKF_RW_SESSION);
}

static void close_the_last(void)
{
    EXPECT(fn->C_CloseSession(session), CKR_OK);
    session = open_session(0, CKF_RW_SESSION);
}

static void init_token(void)
{
    EXPECT(fn->C_CloseSession(session), CKR_OK);
    EXPECT(fn->C_InitToken(0, pin, 4, (CK_UTF8CHAR_PTR) "anew                            "),
           CKR_OK);
    session = open_session(0, CKF_RW_SESSION);
}

static void finalize(void)
{
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    initialize();
    session = open_session(0, CKF_RW_SESSION);
}

/* Any call on the session may be the first to hear of it. */
static void hear(const char *code)
{
    CK_SESSION_INFO info;
    script("C_GetSessionInfo: fail %s once", code);
    EXPECT(fn->C_GetSessionInfo(session, &info), strtoul(code, NULL, 16));
}

static void device_error(void)
{
    hear("0x30");
}

static void device_removed(void)
{
    hear("0x32");
}

static void token_not_present(void)
{
    hear("0xe0");
}

static void self_test_failed(void)
{
    hear("0x1b6");
}

static void seed_says_device_error(void)
{
    script("C_SeedRandom: fail 0x30 once");
    EXPECT(fn->C_SeedRandom(session, pin, 4), CKR_DEVICE_ERROR);
}

static void large_draw_says_device_error(void)
{
    script("C_GenerateRandom over 1024: fail 0x30 once");
    EXPECT(draw_or_fail(session, 2048), CKR_DEVICE_ERROR);
}

/* So may any that names the slot. */

static void slot_event(void)
{
    CK_SLOT_ID slot = 4711;
    script("event in slot 0");
    EXPECT(fn->C_WaitForSlotEvent(CKF_DONT_BLOCK, &slot, NULL), CKR_OK);
    ck_assert_uint_eq(slot, 0);
    script("event in slot none");
}

static void slot_info_says_empty(void)
{
    CK_SLOT_INFO info;
    script("empty slot 0");
    EXPECT(fn->C_GetSlotInfo(0, &info), CKR_OK);
    ck_assert_uint_eq(info.flags & CKF_TOKEN_PRESENT, 0);
    script("empty slot none");
    session = open_session(0, CKF_RW_SESSION);
}

static void list_of_tokens_lacks_it(void)
{
    CK_SLOT_ID slots[4];
    CK_ULONG count = 4;
    script("empty slot 0");
    EXPECT(fn->C_GetSlotList(CK_TRUE, slots, &count), CKR_OK);
    ck_assert_uint_eq(count, 0);
    script("empty slot none");
    session = open_session(0, CKF_RW_SESSION);
}

static void list_of_slots_lacks_it(void)
{
    CK_SLOT_ID slots[4];
    CK_ULONG count = 4;
    script("slots 0");
    EXPECT(fn->C_GetSlotList(CK_FALSE, slots, &count), CKR_OK);
    ck_assert_uint_eq(count, 0);
    script("slots 1");
    session = open_session(0, CKF_RW_SESSION);
}

static void open_says_not_present(void)
{
    CK_SESSION_HANDLE none;
    script("C_OpenSession by callers: fail 0xe0 once");
    EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &none), CKR_TOKEN_NOT_PRESENT);
}

static void token_info_says_removed(void)
{
    CK_TOKEN_INFO info;
    script("C_GetTokenInfo: fail 0x32 once");
    EXPECT(fn->C_GetTokenInfo(0, &info), CKR_DEVICE_REMOVED);
}

static void mechanism_info_says_not_recognized(void)
{
    CK_MECHANISM_INFO info;
    script("C_GetMechanismInfo: fail 0xe1 once");
    EXPECT(fn->C_GetMechanismInfo(0, CKM_RSA_PKCS, &info), CKR_TOKEN_NOT_RECOGNIZED);
}

/* One that is not the last. */
static void close_says_removed(void)
{
    CK_SESSION_HANDLE other = open_session(0, 0);
    script("C_CloseSession by callers: fail 0x32 once");
    EXPECT(fn->C_CloseSession(other), CKR_DEVICE_REMOVED);
}

static const struct event {
    const char *name;
    void (*happens)(void);
    bool logged_in; /* the user is, before it */
    bool waits;     /* for the call that the filler is in */
} events[] = {
    {"seed", seed, false, false},
    {"login", log_in, false, false},
    {"logout", log_out, true, false},
    {"SO login", log_the_so_in, false, true},
    {"close all while logged in", close_all, true, true},
    {"last close while logged in", close_the_last, true, true},
    {"init token", init_token, false, true},
    {"finalize", finalize, false, true},
    {"device error", device_error, false, false},
    {"device removed", device_removed, false, false},
    {"token not present", token_not_present, false, false},
    {"self test failed", self_test_failed, false, false},
    {"seed says device error", seed_says_device_error, false, false},
    {"large draw says device error", large_draw_says_device_error, false, false},
    {"event of the slot", slot_event, false, false},
    {"slot info says empty", slot_info_says_empty, false, false},
    {"list of tokens lacks it", list_of_tokens_lacks_it, false, false},
    {"list of slots lacks it", list_of_slots_lacks_it, false, false},
    {"open says not present", open_says_not_present, false, false},
    {"token info says removed", token_info_says_removed, false, false},
    {"mechanism info says not recognized", mechanism_info_says_not_recognized, false, false},
    {"close says removed", close_says_removed, false, false},
};

enum { EVENTS = sizeof events / sizeof *events };

static void begin_before(const struct event *event, const char *settings)
{
    proxy_with(settings);
    initialize();
    session = open_session(0, CKF_RW_SESSION);
    if (event->logged_in)
        log_in();
}

static void nothing_is_served_from_before(const struct event *event, uint64_t made)
{
    for (int round = 0; round < 2; round++) {
        uint64_t lowest = draw(session, 16, 16384);
        ck_assert_msg(lowest > made, "%s: word %lu is served, of %lu made before", event->name,
                      (unsigned long)lowest, (unsigned long)made);
        let_filler_work();
    }
    served_once(1024);
}

TEST_EACH(what_is_held_is_not_served_after_an_event, 0, 2 * EVENTS)
{
    const struct event *event = &events[_i % EVENTS];
    begin_before(event, _i < EVENTS ? "x-pool-max-age: 1min"
                                    : "x-pool-max-age: 1min\nx-pool-threads: never");
    draw(session, 16, 4096);
    let_filler_work();
    uint64_t made = draw_until_held(session);
    event->happens();
    nothing_is_served_from_before(event, made);
}

static void *happens(void *event)
{
    ((const struct event *)event)->happens();
    return NULL;
}

/* The filler has its bytes, and has not come back with them. */
TEST_EACH(what_is_on_its_way_is_not_served_after_an_event, 0, EVENTS)
{
    const struct event *event = &events[_i];
    pthread_t thread;
    begin_before(event, "x-pool-max-age: 1min");
    script("C_GenerateRandom by filler: hold");
    DRAW_UNTIL(session, script_held() == 1);
    uint64_t made = words_made();
    if (event->waits)
        ck_assert_int_eq(pthread_create(&thread, NULL, happens, (void *)event), 0);
    else
        event->happens();
    script_release();
    if (event->waits)
        pthread_join(thread, NULL);
    nothing_is_served_from_before(event, made);
}

static void *draw_one(void *unused)
{
    draw_word(session);
    return unused;
}

/* The caller's own read-ahead is under way. */
TEST_EACH(what_a_caller_reads_ahead_is_not_kept_after_an_event, 0, 3)
{
    static const char *const others[] = {"seed", "login", "device error"};
    pthread_t thread;
    const struct event *event = events;
    while (strcmp(event->name, others[_i]) != 0)
        event++;
    begin_before(event, "x-pool-max-age: 1min\nx-pool-threads: never");
    script("C_GenerateRandom: hold once");
    ck_assert_int_eq(pthread_create(&thread, NULL, draw_one, NULL), 0);
    WAIT_UNTIL(script_held() == 1);
    uint64_t made = words_made();
    event->happens();
    script_release();
    pthread_join(thread, NULL);
    nothing_is_served_from_before(event, made);
}

/* GnuTLS opens a session for each request. */
TEST_EACH(a_last_close_that_logs_nobody_out_keeps_what_is_held, 0, 2)
{
    session =
        begin(_i == 0 ? "x-pool-max-age: 1min" : "x-pool-max-age: 1min\nx-pool-threads: never");
    draw(session, 16, 4096);
    let_filler_work();
    uint64_t made = draw_until_held(session);
    close_the_last();
    ck_assert_uint_le(draw(session, 16, 16), made);
    served_once(512);
}

/* The token's code comes back as it is. */
TEST(what_changes_nothing_drops_nothing)
{
    CK_SESSION_INFO info;
    session = begin("x-pool-max-age: 1min\nx-pool-threads: never");
    log_in();
    draw(session, 16, 1024);
    uint64_t made = draw_until_held(session);
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_USER_ALREADY_LOGGED_IN);
    EXPECT(fn->C_Login(session, CKU_CONTEXT_SPECIFIC, pin, 4), CKR_OK);
    script("C_SeedRandom: fail 0x54 once, then fail 0x120 once, then fail 0x121 once");
    EXPECT(fn->C_SeedRandom(session, pin, 4), CKR_FUNCTION_NOT_SUPPORTED);
    EXPECT(fn->C_SeedRandom(session, pin, 4), CKR_RANDOM_SEED_NOT_SUPPORTED);
    EXPECT(fn->C_SeedRandom(session, pin, 4), CKR_RANDOM_NO_RNG);
    script("C_GetSessionInfo: fail 0x5 once; C_Logout: fail 0x6 once");
    EXPECT(fn->C_GetSessionInfo(session, &info), CKR_GENERAL_ERROR);
    EXPECT(fn->C_Logout(session), CKR_FUNCTION_FAILED);
    ck_assert_uint_le(draw(session, 16, 16), made);
    ck_assert_uint_eq(CALLS(C_SeedRandom, .bytes = 4), 3);
    served_once(64);
}

TEST(a_pool_that_keeps_its_bytes_on_seed_serves_them)
{
    session = begin("x-pool-max-age: 1min\nx-pool-on-seed: keep");
    draw(session, 16, 1024);
    uint64_t made = draw_until_held(session);
    seed();
    ck_assert_uint_le(draw(session, 16, 16), made);
    served_once(64);
}

/* A login that ran out, a generator that wants a seed first: what is held is not the token's any more. */
TEST_EACH(what_the_token_gives_to_nobody_now_is_not_served, 0, 4)
{
    static const char *const codes[] = {"0x101", "0x121", "0x205", "0x1b6"};
    session = begin("x-pool-max-age: 1min");
    draw_until_filled(session);
    script("C_GenerateRandom: fail %s", codes[_i]);
    CK_RV rv = CKR_OK;
    while (CALLS(C_GenerateRandom, .outcome = FAILED) == 0 && rv == CKR_OK)
        rv = draw_or_fail(session, 16);
    WAIT_UNTIL(draw_or_fail(session, 16) != CKR_OK);
    for (int i = 0; i < 20; i++)
        EXPECT(draw_or_fail(session, 16), strtoul(codes[_i], NULL, 16));
    served_once(64);
}

TEST_EACH(each_slot_and_login_is_served_bytes_of_its_own, 0, 2)
{
    script("slots 3%s", _i == 0 ? "" : "; login for random");
    session = begin("");
    CK_SESSION_HANDLE sessions[] = {session, open_session(1, 0), open_session(2, 0)};
    for (int round = 0; round < 20; round++)
        for (unsigned slot = 0; slot < 3; slot++) {
            if (_i == 0)
                ck_assert_uint_eq(draw_word(sessions[slot]).login, 0);
            else
                EXPECT(draw_or_fail(sessions[slot], 16), CKR_USER_NOT_LOGGED_IN);
            EXPECT(fn->C_Login(sessions[slot], CKU_USER, pin, 4), CKR_OK);
            for (int i = 0; i < 10; i++) {
                struct word word = draw_word(sessions[slot]);
                ck_assert_uint_eq(word.slot, slot);
                ck_assert_uint_eq(word.login, 1);
            }
            EXPECT(fn->C_Logout(sessions[slot]), CKR_OK);
        }
    served_once(600);
}

int main(void)
{
    return test_main("dropping", set_up, tear_down);
}
