/* test_dropping.c - after an event that changes what the token is or its login, nothing older is served. */
#include "fixture.h"

#include <unistd.h>

#include "clock.h"

enum { MAX_AGE_S = 60, HOUR_S = 3600 };

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
    begin_again();
}

static void age_passes(void)
{
    clock_step((MAX_AGE_S + 1) * NS_PER_S, 0);
}

static void clocks_go_back(void)
{
    clock_step(-100 * NS_PER_S, 0);
}

static void machine_sleeps(void)
{
    clock_step(20 * NS_PER_MS, HOUR_S * NS_PER_S);
}

/* Any call that names the slot may be the first to hear that its token is gone. */

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

static void list_lacks_it(CK_BBOOL with_token, const char *gone, const char *back)
{
    CK_SLOT_ID slots[4];
    CK_ULONG count = 4;
    script("%s", gone);
    EXPECT(fn->C_GetSlotList(with_token, slots, &count), CKR_OK);
    ck_assert_uint_eq(count, 0);
    script("%s", back);
    session = open_session(0, CKF_RW_SESSION);
}

static void list_of_tokens_lacks_it(void)
{
    list_lacks_it(CK_TRUE, "empty slot 0", "empty slot none");
}

static void list_of_slots_lacks_it(void)
{
    list_lacks_it(CK_FALSE, "slots 0", "slots 1");
}

/* A call of that function; the session that is closed is not the last one. */
static CK_RV call_of(enum function function)
{
    CK_SESSION_INFO session_info;
    CK_TOKEN_INFO token_info;
    CK_MECHANISM_INFO mechanism_info;
    CK_SESSION_HANDLE none;
    switch (function) {
    case FUNCTION_C_GetSessionInfo:
        return fn->C_GetSessionInfo(session, &session_info);
    case FUNCTION_C_SeedRandom:
        return fn->C_SeedRandom(session, pin, 4);
    case FUNCTION_C_GenerateRandom:
        return draw_or_fail(session, 2048);
    case FUNCTION_C_OpenSession:
        return fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &none);
    case FUNCTION_C_GetTokenInfo:
        return fn->C_GetTokenInfo(0, &token_info);
    case FUNCTION_C_GetMechanismInfo:
        return fn->C_GetMechanismInfo(0, CKM_RSA_PKCS, &mechanism_info);
    default:
        return fn->C_CloseSession(open_session(0, 0));
    }
}

static const struct event {
    const char *name;
    void (*happens)(void); /* NULL: that function says that code */
    bool logged_in;        /* the user is, before it */
    bool waits;            /* for the call that the filler is in */
    enum function function;
    const char *call; /* as a script has it */
    CK_RV code;
} events[] = {
    {"seed", .happens = seed},
    {"login", .happens = log_in},
    {"logout", .happens = log_out, .logged_in = true},
    {"SO login", .happens = log_the_so_in, .waits = true},
    {"close all while logged in", .happens = close_all, .logged_in = true, .waits = true},
    {"last close while logged in", .happens = close_the_last, .logged_in = true, .waits = true},
    {"init token", .happens = init_token, .waits = true},
    {"finalize", .happens = finalize, .waits = true},
    {"the age passes", .happens = age_passes},
    {"all clocks go back", .happens = clocks_go_back},
    {"the machine sleeps", .happens = machine_sleeps},
    {"event of the slot", .happens = slot_event},
    {"slot info says empty", .happens = slot_info_says_empty},
    {"list of tokens lacks it", .happens = list_of_tokens_lacks_it},
    {"list of slots lacks it", .happens = list_of_slots_lacks_it},
#define SAYS(of, more, says)                                                                       \
    {                                                                                              \
        .name = #of " says " #says, .function = FUNCTION_##of, .call = #of more, .code = says      \
    }
    SAYS(C_GetSessionInfo, "", CKR_DEVICE_ERROR),
    SAYS(C_GetSessionInfo, "", CKR_DEVICE_REMOVED),
    SAYS(C_GetSessionInfo, "", CKR_TOKEN_NOT_PRESENT),
    SAYS(C_GetSessionInfo, "", CKR_FIPS_SELF_TEST_FAILED),
    SAYS(C_SeedRandom, "", CKR_DEVICE_ERROR),
    SAYS(C_GenerateRandom, " over 1024", CKR_DEVICE_ERROR),
    SAYS(C_OpenSession, " by callers", CKR_TOKEN_NOT_PRESENT),
    SAYS(C_GetTokenInfo, "", CKR_DEVICE_REMOVED),
    SAYS(C_GetMechanismInfo, "", CKR_TOKEN_NOT_RECOGNIZED),
    SAYS(C_CloseSession, " by callers", CKR_DEVICE_REMOVED),
};

