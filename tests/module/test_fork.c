/* test_fork.c - children get words of their own and hang nowhere, also while the filler is at work. */
#include "fixture.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, AT_ONCE = 10, CHILDREN = 300, CHILD_DRAWS = 32 };

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

static pid_t by_fork(void)
{
    return fork();
}

static pid_t by_underscore_fork(void)
{
    return _Fork();
}

static pid_t by_clone3(void)
{
    struct clone_args how = {.exit_signal = SIGCHLD};
    return (pid_t)syscall(SYS_clone3, &how, sizeof how);
}

static pid_t (*const ways[])(void) = {by_fork, by_underscore_fork, by_clone3};
static void (*const lives[])(void) = {live_anew, live_on_with_the_parents_session,
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
    script("lax fork %d", _i / WAYS >= 1);
    begin("x-pool-max-age: 1min");
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
    begin_with(&no_threads, "x-pool-max-age: 1min");
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
    begin("x-pool-max-age: 1min\nx-pool-threads: never");
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
    begin("x-pool-max-age: 1min");
    draw_until_filled(session); /* with the loader's lock, which only fork() sees to */
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, draw_until_stopped, NULL), 0);
    for (int made = 0; made < CHILDREN; made += AT_ONCE) {
        for (int i = 0; i < AT_ONCE; i++) {
            children[i] = ways[i % WAYS]();
            if (children[i] == 0) {
                child_begins();
                live_anew();
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
    begin("x-pool-max-age: 1min");
    draw(session, 16, 1024);
    reap(child_that(live_on_with_an_inherited_session));
    served_once(1024);
}

static unsigned waits;

/* The proxy calls this one: the waits of this thread, which forks, are counted. */
int pthread_cond_timedwait(pthread_cond_t *changed, pthread_mutex_t *lock,
                           const struct timespec *until)
{
    int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    waits += gettid() == getpid();
    return real(changed, lock, until);
}

/* One fork waits for a while, in case the call comes back. In the child no thread is inside the token. */
TEST(a_token_that_hangs_keeps_one_fork_waiting_and_no_child)
{
    SKIP_IF_SANITIZED();
    begin("x-pool-max-age: 1min");
    script("C_GenerateRandom by filler: hold once");
    DRAW_UNTIL(session, script_held() == 1);
    for (int i = 0; i < 20; i++) {
        reap(child_that(live_anew));
        ck_assert_uint_eq(waits, 1);
    }
    script_release();
    draw_until_filled(session);
    served_once(20 * CHILD_DRAWS * 8);
}

static unsigned calls_in_fork;
static bool is_counting;

/* Registered first, so that they run in between the proxy's own. */
static void fork_is_prepared(void)
{
    calls_in_fork = target_calls_in_all();
    for (int i = 0; is_counting && i < 200; i++)
        sched_yield();
}

static void fork_is_made(void)
{
    calls_in_fork = target_calls_in_all() - calls_in_fork;
}

static void live_not_at_all(void)
{
}

/* Locks of the token that it held would stay locked in the child. The fork comes at any moment of its life. */
TEST(the_filler_is_out_of_the_token_while_a_fork_is_made)
{
    SKIP_IF_SANITIZED();
    pthread_atfork(fork_is_prepared, fork_is_made, NULL);
    begin("x-pool-max-age: 1min");
    is_counting = true;
    for (int life = 0; life < 100; life++) {
        draw(session, 64, 8192); /* it is wanted */
        for (volatile int spin = life * 400; spin > 0; spin--)
            continue;
        reap(child_that(live_not_at_all));
        ck_assert_uint_eq(calls_in_fork, 0);
        if (life % 2 == 0) {
            EXPECT(fn->C_Finalize(NULL), CKR_OK);
            begin_again();
        }
    }
}

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

/* fork() has been through our handler and waits for the lock, whose holder makes a call that waits for the filler. */
TEST_EACH(a_fork_that_waits_for_a_caller_keeps_no_call_waiting, 0, 3)
{
    pthread_t forks;
    pid_t child = 0;
    SKIP_IF_SANITIZED();
    sem_init(&handler_begins, 0, 0);
    pthread_atfork(take_calls_lock, drop_calls_lock, drop_calls_lock);
    begin("x-pool-max-age: 1min");
    draw_until_filled(session);
    pthread_mutex_lock(&calls_lock);
    ck_assert_int_eq(pthread_create(&forks, NULL, fork_one, &child), 0);
    sem_wait(&handler_begins);
    draw(session, 16, 65536); /* the filler is wanted */
    EXPECT(_i == 0   ? fn->C_CloseSession(session)
           : _i == 1 ? fn->C_CloseAllSessions(0)
                     : fn->C_Finalize(NULL),
           CKR_OK);
    pthread_mutex_unlock(&calls_lock);
    pthread_join(forks, NULL);
    reap(child);
}

enum { FORKS_BESIDE_LIVES = 1500 };

static atomic_bool lives_are_over;
static atomic_uint bad_lives;

/* Without Check's macros: a child would find their lock held. */
static void *live_again_and_again(void *unused)
{
    while (!atomic_load(&lives_are_over))
        bad_lives += fn->C_Initialize(&os_locking) != CKR_OK || fn->C_Finalize(NULL) != CKR_OK;
    return unused;
}

static void initialize_and_finalize(void)
{
    CHILD_EXPECT(fn->C_Initialize(&os_locking), CKR_OK);
    CHILD_EXPECT(fn->C_Finalize(NULL), CKR_OK);
}

/* Settings and policy take the place of others in the middle of a fork; neither is freed by both processes' copies. */
TEST(a_child_of_a_process_that_is_initializing_can_initialize)
{
    pthread_t thread;
    SKIP_IF_SANITIZED(); /* its allocator hangs children that allocate */
    script("quiet");
    proxy_with("x-disabled-algorithms: MD5, DES, RC4");
    ck_assert_int_eq(pthread_create(&thread, NULL, live_again_and_again, NULL), 0);
    for (int i = 0; i < FORKS_BESIDE_LIVES; i++)
        reap(child_that(initialize_and_finalize));
    atomic_store(&lives_are_over, true);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(bad_lives, 0);
}
