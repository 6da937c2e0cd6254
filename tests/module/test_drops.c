/* test_drops.c - after an event that changes what the token is or who uses it, nothing older is served. */
#include "run.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "words_seen.h"

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

static void log_in_and_out(void)
{
    log_in();
    log_out();
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

static void answer(const char *code)
{
    CK_SESSION_INFO info;
    knob("CALL_CODE", code);
    ck_assert_uint_ne(fn->C_GetSessionInfo(session, &info), CKR_OK);
    knob("CALL_CODE", NULL);
}

static void device_error(void)
{
    answer("0x30");
}

static void device_removed(void)
{
    answer("0x32");
}

static void token_not_present(void)
{
    answer("0xe0");
}

static void self_test_failed(void)
{
    answer("0x1b6");
}

/* Pulled out, or put in: its sessions may be gone, and it may be another. */
static void slot_event(void)
{
    CK_SLOT_ID slot = 4711;
    knob("EVENT_SLOT", "0");
    EXPECT(fn->C_WaitForSlotEvent(CKF_DONT_BLOCK, &slot, NULL), CKR_OK);
    knob("EVENT_SLOT", NULL);
    ck_assert_uint_eq(slot, 0);
}

static void token_info_fails(void)
{
    CK_TOKEN_INFO info;
    knob("TOKEN_CODE", "0x32");
    EXPECT(fn->C_GetTokenInfo(0, &info), CKR_DEVICE_REMOVED);
    knob("TOKEN_CODE", NULL);
}

static void slot_info_says_empty(void)
{
    CK_SLOT_INFO info;
    knob("EMPTY_SLOT", "0");
    EXPECT(fn->C_GetSlotInfo(0, &info), CKR_OK);
    knob("EMPTY_SLOT", NULL);
    ck_assert_uint_eq(info.flags & CKF_TOKEN_PRESENT, 0);
}

/* By a list of the slots that have a token, and by one of all of them. */
static void list_lacks_it(CK_BBOOL of_tokens, const char *because_of)
{
    CK_SLOT_ID slots[4];
    CK_ULONG count = 4;
    knob(because_of, "0");
    EXPECT(fn->C_GetSlotList(of_tokens, slots, &count), CKR_OK);
    knob(because_of, NULL);
    ck_assert_uint_eq(count, 0);
}

static void list_of_tokens_lacks_it(void)
{
    list_lacks_it(CK_TRUE, "EMPTY_SLOT");
}

static void list_of_slots_lacks_it(void)
{
    list_lacks_it(CK_FALSE, "SLOTS");
}

/* Any call that names the slot may be the first to hear that its token is gone. */

static void hear_of_it(const char *code)
{
    knob("BAD_SLOT", "0");
    knob("BAD_CODE", code);
}

static void forget_it(void)
{
    knob("BAD_SLOT", NULL);
    knob("BAD_CODE", NULL);
}

static void slot_info_fails(void)
{
    CK_SLOT_INFO info;
    hear_of_it("0x32");
    EXPECT(fn->C_GetSlotInfo(0, &info), CKR_DEVICE_REMOVED);
    forget_it();
}

static void slot_is_none(void)
{
    CK_SLOT_INFO info;
    hear_of_it("0x3");
    EXPECT(fn->C_GetSlotInfo(0, &info), CKR_SLOT_ID_INVALID);
    forget_it();
}

static void open_fails(void)
{
    CK_SESSION_HANDLE none;
    hear_of_it("0xe0");
    EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &none), CKR_TOKEN_NOT_PRESENT);
    forget_it();
}

static void mechanism_list_fails(void)
{
    CK_ULONG count;
    hear_of_it("0xe0");
    EXPECT(fn->C_GetMechanismList(0, NULL, &count), CKR_TOKEN_NOT_PRESENT);
    forget_it();
}

static void mechanism_info_fails(void)
{
    CK_MECHANISM_INFO info;
    hear_of_it("0xe1");
    EXPECT(fn->C_GetMechanismInfo(0, CKM_RSA_PKCS, &info), CKR_TOKEN_NOT_RECOGNIZED);
    forget_it();
}

