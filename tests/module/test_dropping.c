/* test_dropping.c - after an event that changes what the token is or its login, nothing older is served. */
#include "fixture.h"

#include <unistd.h>

#include "clock.h"

/* An event: time passes; or that function is called, after one script and before another, and answers so. */
static const struct event {
    const char *name;
    int64_t clocks_ns, wall_ns;
    enum function function;
    unsigned long argument; /* what user logs in, or of which slots there is a list */
    const char *before, *after;
    bool logged_in;    /* the user is, before it */
    bool waits;        /* for the call that the filler is in */
    bool closes;       /* the session: another is opened */
    const char *fails; /* this call, with the code */
    CK_RV code;
} events[] = {
    {"the age passes", .clocks_ns = 61 * NS_PER_S},
    {"all clocks go back", .clocks_ns = -100 * NS_PER_S},
    {"the machine sleeps", .clocks_ns = 20 * NS_PER_MS, .wall_ns = 3600 * NS_PER_S},
#define CALL(name, of) name, .function = FUNCTION_C_##of
    {CALL("seed", SeedRandom)},
    {CALL("login", Login), .argument = CKU_USER},
    {CALL("logout", Logout), .logged_in = true},
    {CALL("SO login", Login), .argument = CKU_SO, .waits = true},
    {CALL("close all", CloseAllSessions), .logged_in = true, .waits = true, .closes = true},
    {CALL("last close", CloseSession), .logged_in = true, .waits = true, .closes = true},
    {CALL("init token", InitToken), .waits = true, .closes = true},
    {CALL("finalize", Finalize), .waits = true, .closes = true},
    /* Any call that names the slot may be the first to hear that its token is gone. */
    {CALL("slot event", WaitForSlotEvent), 0, "event in slot 0", "event in slot none"},
    {CALL("slot info", GetSlotInfo), 0, "empty slot 0", "empty slot none", .closes = true},
    {CALL("tokens", GetSlotList), CK_TRUE, "empty slot 0", "empty slot none", .closes = true},
    {CALL("slots", GetSlotList), CK_FALSE, "slots 0", "slots 1", .closes = true},
#define SAYS(of, more, says)                                                                       \
    {                                                                                              \
        CALL(#of " says " #says, of), .fails = "C_" #of more, .code = says                         \
    }
    SAYS(GetSessionInfo, "", CKR_DEVICE_ERROR),
    SAYS(GetSessionInfo, "", CKR_DEVICE_REMOVED),
    SAYS(GetSessionInfo, "", CKR_TOKEN_NOT_PRESENT),
    SAYS(GetSessionInfo, "", CKR_FIPS_SELF_TEST_FAILED),
    SAYS(SeedRandom, "", CKR_DEVICE_ERROR),
    SAYS(GenerateRandom, " over 1024", CKR_DEVICE_ERROR),
    SAYS(OpenSession, " by callers", CKR_TOKEN_NOT_PRESENT),
    SAYS(GetTokenInfo, "", CKR_DEVICE_REMOVED),
    SAYS(GetMechanismInfo, "", CKR_TOKEN_NOT_RECOGNIZED),
    SAYS(CloseSession, " by callers", CKR_DEVICE_REMOVED),
};

enum { EVENTS = COUNT_OF(events) };

static CK_RV call_of(const struct event *event)
{
    CK_SLOT_ID slot = 4711, slots[4];
    CK_ULONG count = 4;
    CK_SESSION_HANDLE none;
    switch (event->function) {
    case FUNCTION_C_SeedRandom:
        return fn->C_SeedRandom(session, pin, 4);
    case FUNCTION_C_Login:
        return fn->C_Login(session, event->argument, pin, 4);
    case FUNCTION_C_Logout:
        return fn->C_Logout(session);
    case FUNCTION_C_CloseAllSessions:
        return fn->C_CloseAllSessions(0);
    case FUNCTION_C_CloseSession: /* if it fails, it is not the last one */
        return fn->C_CloseSession(event->closes ? session : open_session(0, 0));
    case FUNCTION_C_InitToken:
        EXPECT(fn->C_CloseSession(session), CKR_OK);
        return fn->C_InitToken(0, pin, 4, (CK_UTF8CHAR_PTR) "anew                            ");
    case FUNCTION_C_Finalize:
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
        return fn->C_Initialize(&os_locking);
    case FUNCTION_C_WaitForSlotEvent:
        return fn->C_WaitForSlotEvent(CKF_DONT_BLOCK, &slot, NULL);
    case FUNCTION_C_GetSlotInfo:
        return fn->C_GetSlotInfo(0, &(CK_SLOT_INFO){0});
    case FUNCTION_C_GetSlotList:
        return fn->C_GetSlotList((CK_BBOOL)event->argument, slots, &count);
    case FUNCTION_C_GetSessionInfo:
        return fn->C_GetSessionInfo(session, &(CK_SESSION_INFO){0});
    case FUNCTION_C_GenerateRandom:
        return draw_or_fail(session, 2048);
    case FUNCTION_C_OpenSession:
        return fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &none);
    case FUNCTION_C_GetTokenInfo:
        return fn->C_GetTokenInfo(0, &(CK_TOKEN_INFO){0});
    default:
        return fn->C_GetMechanismInfo(0, CKM_RSA_PKCS, &(CK_MECHANISM_INFO){0});
    }
}

