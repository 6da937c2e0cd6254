/* test_threads.c - programs of one thread that fork, threads that are cancelled, threads with little stack. */
#include "run.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "words_seen.h"

enum { LIVES = 150, CHILD_HANGS_S = 20 };

static CK_SLOT_ID first_slot(void)
{
    CK_SLOT_ID slots[16];
    CK_ULONG count = 16;
    EXPECT(fn->C_GetSlotList(CK_FALSE, slots, &count), CKR_OK);
    return slots[0];
}

/* SoftHSM, whose state and whose locks a child inherits. */
static void begin_softhsm(void)
{
    char path[128];
    CK_UTF8CHAR label[32];
    memset(label, ' ', sizeof label);
    snprintf(path, sizeof path, "%s/softhsm2.conf", root);
    FILE *conf = fopen(path, "we");
    ck_assert_ptr_nonnull(conf);
    fprintf(conf, "directories.tokendir = %s\nlog.level = ERROR\n", root);
    fclose(conf);
    setenv("SOFTHSM2_CONF", path, 1);
    proxy_before("/usr/lib/softhsm/libsofthsm2.so", "");
    initialize();
    EXPECT(fn->C_InitToken(first_slot(), (CK_UTF8CHAR_PTR) "12345678", 8, label), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
}

static void worker(void)
{
    CK_SESSION_HANDLE session;
    CK_BYTE bytes[32];
    alarm(CHILD_HANGS_S);
    CK_RV rv = fn->C_Initialize(&os_locking);
    if (rv != CKR_OK && rv != CKR_CRYPTOKI_ALREADY_INITIALIZED)
        _exit(1);
    if (fn->C_OpenSession(first_slot(), CKF_SERIAL_SESSION, NULL, NULL, &session) != CKR_OK)
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
    begin_softhsm();
    for (int life = 0; life < LIVES; life++) {
        int status;
        initialize();
        CK_SESSION_HANDLE session = open_session(first_slot(), 0);
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

static void add_tests(TCase *tcase)
{
    if (CHILDREN_CAN_RUN) {
        tcase_add_test(tcase, a_worker_never_finds_the_token_locked);
        tcase_add_test(tcase,
                       a_life_fits_on_the_smallest_stack); /* the sanitizers' frames are larger */
    }
    tcase_add_loop_test(tcase, a_cancelled_draw_leaves_the_pool_and_the_end_whole, 0, 2);
    tcase_add_test(tcase, no_standard_stream_is_taken);
}

int main(void)
{
    return run_tests("threads", add_tests);
}