/* One that is not the last. */
static void close_fails(void)
{
    CK_SESSION_HANDLE other = open_session(0, 0);
    knob("CLOSE_CODE", "0x32");
    EXPECT(fn->C_CloseSession(other), CKR_DEVICE_REMOVED);
    knob("CLOSE_CODE", NULL);
}

static const struct {
    const char *name;
    void (*happen)(void);
    bool waits; /* for the call that the prefetch is in */
} events[] = {
    {"seed", seed, false},
    {"login", log_in, false},
    {"login and logout", log_in_and_out, false},
    {"device error", device_error, false},
    {"device removed", device_removed, false},
    {"token not present", token_not_present, false},
    {"token info says removed", token_info_fails, false},
    {"self test failed", self_test_failed, false},
    {"event of the slot", slot_event, false},
    {"slot info says empty", slot_info_says_empty, false},
    {"slot info says removed", slot_info_fails, false},
    {"slot is none", slot_is_none, false},
    {"list of tokens", list_of_tokens_lacks_it, false},
    {"list of slots", list_of_slots_lacks_it, false},
    {"open says not present", open_fails, false},
    {"mechanism list says not present", mechanism_list_fails, false},
    {"mechanism info says not recognized", mechanism_info_fails, false},
    {"close says removed", close_fails, false},
    {"SO login", log_the_so_in, true},
    {"close all", close_all, true},
    {"last close", close_the_last, true},
    {"init token", init_token, true},
    {"finalize", finalize, true},
};

static void begin(const char *settings)
{
    words_begin();
    proxy_before("counting", settings);
    initialize();
    session = open_session(0, CKF_RW_SESSION);
}

static void nothing_is_served_from_before(const char *event, uint64_t made)
{
    uint64_t lowest = words_draw(session, 16, 8192);
    ck_assert_msg(lowest > made, "%s: word %lu is served, of %lu made before", event,
                  (unsigned long)lowest, (unsigned long)made);
    wait_until_quiet();
    lowest = words_draw(session, 16, 32768);
    ck_assert_msg(lowest > made, "%s: word %lu is served later, of %lu made before", event,
                  (unsigned long)lowest, (unsigned long)made);
    words_check(1024);
}

START_TEST(what_is_held_is_not_served_after_an_event)
{
    begin("x-pool-max-age: 1min");
    words_draw(session, 16, 8192);
    wait_until_quiet();
    uint64_t made = words_made();
    ck_assert_uint_le(words_draw(session, 16, 64), made); /* something is held */
    made = words_made();
    events[_i].happen();
    nothing_is_served_from_before(events[_i].name, made);
}
END_TEST

static void *happen(void *event)
{
    (*(void (*const *)(void))event)();
    return NULL;
}

/* The prefetch has its bytes and has not come back with them. */
START_TEST(what_is_on_its_way_is_not_served_after_an_event)
{
    pthread_t thread;
    begin("x-pool-max-age: 1min");
    void (*gate)(bool) = (void (*)(bool))target_symbol("counting_gate");
    bool (*is_at_gate)(void) = (bool (*)(void))target_symbol("counting_is_at_gate");
    gate(true);
    words_draw(session, 16, 4096);
    words_draw_until(session, is_at_gate);
    uint64_t made = words_made();
    if (events[_i].waits) {
        ck_assert_int_eq(pthread_create(&thread, NULL, happen, (void *)&events[_i].happen), 0);
        usleep(50000);
        gate(false);
        pthread_join(thread, NULL);
    } else {
        events[_i].happen();
        gate(false);
    }
    nothing_is_served_from_before(events[_i].name, made);
}
END_TEST

/* A caller is not kept waiting by it, and gets the token's answer. */
START_TEST(a_prefetch_that_hangs_keeps_no_caller_waiting)
{
    begin("");
    void (*gate)(bool) = (void (*)(bool))target_symbol("counting_gate");
    bool (*is_at_gate)(void) = (bool (*)(void))target_symbol("counting_is_at_gate");
    gate(true);
    words_draw(session, 16, 4096);
    words_draw_until(session, is_at_gate);
    words_draw(session, 16, 65536);
    gate(false);
    words_check(8192);
}
END_TEST

START_TEST(too_old_is_not_served)
{
    begin("x-pool-max-age: 100ms");
    words_draw(session, 16, 8192);
    wait_until_quiet();
    uint64_t made = words_made();
    usleep(200000);
    ck_assert_uint_gt(words_draw(session, 16, 1024), made);
    words_check(1024);
}
END_TEST

