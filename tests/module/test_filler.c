/* test_filler.c - the proxy's thread comes with demand and goes without it, stands aside, and nothing waits for it. */
#include "fixture.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

static CK_UTF8CHAR label[] = "anew                            ";

TEST(it_comes_with_the_second_fetch_and_has_a_name_and_takes_no_signals)
{
    char text[4096] = "";
    begin_a_thread_and_end_it();
    unsigned threads = threads_now();
    begin("x-pool-max-age: 1min");
    draw(session, 16, 1024);
    ck_assert_uint_eq(threads_now(), threads);
    draw_until_filled(session);
    ck_assert_uint_eq(threads_now(), threads + 1);
    FILE *status = fopen(text_of("/proc/self/task/%ld/status", filler_thread()), "re");
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

/* What a process of several threads may not do, such as entering another user namespace, it may again. */
TEST(it_ends_without_demand_its_session_first_and_comes_again)
{
    begin_a_thread_and_end_it();
    unsigned threads = threads_now();
    begin("x-pool-max-age: 1min");
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
}

/* As with `ulimit -s 64`: new threads get small stacks, which the target may not expect. */
TEST(it_has_a_stack_that_targets_are_used_to)
{
    pthread_attr_t small;
    SKIP_IF_SANITIZED();
    pthread_attr_init(&small);
    ck_assert_int_eq(pthread_attr_setstacksize(&small, 16384), 0);
    ck_assert_int_eq(pthread_setattr_default_np(&small), 0);
    script("stack KiB 256");
    begin_filled();
}

static void *sign(void *own)
{
    CK_MECHANISM mechanism = {CKM_RSA_PKCS, NULL, 0};
    CK_BYTE bytes[32];
    CK_ULONG len_bytes = sizeof bytes;
    EXPECT(fn->C_SignInit((CK_SESSION_HANDLE)own, &mechanism, 1), CKR_OK);
    EXPECT(fn->C_Sign((CK_SESSION_HANDLE)own, pin, 4, bytes, &len_bytes), CKR_OK);
    return NULL;
}

/* A token may refuse random bytes, or lose the operation, while one is open. And a card does one thing at a time, so a
 * signature would wait. _i: what ends it is a result, an error, or the end of the call. */
TEST_EACH(it_stands_aside_while_an_operation_is_open_or_a_call_is_under_way, 0, 3)
{
    CK_MECHANISM mechanism = {CKM_SHA256, NULL, 0};
    CK_BYTE bytes[32];
    CK_ULONG len_bytes = sizeof bytes;
    script("C_Sign: hold");
    begin("x-pool-max-age: 1min");
    if (_i < 2)
        EXPECT(fn->C_DigestInit(session, &mechanism), CKR_OK);
    else {
        start_threads(1, sign, (void *)open_session(0, 0));
        WAIT_UNTIL(script_held() == 1);
    }
    draw(session, 16, 32768);
    let_filler_work();
    ck_assert_uint_eq(CALLS(C_GenerateRandom, .by = FILLER), 0);
    script("C_DigestUpdate: fail 0x30 once");
    if (_i == 0)
        EXPECT(fn->C_Digest(session, pin, 4, bytes, &len_bytes), CKR_OK);
    else if (_i == 1)
        EXPECT(fn->C_DigestUpdate(session, pin, 4), CKR_DEVICE_ERROR);
    else {
        script_release();
        join_threads();
    }
    DRAW_UNTIL(session, CALLS(C_GenerateRandom, .by = FILLER) > 0);
}

/* A row of calls, each some milliseconds after the one before; and draws, for demand. */
static bool stands_aside(void)
{
    enum { CALLS_IN_ROW = 40, PAUSE_US = 5000 };
    unsigned before = CALLS(C_GenerateRandom, .by = FILLER);
    for (int i = 0; i < CALLS_IN_ROW; i++) {
        EXPECT(fn->C_GetSessionInfo(session, &(CK_SESSION_INFO){0}), CKR_OK);
        draw(session, 32, 4096);
        usleep(PAUSE_US);
    }
    return CALLS(C_GenerateRandom, .by = FILLER) == before;
}

/* A fetch takes longer than the pauses of a steady signer, so the next signature would wait. A busy machine makes
 * longer pauses, so some rows do not count. */
TEST(it_stands_aside_while_calls_keep_coming)
{
    script("C_GenerateRandom: last 20ms");
    begin("x-pool-max-age: 1min");
    DRAW_UNTIL(session, CALLS(C_GenerateRandom, .by = FILLER) > 0);
    WAIT_UNTIL(stands_aside());
    DRAW_UNTIL(session, CALLS(C_GenerateRandom, .by = FILLER) > 0);
}

/* No call needs the filler. */
TEST(while_it_hangs_other_calls_are_answered)
{
    begin("x-pool-max-age: 1min");
    script("slots 2; C_GenerateRandom by filler: hold");
    DRAW_UNTIL(session, script_held() == 1);
    draw(session, 16, 65536);
    EXPECT(draw_or_fail(session, 4096), CKR_OK);
    EXPECT(fn->C_SeedRandom(session, pin, 4), CKR_OK);
    EXPECT(fn->C_CloseSession(open_session(0, 0)), CKR_OK);
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_OK);
    ck_assert_uint_eq(token_info().ulSessionCount, 1);
    draw(open_session(1, 0), 16, 1024);
    ck_assert_uint_eq(script_held(), 1);
    script_release();
}

