/* test_fork.c - children get words of their own, hang nowhere, and are the token's to answer until they initialise. */
#include "served.h"

#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, AT_ONCE = 10, CHILDREN = 300, CHILD_DRAWS = 32 };

static CK_SESSION_HANDLE session;
static CK_BYTE pin[] = "1234";

static void child_draws(CK_SESSION_HANDLE on, unsigned times)
{
    uint8_t buf[64];
    for (unsigned i = 0; i < times; i++) {
        CHILD_EXPECT(fn->C_GenerateRandom(on, buf, sizeof buf), CKR_OK);
        served(buf, sizeof buf);
    }
}

/* A life of its own, of which the parent's session is no part. */
static void live_anew(void)
{
    CK_SESSION_HANDLE own;
    uint8_t buf[16];
    CHILD_EXPECT(fn->C_GenerateRandom(session, buf, sizeof buf), CKR_CRYPTOKI_NOT_INITIALIZED);
    CHILD_EXPECT(fn->C_Initialize(&os_locking), CKR_OK);
    CHILD_EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &own), CKR_OK);
    child_draws(own, CHILD_DRAWS);
    CHILD_EXPECT(fn->C_Finalize(NULL), CKR_OK);
}

static void live_on_with_the_parents_session(void)
{
    child_draws(session, CHILD_DRAWS);
}

/* A lax token is initialised already, and the child may go on. */
static void live_beside_the_parents_session(void)
{
    CK_SESSION_HANDLE own;
    CHILD_EXPECT(fn->C_Initialize(&os_locking), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    CHILD_EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &own), CKR_OK);
    child_draws(own, CHILD_DRAWS);
    child_draws(session, CHILD_DRAWS);
    CHILD_EXPECT(fn->C_Finalize(NULL), CKR_OK);
}

static void live_with_a_child(void)
{
    live_anew();
    int status = 0;
    pid_t grandchild = child_that(live_anew);
    CHILD_EXPECT(waitpid(grandchild, &status, 0), grandchild);
    CHILD_EXPECT(status, 0);
}

static pid_t by_fork(void)
{
    return fork();
}

static pid_t by_underscore_fork(void)
{
    return _Fork();
}

static pid_t by_clone(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static pid_t by_clone3(void)
{
    struct clone_args how = {.exit_signal = SIGCHLD};
    return (pid_t)syscall(SYS_clone3, &how, sizeof how);
}

static pid_t (*const ways[])(void) = {by_fork, by_underscore_fork, by_clone, by_clone3};
static void (*const lives[])(void) = {live_anew, live_with_a_child,
                                      live_on_with_the_parents_session,
                                      live_beside_the_parents_session};

enum { WAYS = sizeof ways / sizeof *ways, LIVES = sizeof lives / sizeof *lives };

static bool is_permitted(pid_t child)
{
    return child >= 0 || (errno != EPERM && errno != ENOSYS && errno != ENOSPC && errno != EINVAL);
}

TEST_EACH(a_child_gets_words_of_its_own, 0, WAYS *LIVES)
{
    void (*lives_so)(void) = lives[_i / WAYS];
    SKIP_IF_SANITIZED();
    script("lax fork %d", _i / WAYS >= 2);
    session = begin("x-pool-max-age: 1min");
    draw(session, 16, 4096);
    pid_t child = ways[_i % WAYS]();
    SKIP_IF(!is_permitted(child), "no child is permitted to be made so");
    if (child == 0) {
        child_begins();
        lives_so();
        _exit(0);
    }
    draw(session, 16, 4096);
    reap(child);
    draw(session, 16, 4096);
    served_once(3 * 512 + CHILD_DRAWS * 8);
}

static pid_t into_new_namespace(void)
{
    return (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
}

/* Each is process 1 of its namespace: the target, which goes by pids, believes that it is initialised. */
static void live_as_process_1(void)
{
    int status = 0;
    CHILD_EXPECT(getpid(), 1);
    CHILD_EXPECT(fn->C_Initialize(&no_threads), CKR_OK);
    CHILD_EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session), CKR_OK);
    child_draws(session, CHILD_DRAWS);
    pid_t child = into_new_namespace();
    if (child == 0) {
        child_begins();
        CHILD_EXPECT(getpid(), 1);
        child_draws(session, CHILD_DRAWS);
        _exit(0);
    }
    child_draws(session, CHILD_DRAWS);
    CHILD_EXPECT(waitpid(child, &status, 0), child);
    CHILD_EXPECT(status, 0);
}

TEST(process_1_of_another_namespace_gets_words_of_its_own)
{
    SKIP_IF_SANITIZED();
    proxy_with("x-pool-max-age: 1min");
    EXPECT(fn->C_Initialize(&no_threads), CKR_OK);
    session = open_session(0, 0);
    draw(session, 16, 1024);
    pid_t child = into_new_namespace();
    SKIP_IF(!is_permitted(child), "no namespace is permitted to be made");
    if (child == 0) {
        child_begins();
        live_as_process_1();
        _exit(0);
    }
    draw(session, 16, 4096);
    reap(child);
    served_once(512 + 3 * CHILD_DRAWS * 8);
}

