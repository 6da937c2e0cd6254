/* test_once.c - no word of the token is served twice: by threads, and by processes that fork under them.
 *
 * TESTS_LONG=1 has 64 threads draw 100 million words besides; `meson test -t 0` gives them the time.
 */
#include "run.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "words_seen.h"

enum {
    THREADS_MOST = 64,
    LONG_S = 3600,
    STRETCH_BYTES = 64 * 1024,
    CHILD_BYTES = 8 * 1024,
    FORKS = 200
};

/* One thread's share: bytes of it, by requests of 1 to size_most bytes. */
struct share {
    pthread_t thread;
    size_t bytes; /* 0: until told to stop */
    size_t size_most;
    unsigned seed;
    unsigned failures;
};

static atomic_bool stop;

static unsigned next_number(unsigned *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

/* A stretch of requests of all sizes. Returns how many failed. */
static unsigned draw_stretch(CK_SESSION_HANDLE session, uint8_t *bytes, size_t len_bytes,
                             size_t size_most, unsigned *seed)
{
    unsigned failures = 0;
    for (size_t at = 0; at < len_bytes;) {
        size_t size = next_number(seed) % size_most + 1;
        if (size > len_bytes - at)
            size = len_bytes - at;
        failures += fn->C_GenerateRandom(session, bytes + at, size) != CKR_OK;
        at += size;
    }
    words_note(bytes, len_bytes);
    return failures;
}

static void *draw_share(void *argument)
{
    struct share *share = argument;
    CK_SESSION_HANDLE session;
    uint8_t bytes[STRETCH_BYTES];
    if (fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session) != CKR_OK)
        share->failures++;
    for (size_t done = 0; share->bytes == 0 ? !atomic_load(&stop) : done < share->bytes;
         done += sizeof bytes)
        share->failures +=
            draw_stretch(session, bytes, sizeof bytes, share->size_most, &share->seed);
    return NULL;
}

static struct share shares[THREADS_MOST];

static void start(unsigned threads, size_t bytes, size_t size_most)
{
    for (unsigned i = 0; i < threads; i++) {
        shares[i] = (struct share){.bytes = bytes, .size_most = size_most, .seed = i};
        ck_assert_int_eq(pthread_create(&shares[i].thread, NULL, draw_share, &shares[i]), 0);
    }
}

static void finish(unsigned threads)
{
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(shares[i].thread, NULL);
        ck_assert_uint_eq(shares[i].failures, 0);
    }
}

static void before_counting(const char *settings)
{
    unsetenv("COUNTING_LOG");
    words_begin();
    proxy_before("counting", settings);
    initialize();
}

/* In all about a million words: many small requests, fewer large ones. */
static const struct {
    unsigned threads;
    size_t size_most;
    size_t bytes; /* of all threads */
    const char *settings;
} crowds[] = {
    {1, 1024, 1024 * 1024, ""},
    {2, 64, 1024 * 1024, ""},
    {8, 1024, 2048 * 1024, ""},
    {8, 64, 2048 * 1024, ""},
    {64, 64, 4096 * 1024, ""},
    {8, 300, 1024 * 1024, "x-pool-size: 4KiB"},
    {8, 300, 1024 * 1024, "x-pool-threads: never"},
    {2, 24, 512 * 1024, "x-pool-max-age: 10ms"},
    {64, 1024, 800 * 1000 * 1000, ""}, /* the long one */
};

enum { CROWDS = sizeof crowds / sizeof *crowds };

START_TEST(no_word_is_served_twice_and_none_is_made_up)
{
    before_counting(crowds[_i].settings);
    start(crowds[_i].threads, crowds[_i].bytes / crowds[_i].threads, crowds[_i].size_most);
    finish(crowds[_i].threads);
    words_check(crowds[_i].bytes / WORD_BYTES / 2);
}
END_TEST

