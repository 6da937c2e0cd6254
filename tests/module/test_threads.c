/* test_threads.c - programs of one thread that fork or end, threads that are cancelled or have little stack. */
#include "served.h"

#include <limits.h>
#include <dlfcn.h>
#include <stdint.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIVES = 150 };

static CK_SLOT_ID slot;

static void worker(void)
{
    CK_SESSION_HANDLE session;
    CK_BYTE bytes[32];
    CK_RV rv = fn->C_Initialize(&os_locking);
    CHILD_EXPECT(rv == CKR_OK || rv == CKR_CRYPTOKI_ALREADY_INITIALIZED, true);
    CHILD_EXPECT(fn->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &session), CKR_OK);
    for (int i = 0; i < 50; i++)
        CHILD_EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
}

/* The fork comes while the filler, of which this program knows nothing, is about its first fill. */
START_TEST(a_worker_never_finds_the_token_locked)
{
    CK_BYTE bytes[32];
    SKIP_IF_SANITIZED();
    slot = softhsm_begin("");
    for (int life = 0; life < LIVES; life++) {
        CK_SESSION_HANDLE session = open_session(slot, 0);
        for (int i = 0; i < 60; i++)
            EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
        for (volatile int spin = life * 400; spin > 0; spin--)
            continue;
        reap(child_that(worker));
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
        initialize();
    }
}
END_TEST

static void *draw_for_ever(void *session)
{
    CK_BYTE bytes[16];
    for (;;)
        fn->C_GenerateRandom(*(CK_SESSION_HANDLE *)session, bytes, sizeof bytes);
    return NULL;
}

/* The counting target sleeps, so it can be cancelled there. */
START_TEST(a_cancelled_draw_leaves_the_pool_and_the_end_whole)
{
    pthread_t thread;
    script("C_GenerateRandom: last 2ms");
    proxy_with(_i == 0 ? "" : "x-pool-threads: never");
    for (int life = 0; life < 5; life++) {
        initialize();
        CK_SESSION_HANDLE session = open_session(0, 0);
        ck_assert_int_eq(pthread_create(&thread, NULL, draw_for_ever, &session), 0);
        for (unsigned calls = CALLS(C_GenerateRandom); CALLS(C_GenerateRandom) < calls + 3;)
            sched_yield();
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        draw(session, 16, 16384);
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
    }
    served_once(1000);
}
END_TEST

static void *live(void *unused)
{
    CK_BYTE bytes[16];
    (void)unused;
    initialize();
    EXPECT(fn->C_GenerateRandom(open_session(0, 0), bytes, sizeof bytes), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    return NULL;
}

START_TEST(a_life_fits_on_the_smallest_stack)
{
    pthread_t thread;
    pthread_attr_t small;
    SKIP_IF_SANITIZED(); /* its frames are larger */
    proxy_with("");
    pthread_attr_init(&small);
    ck_assert_int_eq(pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN), 0);
    ck_assert_int_eq(pthread_create(&thread, &small, live, NULL), 0);
    pthread_join(thread, NULL);
}
END_TEST

START_TEST(no_standard_stream_is_taken)
{
    struct stat file;
    proxy_with("x-pool-max-age: 1min");
    int kept = dup(STDERR_FILENO);
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    CK_RV rv = fn->C_Initialize(&os_locking);
    CK_SESSION_HANDLE session = open_session(0, 0);
    draw(session, 16, 65536);
    let_filler_work();
    bool taken = fstat(0, &file) == 0 || fstat(1, &file) == 0 || fstat(2, &file) == 0;
    dup2(kept, STDERR_FILENO);
    dup2(kept, STDOUT_FILENO);
    ck_assert_uint_eq(rv, CKR_OK);
    ck_assert(!taken);
}
END_TEST

static void *draw_first(void *drawn)
{
    CK_BYTE bytes[16];
    CK_SESSION_HANDLE session = open_session(0, 0);
    *(bool *)drawn = fn->C_GenerateRandom(session, bytes, sizeof bytes) == CKR_OK;
    return NULL;
}

static bool drawn_first;

static void wait_for_a_first_draw(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, draw_first, &drawn_first);
    pthread_join(thread, NULL);
}

/* A library's constructor waits for a thread that draws: the loader's lock is held meanwhile. */
START_TEST(a_first_draw_does_not_need_the_loader)
{
    char function[32];
    proxy_with("");
    initialize();
    snprintf(function, sizeof function, "%llx",
             (unsigned long long)(uintptr_t)wait_for_a_first_draw);
    setenv("CONSTRUCTOR_CALLS", function, 1);
    ck_assert_ptr_nonnull(dlopen(target_path("constructor"), RTLD_NOW));
    ck_assert(drawn_first);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_first_draw_does_not_need_the_loader);
    tcase_add_test(tcase, a_worker_never_finds_the_token_locked);
    tcase_add_test(tcase, a_life_fits_on_the_smallest_stack);
    tcase_add_loop_test(tcase, a_cancelled_draw_leaves_the_pool_and_the_end_whole, 0, 2);
    tcase_add_test(tcase, no_standard_stream_is_taken);
}

int main(void)
{
    return run_tests("threads", add_tests);
}