enum { EVENTS = sizeof events / sizeof *events };

static void happen(const struct event *event)
{
    if (event->happens != NULL) {
        event->happens();
        return;
    }
    script("%s: fail 0x%lx once", event->call, event->code);
    EXPECT(call_of(event->function), event->code);
}

static void begin_before(const struct event *event, const char *settings)
{
    begin(settings);
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
    clock_true();
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
    happen(event);
    nothing_is_served_from_before(event, made);
}

static void *happens(void *event)
{
    happen(event);
    return NULL;
}

/* The filler has its bytes, and has not come back with them. */
TEST_EACH(what_is_on_its_way_is_not_served_after_an_event, 0, EVENTS)
{
    const struct event *event = &events[_i];
    begin_before(event, "x-pool-max-age: 1min");
    script("C_GenerateRandom by filler: hold");
    DRAW_UNTIL(session, script_held() == 1);
    uint64_t made = words_made();
    if (event->waits)
        start_threads(1, happens, (void *)event);
    else
        happen(event);
    script_release();
    join_threads();
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
    static const char *const others[] = {"seed", "login", "C_GetSessionInfo says CKR_DEVICE_ERROR"};
    const struct event *event = events;
    while (strcmp(event->name, others[_i]) != 0)
        event++;
    begin_before(event, "x-pool-max-age: 1min\nx-pool-threads: never");
    script("C_GenerateRandom: hold once");
    start_threads(1, draw_one, NULL);
    WAIT_UNTIL(script_held() == 1);
    uint64_t made = words_made();
    happen(event);
    script_release();
    join_threads();
    nothing_is_served_from_before(event, made);
}

/* The token's code comes back as it is. GnuTLS opens a session for each request. */
TEST(what_changes_nothing_drops_nothing)
{
    static const CK_RV codes[] = {CKR_FUNCTION_NOT_SUPPORTED, CKR_RANDOM_SEED_NOT_SUPPORTED,
                                  CKR_RANDOM_NO_RNG};
    CK_SESSION_INFO info;
    begin("x-pool-max-age: 1min\nx-pool-threads: never\nx-pool-on-seed: keep");
    draw(session, 16, 1024);
    uint64_t made = draw_until_held(session);
    close_the_last();
    ck_assert_uint_le(draw(session, 16, 16), made);
    log_in();
    draw(session, 16, 1024);
    made = draw_until_held(session);
    seed();
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_USER_ALREADY_LOGGED_IN);
    EXPECT(fn->C_Login(session, CKU_CONTEXT_SPECIFIC, pin, 4), CKR_OK);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        script("C_SeedRandom: fail 0x%lx once", codes[i]);
        EXPECT(fn->C_SeedRandom(session, pin, 4), codes[i]);
    }
    script("C_GetSessionInfo: fail 0x5 once; C_Logout: fail 0x6 once");
    EXPECT(fn->C_GetSessionInfo(session, &info), CKR_GENERAL_ERROR);
    EXPECT(fn->C_Logout(session), CKR_FUNCTION_FAILED);
    ck_assert_uint_le(draw(session, 16, 16), made);
    served_once(64);
}

/* A login that ran out, a generator that wants a seed first: what is held is not the token's any more. */
TEST_EACH(what_the_token_gives_to_nobody_now_is_not_served, 0, 4)
{
    static const char *const codes[] = {"0x101", "0x121", "0x205", "0x1b6"};
    begin("x-pool-max-age: 1min");
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
    begin("");
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