static void happen(const struct event *event)
{
    if (event->clocks_ns != 0) {
        clock_step(event->clocks_ns, event->wall_ns);
        return;
    }
    if (event->fails != NULL)
        script("%s: fail 0x%lx once", event->fails, event->code);
    script("%s", event->before != NULL ? event->before : "");
    EXPECT(call_of(event), event->code);
    script("%s", event->after != NULL ? event->after : "");
    if (event->closes)
        session = open_session(0, CKF_RW_SESSION);
}

static void begin_before(const struct event *event, const char *settings)
{
    begin(settings);
    if (event->logged_in)
        EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_OK);
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
    static const char *const others[] = {"seed", "login", "GetSessionInfo says CKR_DEVICE_ERROR"};
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
    begin("x-pool-max-age: 1min\nx-pool-threads: never\nx-pool-on-seed: keep");
    draw(session, 16, 1024);
    uint64_t made = draw_until_held(session);
    EXPECT(fn->C_CloseSession(session), CKR_OK);
    session = open_session(0, CKF_RW_SESSION);
    ck_assert_uint_le(draw(session, 16, 16), made);
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_OK);
    draw(session, 16, 1024);
    made = draw_until_held(session);
    EXPECT(fn->C_SeedRandom(session, pin, 4), CKR_OK);
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_USER_ALREADY_LOGGED_IN);
    EXPECT(fn->C_Login(session, CKU_CONTEXT_SPECIFIC, pin, 4), CKR_OK);
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        script("C_SeedRandom: fail 0x%lx once", codes[i]);
        EXPECT(fn->C_SeedRandom(session, pin, 4), codes[i]);
    }
    script("C_GetSessionInfo: fail 0x5 once; C_Logout: fail 0x6 once");
    EXPECT(fn->C_GetSessionInfo(session, &(CK_SESSION_INFO){0}), CKR_GENERAL_ERROR);
    EXPECT(fn->C_Logout(session), CKR_FUNCTION_FAILED);
    ck_assert_uint_le(draw(session, 16, 16), made);
}

/* A login that ran out, a generator that wants a seed first: what is held is not the token's any more. */
TEST_EACH(what_the_token_gives_to_nobody_now_is_not_served, 0, 4)
{
    static const char *const codes[] = {"0x101", "0x121", "0x205", "0x1b6"};
    begin_filled();
    script("C_GenerateRandom: fail %s", codes[_i]);
    CK_RV rv = CKR_OK;
    while (CALLS(C_GenerateRandom, .outcome = FAILED) == 0 && rv == CKR_OK)
        rv = draw_or_fail(session, 16);
    WAIT_UNTIL(draw_or_fail(session, 16) != CKR_OK);
    for (int i = 0; i < 20; i++)
        EXPECT(draw_or_fail(session, 16), strtoul(codes[_i], NULL, 16));
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
}