static atomic_ulong answer_inside;
static atomic_bool was_inside;
static int way_inside;
static bool inside_filler;

static CK_RV call_by(int way)
{
    CK_SESSION_HANDLE more = 0;
    CK_BYTE bytes[1025];
    return way == 0   ? fn->C_CloseAllSessions(0)
           : way == 1 ? fn->C_InitToken(0, pin, 4, label)
           : way == 2 ? fn->C_Login(session, CKU_SO, pin, 4)
           : way == 3 ? fn->C_Finalize(NULL)
           : way == 4 ? fn->C_GenerateRandom(session, bytes, sizeof bytes)
           : way == 5 ? fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &more)
           : way == 6 ? fn->C_GetTokenInfo(0, &(CK_TOKEN_INFO){0})
           : way == 7 ? fn->C_Initialize(&os_locking)
           : way == 8 ? fn->C_GenerateRandom(session, bytes, 1)
                      : fn->C_CloseSession(session);
}

/* What the target does on whatever thread its generator runs. */
static void come_back(void)
{
    static __thread bool inside;
    if (inside || inside_filler != (filler_thread() == gettid()))
        return;
    inside = true;
    atomic_store(&answer_inside, call_by(way_inside));
    atomic_store(&was_inside, true);
    inside = false;
}

/* A target whose generator comes back to us, through OpenSSL perhaps: an error or an answer, and no hang. */
TEST_EACH(a_generator_that_comes_back_is_answered_on_whatever_thread, 0, 20)
{
    CK_BYTE bytes[512];
    way_inside = _i % 10;
    inside_filler = _i / 10 == 1;
    script_calls_back(come_back);
    script("slots 2; C_GenerateRandom: call back; C_GetSessionInfo: ok");
    begin("x-pool-max-age: 1min");
    CK_SESSION_HANDLE other = open_session(1, 0);
    for (unsigned long since_ms = 0; !was_inside; wait_a_moment(&since_ms, "was_inside")) {
        fn->C_GenerateRandom(session, bytes, sizeof bytes);
        fn->C_GenerateRandom(other, bytes, sizeof bytes);
    }
    /* C_Finalize and a large draw wait for the very call; the first three wait for the filler. */
    if (way_inside == 3 || way_inside == 4 || (inside_filler && way_inside < 3))
        ck_assert_uint_eq(answer_inside, CKR_FUNCTION_FAILED);
    script("C_GenerateRandom: ok");
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    atomic_store(&shared->complaints, 0); /* of the target's own calls on that thread */
}

static atomic_bool finalizes;

static void initialize_meanwhile(void)
{
    if (filler_thread() != gettid() || atomic_exchange(&was_inside, true))
        return;
    WAIT_UNTIL(atomic_load(&finalizes));
    for (int i = 0; i < 1000; i++) {
        atomic_store(&answer_inside, call_by(7));
        sched_yield();
    }
}

TEST(a_c_initialize_in_the_filler_does_not_wait_for_the_c_finalize_that_waits_for_it)
{
    script_calls_back(initialize_meanwhile);
    script("C_GenerateRandom: call back");
    begin("x-pool-max-age: 1min");
    for (unsigned long since_ms = 0; !was_inside; wait_a_moment(&since_ms, "was_inside"))
        draw(session, 512, 512);
    atomic_store(&finalizes, true);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    ck_assert_uint_eq(answer_inside, CKR_CRYPTOKI_ALREADY_INITIALIZED);
    atomic_store(&shared->complaints, 0); /* of the target's own calls on that thread */
}