/* Events of all kinds beside the threads that draw. */
START_TEST(no_word_is_served_twice_while_pools_are_dropped)
{
    CK_BYTE seed[8] = {1};
    before_counting("");
    CK_SESSION_HANDLE session = open_session(0, 0);
    start(2, 1024 * 1024, 64);
    for (int i = 0; i < 200; i++) {
        EXPECT(fn->C_SeedRandom(session, seed, sizeof seed), CKR_OK);
        EXPECT(i % 2 == 0 ? fn->C_Login(session, CKU_USER, (CK_BYTE_PTR) "1234", 4)
                          : fn->C_Logout(session),
               CKR_OK);
        usleep(500);
    }
    finish(2);
    words_check(32 * 1024);
}
END_TEST

enum how { WITH_FORK, WITH_UNDERSCORE_FORK, WITH_RAW_CLONE, HOWS };

static pid_t fork_by(enum how how)
{
    switch (how) {
    case WITH_FORK:
        return fork();
    case WITH_UNDERSCORE_FORK:
        return _Fork();
    default:
        return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    }
}

/* Waits for a child; it must end well, and kills itself if it hangs. */
static void reap(pid_t child)
{
    int status = 0;
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "the child ended by signal %d", WTERMSIG(status));
    ck_assert_msg(WEXITSTATUS(status) == 0, "the child failed at step %d", WEXITSTATUS(status));
}

/* Ends the child, with the number of the step that failed. No assertion of Check's in there. */
#define CHILD_EXPECT(step, call, rv)                                                               \
    do {                                                                                           \
        if ((call) != (rv))                                                                        \
            _exit(step);                                                                           \
    } while (0)

static void child_draws(CK_SESSION_HANDLE session, unsigned seed)
{
    static uint8_t bytes[CHILD_BYTES];
    CHILD_EXPECT(20, draw_stretch(session, bytes, sizeof bytes, 100, &seed), 0);
}

static void child_initializes(void)
{
    CK_SESSION_HANDLE session;
    CHILD_EXPECT(10, fn->C_Initialize(&os_locking), CKR_OK);
    CHILD_EXPECT(11, fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session), CKR_OK);
    child_draws(session, (unsigned)getpid());
}

/* What a strict token answers to a child, the proxy answers too; then the child goes its own way. */
static void child_of_a_strict_token(CK_SESSION_HANDLE parents)
{
    uint8_t bytes[32];
    alarm(CHILD_HANGS_S);
    CHILD_EXPECT(1, fn->C_GenerateRandom(parents, bytes, sizeof bytes),
                 CKR_CRYPTOKI_NOT_INITIALIZED);
    CHILD_EXPECT(2, fn->C_GetSessionInfo(parents, &(CK_SESSION_INFO){0}),
                 CKR_CRYPTOKI_NOT_INITIALIZED);
    child_initializes();
    CHILD_EXPECT(3, fn->C_Finalize(NULL), CKR_OK);
    _exit(0);
}

START_TEST(a_child_that_initializes_gets_words_of_its_own)
{
    before_counting("");
    CK_SESSION_HANDLE session = open_session(0, 0);
    words_draw(session, 16, 4096);
    pid_t child = fork_by(_i);
    if (child == 0)
        child_of_a_strict_token(session);
    words_draw(session, 16, 4096);
    reap(child);
    words_draw(session, 16, 4096);
    words_check(1024);
}
END_TEST

/* A token that lets the child use its parent's sessions: every request goes to it. */
START_TEST(a_child_that_does_not_initialize_is_handed_on_to_the_token)
{
    knob("LAX_FORK", "1");
    before_counting("");
    CK_SESSION_HANDLE session = open_session(0, 0);
    words_draw(session, 16, 4096);
    pid_t child = fork_by(_i);
    if (child == 0) {
        alarm(CHILD_HANGS_S);
        child_draws(session, 1);
        _exit(0);
    }
    words_draw(session, 16, 4096);
    reap(child);
    words_check(1024);
}
END_TEST