TEST(a_vfork_child_leaves_the_pool_alone)
{
    session = begin("x-pool-max-age: 1min\nx-pool-threads: never");
    draw(session, 16, 4096);
    for (int i = 0; i < 20; i++) {
        uint64_t made = draw_until_held(session);
        pid_t child = vfork();
        if (child == 0 && i % 2 == 0)
            execl("/bin/true", "true", (char *)NULL);
        if (child == 0)
            _exit(i % 2);
        int status;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_uint_le(draw(session, 16, 16), made);
    }
    served_once(512);
}

static atomic_bool stop;

static void *draw_until_stopped(void *unused)
{
    CK_SESSION_HANDLE own = open_session(0, 0);
    uint8_t buf[64];
    (void)unused;
    while (!atomic_load(&stop)) {
        if (fn->C_GenerateRandom(own, buf, sizeof buf) != CKR_OK)
            return (void *)"no bytes";
        served(buf, sizeof buf);
    }
    return NULL;
}

/* Whatever a thread was at, whatever lock it held. */
TEST(hundreds_of_children_of_busy_threads_neither_hang_nor_repeat)
{
    pthread_t threads[THREADS];
    pid_t children[AT_ONCE];
    void *complaint;
    SKIP_IF_SANITIZED();
    script("quiet");
    session = begin("x-pool-max-age: 1min");
    draw_until_filled(session); /* with the loader's lock, which only fork() sees to */
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, draw_until_stopped, NULL), 0);
    for (int made = 0; made < CHILDREN; made += AT_ONCE) {
        for (int i = 0; i < AT_ONCE; i++) {
            children[i] = ways[i % WAYS]();
            if (children[i] == 0) {
                child_begins();
                lives[i % 2]();
                _exit(0);
            }
        }
        for (int i = 0; i < AT_ONCE; i++)
            reap(children[i]);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &complaint);
        ck_assert_msg(complaint == NULL, "%s", (char *)complaint);
    }
    served_once(CHILDREN * CHILD_DRAWS * 8);
}

/* In the child no thread is inside the token, so the interrupted fill never ends there. */
TEST(a_child_made_in_the_middle_of_a_fill_fills_anew)
{
    SKIP_IF_SANITIZED();
    session = begin("x-pool-max-age: 1min");
    script("C_GenerateRandom by filler: hold once");
    DRAW_UNTIL(session, script_held() == 1);
    reap(child_that(live_anew));
    script_release();
    draw(session, 16, 32768);
    served_once(4096);
}

/* It initialises anew, and what it does on the session that it inherited counts for every slot. */
static void live_on_with_an_inherited_session(void)
{
    CK_SESSION_HANDLE own;
    struct word word;
    uint8_t bytes[WORD_BYTES];
    fn->C_Initialize(&os_locking);
    CHILD_EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &own),
                 CKR_OK);
    static const unsigned logins[] = {1, 1, 0, 2};
    for (unsigned event = 0; event < 4; event++) {
        child_draws(own, 200);
        uint64_t made = words_made();
        CK_RV rv = event == 0   ? fn->C_Login(session, CKU_USER, pin, 4)
                   : event == 1 ? fn->C_SeedRandom(session, pin, 4)
                   : event == 2 ? fn->C_Logout(session)
                                : fn->C_Login(session, CKU_SO, pin, 4);
        CHILD_EXPECT(rv, CKR_OK);
        CHILD_EXPECT(fn->C_GenerateRandom(own, bytes, sizeof bytes), CKR_OK);
        CHILD_EXPECT(word_read(bytes, &word) && word.counter > made, true);
        CHILD_EXPECT(word.login, logins[event]);
    }
}

TEST(a_login_or_seed_on_an_inherited_session_counts)
{
    SKIP_IF_SANITIZED();
    script("lax fork");
    proxy_with("x-pool-max-age: 1min");
    initialize();
    session = open_session(0, CKF_RW_SESSION);
    draw(session, 16, 1024);
    reap(child_that(live_on_with_an_inherited_session));
    served_once(1024);
}

static unsigned parents_descriptors;

static void live_with_as_many_descriptors(void)
{
    CHILD_EXPECT(fn->C_Initialize(&os_locking), CKR_OK);
    session = open_session(0, 0);
    draw_until_filled(session);
    CHILD_EXPECT(entries_of("/proc/self/fd"), parents_descriptors);
}

TEST(a_child_has_no_more_descriptors_than_its_parent)
{
    SKIP_IF_SANITIZED();
    session = begin("");
    draw_until_filled(session);
    parents_descriptors = entries_of("/proc/self/fd");
    reap(child_that(live_with_as_many_descriptors));
}

int main(void)
{
    return test_main("fork", set_up, tear_down);
}
