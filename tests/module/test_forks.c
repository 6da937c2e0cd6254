/* test_forks.c - ways to make a child, and moments to do so, in which pools have been served twice or hung. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "words_seen.h"

enum { THREADS = 4, AT_ONCE = 20, CHILDREN = 1000, AT_BARRIER = 50, AT_RANDOM = 300 };

/* Ends the child, with the number of the step that failed. No assertion of Check's in there. */
#define CHILD_EXPECT(step, condition)                                                              \
    do {                                                                                           \
        if (!(condition))                                                                          \
            _exit(step);                                                                           \
    } while (0)

static CK_SESSION_HANDLE session;

static void begin(CK_C_INITIALIZE_ARGS *args)
{
    unsetenv("COUNTING_LOG");
    words_begin();
    proxy_before("counting", "x-pool-max-age: 1min");
    EXPECT(fn->C_Initialize(args), CKR_OK);
    session = open_session(0, 0);
    words_draw(session, 16, 4096);
}

static void reap(pid_t child)
{
    int status = 0;
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "the child ended by signal %d", WTERMSIG(status));
    ck_assert_msg(WEXITSTATUS(status) == 0, "the child failed at step %d", WEXITSTATUS(status));
}

static void child_draws(CK_SESSION_HANDLE on, unsigned times)
{
    uint8_t buf[64];
    for (unsigned i = 0; i < times; i++) {
        CHILD_EXPECT(20, fn->C_GenerateRandom(on, buf, sizeof buf) == CKR_OK);
        words_note(buf, sizeof buf);
    }
}

/* A life of its own: the parent's session is none of it. */
static void child_lives(CK_C_INITIALIZE_ARGS *args, unsigned times)
{
    CK_SESSION_HANDLE own;
    uint8_t buf[16];
    CHILD_EXPECT(10,
                 fn->C_GenerateRandom(session, buf, sizeof buf) == CKR_CRYPTOKI_NOT_INITIALIZED);
    CHILD_EXPECT(11, fn->C_Initialize(args) == CKR_OK);
    CHILD_EXPECT(12, fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &own) == CKR_OK);
    child_draws(own, times);
    CHILD_EXPECT(13, fn->C_Finalize(NULL) == CKR_OK);
}

static bool is_permitted(const char *test, pid_t child)
{
    if (child >= 0 || (errno != EPERM && errno != ENOSYS && errno != ENOSPC && errno != EINVAL))
        return true;
    printf("%s: skipped, this system permits no such child: errno %d\n", test, errno);
    return false;
}

START_TEST(a_child_by_clone3_gets_words_of_its_own)
{
    struct clone_args how = {.exit_signal = SIGCHLD};
    begin(&os_locking);
    pid_t child = (pid_t)syscall(SYS_clone3, &how, sizeof how);
    if (!is_permitted("a_child_by_clone3_gets_words_of_its_own", child))
        return;
    if (child == 0) {
        alarm(CHILD_HANGS_S);
        child_lives(&os_locking, 32);
        _exit(0);
    }
    words_draw(session, 16, 4096);
    reap(child);
    words_draw(session, 16, 4096);
    words_check(1024);
}
END_TEST

static pid_t clone_into_new_namespace(void)
{
    return (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
}

/* Both are process 1, each of its own namespace: no pid tells that this is another process. The target, which
 * goes by pids, believes that it is initialised. */
static void process_1(void)
{
    int status = 0;
    CHILD_EXPECT(1, getpid() == 1);
    CHILD_EXPECT(2, fn->C_Initialize(&no_threads) == CKR_OK);
    CHILD_EXPECT(3, fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session) == CKR_OK);
    child_draws(session, 64);
    pid_t child = clone_into_new_namespace();
    if (child == 0) {
        alarm(CHILD_HANGS_S);
        CHILD_EXPECT(4, getpid() == 1);
        child_draws(session, 64);
        _exit(0);
    }
    child_draws(session, 64);
    CHILD_EXPECT(5, waitpid(child, &status, 0) == child);
    CHILD_EXPECT(6, status == 0);
}

START_TEST(process_1_of_another_namespace_gets_words_of_its_own)
{
    begin(&no_threads);
    pid_t child = clone_into_new_namespace();
    if (!is_permitted("process_1_of_another_namespace_gets_words_of_its_own", child))
        return;
    if (child == 0) {
        alarm(CHILD_HANGS_S);
        process_1();
        _exit(0);
    }
    words_draw(session, 16, 4096);
    reap(child);
    words_check(1024);
}
END_TEST

