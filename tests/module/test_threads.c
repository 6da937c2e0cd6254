/* test_threads.c - programs of one thread that fork or end, threads that are cancelled or have little stack. */
#include "run.h"

#include <limits.h>
#include <dlfcn.h>
#include <stdint.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "words_seen.h"

enum { LIVES = 150 };

static void worker(void)
{
    CK_SESSION_HANDLE session;
    CK_BYTE bytes[32];
    alarm(CHILD_HANGS_S);
    CK_RV rv = fn->C_Initialize(&os_locking);
    if (rv != CKR_OK && rv != CKR_CRYPTOKI_ALREADY_INITIALIZED)
        _exit(1);
    if (fn->C_OpenSession(softhsm_slot(), CKF_SERIAL_SESSION, NULL, NULL, &session) != CKR_OK)
        _exit(2);
    for (int i = 0; i < 50; i++)
        if (fn->C_GenerateRandom(session, bytes, sizeof bytes) != CKR_OK)
            _exit(3);
    _exit(0);
}

/* The fork comes while the prefetch, of which this program knows nothing, is about its first fill. */
START_TEST(a_worker_never_finds_the_token_locked)
{
    CK_BYTE bytes[32];
    proxy_before_softhsm("");
    for (int life = 0; life < LIVES; life++) {
        int status;
        CK_SESSION_HANDLE session = open_session(softhsm_slot(), 0);
        EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
        for (volatile int spin = life * 400; spin > 0; spin--)
            continue;
        pid_t child = fork();
        if (child == 0)
            worker();
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(status == 0, "life %d: the worker ended with status 0x%x", life,
                      (unsigned)status);
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
    knob("DELAY_US", "2000");
    words_begin();
    proxy_before("counting", _i == 0 ? "" : "x-pool-threads: never");
    for (int life = 0; life < 5; life++) {
        initialize();
        CK_SESSION_HANDLE session = open_session(0, 0);
        ck_assert_int_eq(pthread_create(&thread, NULL, draw_for_ever, &session), 0);
        usleep(20000);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        words_draw(session, 16, 16384);
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
    }
    words_check(1000);
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
    words_begin();
    proxy_before("counting", "");
    pthread_attr_init(&small);
    ck_assert_int_eq(pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN), 0);
    ck_assert_int_eq(pthread_create(&thread, &small, live, NULL), 0);
    pthread_join(thread, NULL);
}
END_TEST

/* As with `ulimit -s 64`: whoever makes threads gets small ones. The target is not used to that. */
START_TEST(the_prefetch_has_a_stack_that_targets_are_used_to)
{
    pthread_attr_t small;
    knob("STACK_KIB", "256");
    words_begin();
    proxy_before("counting", "x-pool-max-age: 1min");
    pthread_attr_init(&small);
    ck_assert_int_eq(pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN), 0);
    ck_assert_int_eq(pthread_setattr_default_np(&small), 0);
    initialize();
    words_draw(open_session(0, 0), 16, 32768);
    wait_until_quiet();
    ck_assert_uint_gt(target_calls_by_others("C_GenerateRandom"), 0);
    words_check(4096);
}
END_TEST

START_TEST(no_standard_stream_is_taken)
{
    struct stat file;
    words_begin();
    proxy_before("counting", "x-pool-max-age: 1min");
    int kept = dup(STDERR_FILENO);
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    CK_RV rv = fn->C_Initialize(&os_locking);
    CK_SESSION_HANDLE session = open_session(0, 0);
    words_draw(session, 16, 65536);
    usleep(50000);
    bool taken = fstat(0, &file) == 0 || fstat(1, &file) == 0 || fstat(2, &file) == 0;
    dup2(kept, STDERR_FILENO);
    dup2(kept, STDOUT_FILENO);
    ck_assert_uint_eq(rv, CKR_OK);
    ck_assert(!taken);
}
END_TEST

static void *live_a_while(void *unused)
{
    CK_SESSION_HANDLE session;
    CK_BYTE bytes[32];
    (void)unused;
    if (fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session) != CKR_OK)
        _exit(2);
    for (int i = 0; i < 2000; i++)
        if (fn->C_GenerateRandom(session, bytes, sizeof bytes) != CKR_OK)
            _exit(3);
    return NULL;
}

static void end_with_the_last_thread(void)
{
    pthread_t thread;
    if (fn->C_Initialize(&os_locking) != CKR_OK ||
        pthread_create(&thread, NULL, live_a_while, NULL) != 0)
        _exit(1);
    pthread_detach(thread);
    pthread_exit(NULL);
}

static pid_t ending;
static int ending_status;

static bool it_has_ended(void)
{
    return waitpid(ending, &ending_status, WNOHANG) == ending;
}

/* The kernel's count of threads is not zero as long as there is one of ours. _i: whether it holds bytes. */
START_TEST(a_program_ends_with_its_last_thread)
{
    unsetenv("COUNTING_LOG");
    proxy_before("counting", _i == 0 ? "x-pool-max-age: 10ms" : "x-pool-max-age: 60min");
    ending = fork();
    if (ending == 0)
        end_with_the_last_thread();
    bool ended = wait_for(it_has_ended);
    if (!ended)
        kill(ending, SIGKILL);
    ck_assert_msg(ended, "it goes on without a thread of its own");
    ck_assert_int_eq(ending_status, 0);
}
END_TEST

static long mapped_pages(void)
{
    long pages = 0;
    FILE *sizes = fopen("/proc/self/statm", "re");
    ck_assert(sizes != NULL && fscanf(sizes, "%ld", &pages) == 1);
    fclose(sizes);
    return pages;
}

/* What a process of several threads may not do, such as entering another user namespace, it may again. */
START_TEST(the_thread_ends_when_it_has_nothing_to_do)
{
    begin_a_thread_and_end_it();
    unsigned threads = threads_now();
    words_begin();
    proxy_before("counting", "x-pool-max-age: 200ms");
    initialize();
    CK_SESSION_HANDLE session = open_session(0, 0);
    long pages = 0;
    for (int i = 0; i < 4; i++) {
        unsigned calls = target_calls_by_others(NULL);
        words_draw(session, 16, 16384);
        ck_assert(threads_become(threads));
        ck_assert_uint_gt(target_calls_by_others(NULL), calls); /* it was there */
        /* The next one gets its stack. */
        if (i == 1)
            pages = mapped_pages();
    }
    if (CHILDREN_CAN_RUN)
        ck_assert_int_lt(mapped_pages(), pages + 1024);
    words_draw(session, 16, 16384);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    ck_assert(threads_become(threads));
    words_check(5 * 2048);
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
    proxy_before("counting", "");
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
    if (CHILDREN_CAN_RUN) {
        tcase_add_test(tcase, a_worker_never_finds_the_token_locked);
        tcase_add_test(tcase,
                       a_life_fits_on_the_smallest_stack); /* the sanitizers' frames are larger */
    }
    tcase_add_loop_test(tcase, a_cancelled_draw_leaves_the_pool_and_the_end_whole, 0, 2);
    if (ALL_THREADS_ARE_OURS) {
        tcase_add_test(tcase, the_prefetch_has_a_stack_that_targets_are_used_to);
        tcase_add_loop_test(tcase, a_program_ends_with_its_last_thread, 0, 2);
    }
    tcase_add_test(tcase, no_standard_stream_is_taken);
    tcase_add_test(tcase, the_thread_ends_when_it_has_nothing_to_do);
}

int main(void)
{
    return run_tests("threads", add_tests);
}