START_TEST(a_lax_token_is_initialized_already_and_the_child_may_go_on)
{
    uint8_t bytes[32];
    knob("LAX_FORK", "1");
    before_counting("");
    CK_SESSION_HANDLE session = open_session(0, 0);
    words_draw(session, 16, 4096);
    pid_t child = fork_by(_i);
    if (child == 0) {
        CK_SESSION_HANDLE own;
        alarm(CHILD_HANGS_S);
        CHILD_EXPECT(1, fn->C_Initialize(&os_locking), CKR_CRYPTOKI_ALREADY_INITIALIZED);
        CHILD_EXPECT(2, fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &own), CKR_OK);
        child_draws(own, 1);
        CHILD_EXPECT(3, fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
        CHILD_EXPECT(4, fn->C_Finalize(NULL), CKR_OK);
        _exit(0);
    }
    reap(child);
    words_draw(session, 16, 4096);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    words_check(1024);
}
END_TEST

static void child_with_a_child(CK_SESSION_HANDLE parents)
{
    int status = 0;
    alarm(CHILD_HANGS_S);
    child_initializes();
    pid_t grandchild = fork();
    if (grandchild == 0)
        child_of_a_strict_token(parents);
    CHILD_EXPECT(4, waitpid(grandchild, &status, 0), grandchild);
    _exit(status == 0 ? 0 : 5);
}

START_TEST(grandchildren_get_words_of_their_own)
{
    before_counting("");
    CK_SESSION_HANDLE session = open_session(0, 0);
    words_draw(session, 16, 4096);
    pid_t child = fork();
    if (child == 0)
        child_with_a_child(session);
    reap(child);
    words_check(1024);
}
END_TEST

/* Whatever a thread was at, whatever lock it held. */
START_TEST(two_hundred_forks_under_load_neither_hang_nor_repeat)
{
    before_counting("");
    CK_SESSION_HANDLE session = open_session(0, 0);
    start(4, /* bytes= */ 0, 64);
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork_by(i % HOWS);
        if (child == 0)
            child_of_a_strict_token(session);
        reap(child);
    }
    atomic_store(&stop, true);
    finish(4);
    words_check(FORKS * CHILD_BYTES / WORD_BYTES / 2);
}
END_TEST

START_TEST(a_vfork_child_leaves_the_parents_pool_alone)
{
    before_counting("x-pool-max-age: 1min");
    CK_SESSION_HANDLE session = open_session(0, 0);
    words_draw(session, 16, 4096);
    wait_until_quiet();
    uint64_t lowest = words_made();
    pid_t child = vfork();
    if (child == 0)
        _exit(0);
    reap(child);
    /* What was ready is ready still. */
    ck_assert_uint_le(words_draw(session, 16, 64), lowest);
    words_check(512);
}
END_TEST

static void add_tests(TCase *tcase)
{
    bool wants_long = getenv("TESTS_LONG") != NULL;
    if (wants_long)
        tcase_set_timeout(tcase, LONG_S);
    tcase_add_loop_test(tcase, no_word_is_served_twice_and_none_is_made_up, 0,
                        wants_long ? CROWDS : CROWDS - 1);
    tcase_add_test(tcase, no_word_is_served_twice_while_pools_are_dropped);
    if (CHILDREN_CAN_RUN) {
        tcase_add_loop_test(tcase, a_child_that_initializes_gets_words_of_its_own, 0, HOWS);
        tcase_add_loop_test(tcase, a_child_that_does_not_initialize_is_handed_on_to_the_token, 0,
                            HOWS);
        tcase_add_loop_test(tcase, a_lax_token_is_initialized_already_and_the_child_may_go_on, 0,
                            HOWS);
        tcase_add_test(tcase, grandchildren_get_words_of_their_own);
        tcase_add_test(tcase, two_hundred_forks_under_load_neither_hang_nor_repeat);
    }
    tcase_add_test(tcase, a_vfork_child_leaves_the_parents_pool_alone);
}

int main(void)
{
    return run_tests("once", add_tests);
}