START_TEST(a_vfork_child_that_becomes_another_program_leaves_the_pool_alone)
{
    begin(&os_locking);
    wait_until_quiet(); /* what is held now is enough for all */
    for (int i = 0; i < 20; i++) {
        pid_t child = vfork();
        if (child == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        reap(child);
        uint64_t made = words_made();
        ck_assert_uint_le(words_draw(session, 16, 64), made);
    }
    words_check(512);
}
END_TEST

/* The prefetch is inside the token; in the child nobody is, and nobody ever comes back. */
START_TEST(a_child_made_in_the_middle_of_a_refill_fills_anew)
{
    begin(&os_locking);
    void (*gate)(bool) = (void (*)(bool))target_symbol("counting_gate");
    bool (*is_at_gate)(void) = (bool (*)(void))target_symbol("counting_is_at_gate");
    gate(true);
    words_draw(session, 16, 32768);
    words_draw_until(session, is_at_gate);
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_HANGS_S);
        child_lives(&os_locking, 100);
        _exit(0);
    }
    reap(child);
    gate(false);
    words_draw(session, 16, 32768);
    words_check(8192);
}
END_TEST

static atomic_bool stop;

static void *draw_until_stopped(void *unused)
{
    CK_SESSION_HANDLE own;
    static __thread uint8_t buf[16384];
    (void)unused;
    if (fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &own) != CKR_OK)
        return (void *)"no session";
    while (!atomic_load(&stop)) {
        for (size_t at = 0; at < sizeof buf; at += 64)
            if (fn->C_GenerateRandom(own, buf + at, 64) != CKR_OK)
                return (void *)"no bytes";
        words_note(buf, sizeof buf);
    }
    return NULL;
}

START_TEST(a_thousand_children_of_busy_threads_neither_hang_nor_repeat)
{
    pthread_t threads[THREADS];
    begin(&os_locking);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, draw_until_stopped, NULL), 0);
    pid_t children[AT_ONCE];
    for (int made = 0; made < CHILDREN; made += AT_ONCE) {
        for (int i = 0; i < AT_ONCE; i++) {
            children[i] = fork();
            if (children[i] == 0) {
                alarm(CHILD_HANGS_S);
                child_lives(i % 2 == 0 ? &no_threads : &os_locking, 1);
                _exit(0);
            }
        }
        for (int i = 0; i < AT_ONCE; i++)
            reap(children[i]);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) {
        void *complaint;
        pthread_join(threads[i], &complaint);
        ck_assert_msg(complaint == NULL, "%s", (char *)complaint);
    }
    words_check(CHILDREN * 64 / WORD_BYTES);
}
END_TEST

static unsigned descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

