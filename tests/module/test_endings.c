/* test_endings.c - C_Finalize and the end of the process meet no call of ours in the target. */
#include "run.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "words_seen.h"

enum { THREADS = 4 };

static CK_SESSION_HANDLE session;

static void begin(const char *settings)
{
    words_begin();
    proxy_before("counting", settings);
    initialize();
    session = open_session(0, 0);
}

static unsigned overlaps(void)
{
    return atomic_load((atomic_uint *)target_symbol("counting_overlaps"));
}

static void *draw_large(void *unused)
{
    CK_BYTE bytes[2048];
    (void)unused;
    EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
    return NULL;
}

static void *finalize(void *unused)
{
    (void)unused;
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    return NULL;
}

/* _i: whether the one that is inside is the application's call or the prefetch's. */
START_TEST(finalize_waits_for_who_is_inside)
{
    pthread_t drawer;
    pthread_t finalizer;
    begin(_i == 0 ? "x-pool-threads: never" : "x-pool-max-age: 1min");
    void (*gate)(bool) = (void (*)(bool))target_symbol("counting_gate");
    void (*wait_at_gate)(void) = (void (*)(void))target_symbol("counting_wait_at_gate");
    gate(true);
    if (_i == 0)
        ck_assert_int_eq(pthread_create(&drawer, NULL, draw_large, NULL), 0);
    else
        words_draw(session, 16, 32768);
    if (_i != 0)
        words_draw_until(session, (bool (*)(void))target_symbol("counting_is_at_gate"));
    wait_at_gate();
    ck_assert_int_eq(pthread_create(&finalizer, NULL, finalize, NULL), 0);
    usleep(50000); /* for a C_Finalize that does not wait to go wrong */
    gate(false);
    if (_i == 0)
        pthread_join(drawer, NULL);
    pthread_join(finalizer, NULL);
    ck_assert_uint_eq(overlaps(), 0);
}
END_TEST

static atomic_bool go;

static void *draw_meanwhile(void *unused)
{
    CK_BYTE bytes[2048];
    (void)unused;
    while (atomic_load(&go))
        fn->C_GenerateRandom(session, bytes, sizeof bytes);
    return NULL;
}

/* A target that is ending is let alone, however long that takes. */
START_TEST(a_draw_waits_until_finalize_is_over)
{
    pthread_t threads[THREADS];
    unsetenv("COUNTING_LOG");
    begin("");
    knob("FINALIZE_MS", "3");
    for (int round = 0; round < 10; round++) {
        atomic_store(&go, true);
        for (int i = 0; i < THREADS; i++)
            ck_assert_int_eq(pthread_create(&threads[i], NULL, draw_meanwhile, NULL), 0);
        usleep(2000);
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
        atomic_store(&go, false);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        ck_assert_uint_eq(overlaps(), 0);
        initialize();
        session = open_session(0, 0);
    }
}
END_TEST

START_TEST(after_a_finalize_that_failed_the_pool_serves_on)
{
    begin("x-pool-max-age: 1min");
    words_draw(session, 16, 16384);
    knob("FINALIZE_CODE", "0x6");
    EXPECT(fn->C_Finalize(NULL), CKR_FUNCTION_FAILED);
    words_draw(session, 16, 16384);
    wait_until_quiet();
    unsigned own = target_calls_by_us("C_GenerateRandom");
    words_draw(session, 16, 1024);
    ck_assert_uint_eq(target_calls_by_us("C_GenerateRandom"), own);
    words_check(2048);
}
END_TEST

/* Without a word, while the prefetch is in a slow call. */
static void exit_at_once(void)
{
    CK_BYTE bytes[16];
    alarm(CHILD_HANGS_S);
    if (fn->C_Initialize(&os_locking) != CKR_OK ||
        fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session) != CKR_OK)
        _exit(1);
    for (int i = 0; i < 40; i++)
        if (fn->C_GenerateRandom(session, bytes, sizeof bytes) != CKR_OK)
            _exit(2);
    usleep(3000);
    exit(0);
}

/* At exit() a target's static objects are destroyed: SoftHSM crashes if that meets a call. */
START_TEST(the_end_of_the_process_meets_no_call_of_ours)
{
    words_begin();
    proxy_before("counting", "");
    knob("DELAY_US", "20000");
    knob("STRICT_EXIT", "1");
    for (int i = 0; i < 5; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            exit_at_once();
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, finalize_waits_for_who_is_inside, 0, 2);
    tcase_add_test(tcase, a_draw_waits_until_finalize_is_over);
    tcase_add_test(tcase, after_a_finalize_that_failed_the_pool_serves_on);
    if (CHILDREN_CAN_RUN)
        tcase_add_test(tcase, the_end_of_the_process_meets_no_call_of_ours);
}

int main(void)
{
    return run_tests("endings", add_tests);
}