/* The token's code comes back as it is; a seed that it did not take changes nothing. */
START_TEST(a_seed_that_is_refused_leaves_the_pool_alone)
{
    static const struct {
        const char *code;
        CK_RV rv;
    } refusals[] = {{"0x54", CKR_FUNCTION_NOT_SUPPORTED},
                    {"0x120", CKR_RANDOM_SEED_NOT_SUPPORTED},
                    {"0x121", CKR_RANDOM_NO_RNG}};
    begin("x-pool-max-age: 1min");
    words_draw(session, 16, 8192);
    wait_until_quiet();
    uint64_t made = words_made();
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        knob("SEED_CODE", refusals[i].code);
        EXPECT(fn->C_SeedRandom(session, pin, 4), refusals[i].rv);
        ck_assert_uint_le(words_draw(session, 16, 64), made);
    }
    ck_assert_uint_eq(target_calls_with("C_SeedRandom", " len=4 "), 3);
    words_check(1024);
}
END_TEST

START_TEST(a_pool_that_keeps_its_bytes_on_seed_serves_them)
{
    begin("x-pool-max-age: 1min\nx-pool-on-seed: keep");
    words_draw(session, 16, 8192);
    wait_until_quiet();
    uint64_t made = words_made();
    seed();
    ck_assert_uint_le(words_draw(session, 16, 64), made);
    words_check(1024);
}
END_TEST

static bool prefetch_was_refused(void)
{
    char code[32];
    snprintf(code, sizeof code, " rv=%s ", getenv("COUNTING_FAIL_CODE"));
    CK_BYTE bytes[16];
    if (target_calls_with("C_GenerateRandom", code) > 0)
        return true;
    CK_RV rv = fn->C_GenerateRandom(session, bytes, sizeof bytes);
    /* It was refused since we looked. */
    if (rv == strtoul(getenv("COUNTING_FAIL_CODE"), NULL, 16))
        return true;
    EXPECT(rv, CKR_OK);
    return false;
}

/* A login that ran out, a generator that wants a seed first: what is held is the token's no more. */
START_TEST(what_the_token_gives_to_nobody_is_not_served)
{
    static const char *const codes[] = {"0x101", "0x121", "0x205", "0x1b6"};
    CK_BYTE bytes[16];
    begin("x-pool-max-age: 1min");
    words_draw(session, 16, 32768);
    wait_until_quiet();
    knob("FAIL_CODE", codes[_i]);
    knob("FAIL_AFTER", "0");
    while (!prefetch_was_refused())
        continue;
    wait_until_quiet();
    EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), strtoul(codes[_i], NULL, 16));
}
END_TEST

START_TEST(a_login_that_fails_and_one_for_a_single_operation_drop_nothing)
{
    begin("x-pool-max-age: 1min");
    log_in();
    words_draw(session, 16, 8192);
    wait_until_quiet();
    uint64_t made = words_made();
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_USER_ALREADY_LOGGED_IN);
    EXPECT(fn->C_Login(session, CKU_CONTEXT_SPECIFIC, pin, 4), CKR_OK);
    ck_assert_uint_le(words_draw(session, 16, 64), made);
    words_check(1024);
}
END_TEST

static void add_tests(TCase *tcase)
{
    int count = sizeof events / sizeof *events;
    tcase_add_loop_test(tcase, what_is_held_is_not_served_after_an_event, 0, count);
    tcase_add_loop_test(tcase, what_is_on_its_way_is_not_served_after_an_event, 0, count);
    tcase_add_test(tcase, a_prefetch_that_hangs_keeps_no_caller_waiting);
    tcase_add_test(tcase, too_old_is_not_served);
    tcase_add_test(tcase, a_seed_that_is_refused_leaves_the_pool_alone);
    tcase_add_test(tcase, a_pool_that_keeps_its_bytes_on_seed_serves_them);
    tcase_add_loop_test(tcase, what_the_token_gives_to_nobody_is_not_served, 0, 4);
    tcase_add_test(tcase, a_login_that_fails_and_one_for_a_single_operation_drop_nothing);
}

int main(void)
{
    return run_tests("drops", add_tests);
}