START_TEST(a_chain_of_children_gathers_no_descriptors)
{
    int status;
    begin(&os_locking);
    words_draw(session, 16, 16384);
    wait_until_quiet();
    unsigned parents = descriptors();
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_HANGS_S);
        EXPECT(fn->C_Initialize(&os_locking), CKR_OK);
        session = open_session(0, 0);
        words_draw(session, 16, 16384);
        wait_until_quiet();
        _exit(descriptors() == parents ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* An application whose fork handler takes the lock that it has around its calls. */
static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t handler_begins;

static void take_calls_lock(void)
{
    sem_post(&handler_begins);
    pthread_mutex_lock(&calls_lock);
}

static void drop_calls_lock(void)
{
    pthread_mutex_unlock(&calls_lock);
}

static void *fork_one(void *child)
{
    *(pid_t *)child = fork();
    if (*(pid_t *)child == 0)
        _exit(0);
    return NULL;
}

/* The calls that wait until the prefetch's thread is out of the way. */
static void close_the_last(void)
{
    EXPECT(fn->C_CloseSession(session), CKR_OK);
}

static void close_all(void)
{
    EXPECT(fn->C_CloseAllSessions(0), CKR_OK);
}

static void finalize(void)
{
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
}

static void unload(void)
{
    ck_assert_int_eq(dlclose(proxy), 0);
}

static void (*const waiting_calls[])(void) = {close_the_last, close_all, finalize, unload};

/* fork() has been through our handler and waits for the lock, whose holder waits for our thread. */
START_TEST(a_fork_that_waits_for_a_caller_keeps_the_thread_from_nothing)
{
    pthread_t forks;
    pid_t child = 0;
    int status;
    sem_init(&handler_begins, 0, 0);
    pthread_atfork(take_calls_lock, drop_calls_lock, drop_calls_lock);
    begin(&os_locking);
    words_draw(session, 16, 16384);
    wait_until_quiet();
    pthread_mutex_lock(&calls_lock);
    ck_assert_int_eq(pthread_create(&forks, NULL, fork_one, &child), 0);
    sem_wait(&handler_begins);
    words_draw(session, 16, 65536); /* the thread is wanted */
    usleep(20000);
    waiting_calls[_i]();
    pthread_mutex_unlock(&calls_lock);
    pthread_join(forks, NULL);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* All at the same time, as a server's workers after they were forked. */
START_TEST(fifty_children_that_draw_at_once_get_words_of_their_own)
{
    pthread_barrierattr_t attributes;
    pid_t children[AT_BARRIER];
    pthread_barrier_t *barrier =
        mmap(NULL, sizeof *barrier, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(barrier, MAP_FAILED);
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(barrier, &attributes, AT_BARRIER + 1);
    knob("LAX_FORK", _i == 0 ? "0" : "1");
    begin(&os_locking);
    for (int i = 0; i < AT_BARRIER; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            alarm(CHILD_HANGS_S);
            pthread_barrier_wait(barrier);
            if (_i == 0)
                child_lives(&no_threads, 10);
            else
                child_draws(session, 10);
            _exit(0);
        }
    }
    pthread_barrier_wait(barrier);
    words_draw(session, 16, 4096);
    for (int i = 0; i < AT_BARRIER; i++)
        reap(children[i]);
    words_check(AT_BARRIER * 10 * 8);
}
END_TEST

static volatile sig_atomic_t forks_left, is_child;
static pid_t forked[AT_RANDOM];

static void fork_here(int signal_number)
{
    (void)signal_number;
    if (is_child || forks_left == 0)
        return;
    int saved_errno = errno;
    pid_t child = _Fork();
    if (child == 0) {
        is_child = 1;
        alarm(CHILD_HANGS_S);
    } else
        forked[--forks_left] = child;
    errno = saved_errno;
}

/* The kernel wipes the child's memory between any two instructions of a draw, and the child goes on with
 * it. What that draw gives belongs to the parent too, so it is not looked at; the next ones are well. */
START_TEST(a_child_that_a_signal_makes_in_the_middle_of_a_draw_goes_on)
{
    struct sigaction action = {.sa_handler = fork_here};
    uint8_t buf[64];
    begin(&no_threads);
    forks_left = AT_RANDOM;
    sigaction(SIGALRM, &action, NULL);
    signal(SIGVTALRM, SIG_DFL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 700}, {0, 700}}, NULL);
    while (forks_left > 0) {
        CK_RV rv = fn->C_GenerateRandom(session, buf, sizeof buf);
        if (!is_child) {
            EXPECT(rv, CKR_OK);
            continue;
        }
        signal(SIGALRM, SIG_DFL);
        alarm(CHILD_HANGS_S);
        child_lives(&no_threads, 8);
        _exit(0);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    for (int i = 0; i < AT_RANDOM; i++)
        reap(forked[i]);
    words_check(AT_RANDOM * 64);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_child_by_clone3_gets_words_of_its_own);
    tcase_add_test(tcase, process_1_of_another_namespace_gets_words_of_its_own);
    tcase_add_test(tcase, a_vfork_child_that_becomes_another_program_leaves_the_pool_alone);
    tcase_add_test(tcase, a_child_made_in_the_middle_of_a_refill_fills_anew);
    if (CHILDREN_CAN_RUN)
        tcase_add_test(tcase, a_thousand_children_of_busy_threads_neither_hang_nor_repeat);
    if (CHILDREN_CAN_RUN)
        tcase_add_test(tcase, a_chain_of_children_gathers_no_descriptors);
    tcase_add_loop_test(tcase, a_fork_that_waits_for_a_caller_keeps_the_thread_from_nothing, 0,
                        sizeof waiting_calls / sizeof *waiting_calls);
    tcase_add_loop_test(tcase, fifty_children_that_draw_at_once_get_words_of_their_own, 0, 2);
    tcase_add_test(tcase, a_child_that_a_signal_makes_in_the_middle_of_a_draw_goes_on);
}

int main(void)
{
    return run_tests("forks", add_tests);
}
