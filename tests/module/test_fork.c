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

enum { AT_ONCE = 10, CHILDREN = 300, CHILD_DRAWS = 32 };

static void child_draws(CK_SESSION_HANDLE on, unsigned times)
{
    uint8_t buf[64];
    for (unsigned i = 0; i < times; i++) {
        CHILD_EXPECT(fn->C_GenerateRandom(on, buf, sizeof buf), CKR_OK);
        CHILD_EXPECT(served(buf, sizeof buf) != UINT64_MAX, true);
    }
}

/* A life of its own, of which the parent's session is no part. */
static void live_anew(void)
{
    uint8_t buf[16];
    CHILD_EXPECT(fn->C_GenerateRandom(session, buf, sizeof buf), CKR_CRYPTOKI_NOT_INITIALIZED);
    child_draws(child_session(&os_locking, CKR_OK), CHILD_DRAWS);
    CHILD_EXPECT(fn->C_Finalize(NULL), CKR_OK);
}

static void live_on_with_the_parents_session(void)
{
    child_draws(session, CHILD_DRAWS);
}

/* A lax token is initialised already, and the child may go on. */
static void live_beside_the_parents_session(void)
{
    child_draws(child_session(&os_locking, CKR_CRYPTOKI_ALREADY_INITIALIZED), CHILD_DRAWS);
    child_draws(session, CHILD_DRAWS);
    CHILD_EXPECT(fn->C_Finalize(NULL), CKR_OK);
}

static pid_t clone3(void)
{
    struct clone_args how = {.exit_signal = SIGCHLD};
    return (pid_t)syscall(SYS_clone3, &how, sizeof how);
}

static pid_t (*const ways[])(void) = {fork, _Fork, clone3};
static void (*const lives[])(void) = {live_anew, live_on_with_the_parents_session,
                                      live_beside_the_parents_session};

enum { WAYS = COUNT_OF(ways), LIVES = COUNT_OF(lives) };

static bool is_permitted(pid_t child)
{
    return child >= 0 || (errno != EPERM && errno != ENOSYS && errno != ENOSPC && errno != EINVAL);
}

TEST_EACH(a_child_gets_words_of_its_own, 0, WAYS *LIVES)
{
    script("lax fork %d", _i / WAYS >= 1);
    begin("x-pool-max-age: 1min");
    draw(session, 16, 4096);
    pid_t child = child_by(ways[_i % WAYS], lives[_i / WAYS]);
    SKIP_IF(!is_permitted(child), "no child is permitted to be made so");
    draw(session, 16, 4096);
    reap(child);
    draw(session, 16, 4096);
}

static pid_t into_new_namespace(void)
{
    return (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
}

static void live_as_process_1(void)
{
    CHILD_EXPECT(getpid(), 1);
    live_on_with_the_parents_session();
}

/* Each is process 1 of its namespace: the target, which goes by pids, believes that it is initialised. */
static void initialize_as_process_1(void)
{
    CHILD_EXPECT(getpid(), 1);
    session = child_session(&no_threads, CKR_OK);
    child_draws(session, CHILD_DRAWS);
    pid_t child = child_by(into_new_namespace, live_as_process_1);
    child_draws(session, CHILD_DRAWS);
    int status = 0;
    CHILD_EXPECT(waitpid(child, &status, 0), child);
    CHILD_EXPECT(status, 0);
}

TEST(process_1_of_another_namespace_gets_words_of_its_own)
{
    begin_with(&no_threads, "x-pool-max-age: 1min");
    draw(session, 16, 1024);
    pid_t child = child_by(into_new_namespace, initialize_as_process_1);
    SKIP_IF(!is_permitted(child), "no namespace is permitted to be made");
    draw(session, 16, 4096);
    reap(child);
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
}

static atomic_bool stop;

static atomic_uint failures;

static void *draw_until_stopped(void *unused)
{
    CK_SESSION_HANDLE own = open_session(0, 0);
    uint8_t buf[64] = {0};
    while (!atomic_load(&stop)) {
        failures += fn->C_GenerateRandom(own, buf, sizeof buf) != CKR_OK;
        served(buf, sizeof buf);
    }
    return unused;
}

/* Whatever a thread was at, whatever lock it held. */
TEST(hundreds_of_children_of_busy_threads_neither_hang_nor_repeat)
{
    pid_t children[AT_ONCE];
    script("quiet");
    begin_filled(); /* with the loader's lock, which only fork() sees to */
    start_threads(4, draw_until_stopped, NULL);
    for (int made = 0; made < CHILDREN; made += AT_ONCE) {
        for (int i = 0; i < AT_ONCE; i++)
            children[i] = child_by(ways[i % WAYS], live_anew);
        for (int i = 0; i < AT_ONCE; i++)
            reap(children[i]);
    }
    atomic_store(&stop, true);
    join_threads();
    ck_assert_uint_eq(failures, 0);
}

/* It initialises anew, and what it does on the session that it inherited counts for every slot. */
static void live_on_with_an_inherited_session(void)
{
    struct word word;
    uint8_t bytes[WORD_BYTES];
    CK_SESSION_HANDLE own = child_session(&os_locking, CKR_CRYPTOKI_ALREADY_INITIALIZED);
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
    script("lax fork");
    begin("x-pool-max-age: 1min");
    draw(session, 16, 1024);
    reap(child_that(live_on_with_an_inherited_session));
}

static unsigned waits;
static _Thread_local bool is_patient;

/* The proxy calls this one: the waits of this thread, which forks, are counted, and those of a patient one are long. */
int pthread_cond_timedwait(pthread_cond_t *changed, pthread_mutex_t *lock,
                           const struct timespec *until)
{
    int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    struct timespec late = {.tv_sec = until->tv_sec + HANG_S};
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    waits += gettid() == getpid();
    return real(changed, lock, is_patient ? &late : until);
}

/* One fork waits for a while, in case the call comes back. In the child no thread is inside the token. */
TEST(a_token_that_hangs_keeps_one_fork_waiting_and_no_child)
{
    begin("x-pool-max-age: 1min");
    script("C_GenerateRandom by filler: hold once");
    DRAW_UNTIL(session, script_held() == 1);
    for (int i = 0; i < 20; i++) {
        reap(child_that(live_anew));
        ck_assert_uint_eq(waits, 1);
    }
    script_release();
    draw_until_filled(session);
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

/* Locks of the token that it held would stay locked in the child. The fork comes at any moment of its life. */
TEST(the_filler_is_out_of_the_token_while_a_fork_is_made)
{
    pthread_atfork(fork_is_prepared, fork_is_made, NULL);
    begin("x-pool-max-age: 1min");
    is_counting = true;
    for (int life = 0; life < 100; life++) {
        draw(session, 64, 8192); /* it is wanted */
        for (volatile int spin = life * 400; spin > 0; spin--)
            continue;
        reap(child_that(NULL));
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

static void *fork_one(void *unused)
{
    reap(child_that(NULL));
    return unused;
}

/* fork() has been through our handler and waits for the lock, whose holder makes a call that waits for the filler. */
TEST_EACH(a_fork_that_waits_for_a_caller_keeps_no_call_waiting, 0, 3)
{
    sem_init(&handler_begins, 0, 0);
    pthread_atfork(take_calls_lock, drop_calls_lock, drop_calls_lock);
    begin_filled();
    pthread_mutex_lock(&calls_lock);
    start_threads(1, fork_one, NULL);
    sem_wait(&handler_begins);
    draw(session, 16, 65536); /* the filler is wanted */
    EXPECT(_i == 0   ? fn->C_CloseSession(session)
           : _i == 1 ? fn->C_CloseAllSessions(0)
                     : fn->C_Finalize(NULL),
           CKR_OK);
    pthread_mutex_unlock(&calls_lock);
    join_threads();
}

/* Without Check's macros: a child would find their lock held. */
static void *live_again_and_again(void *unused)
{
    while (!atomic_load(&stop))
        failures += fn->C_Initialize(&os_locking) != CKR_OK || fn->C_Finalize(NULL) != CKR_OK;
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
    script("quiet");
    proxy_with("x-disabled-algorithms: MD5, DES, RC4");
    start_threads(1, live_again_and_again, NULL);
    for (int i = 0; i < 1500; i++)
        reap(child_that(initialize_and_finalize));
    atomic_store(&stop, true);
    join_threads();
    ck_assert_uint_eq(failures, 0);
}

enum { YIELDS = 20000 };

static bool is_watching;
static sem_t thread_is_being_made, fork_begins;
static atomic_bool thread_is_made, fork_goes_on, fork_came_early;

/* Handlers of fork() run the last registered first: this one before the proxy's, */
static void note_begin(void)
{
    sem_post(&fork_begins);
}

/* and this one after it. */
static void note_going_on(void)
{
    atomic_store(&fork_came_early, !atomic_load(&thread_is_made));
    atomic_store(&fork_goes_on, true);
}

static void *fork_meanwhile(void *unused)
{
    sem_wait(&thread_is_being_made);
    is_patient = true; /* however slow this machine is */
    return fork_one(unused);
}

/* The proxy calls this one. The fork that it waits for may go on only after it has returned. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    bool is_fillers = is_watching && start != fork_meanwhile;
    if (is_fillers) {
        is_watching = false;
        pthread_atfork(note_begin, NULL, NULL);
        sem_post(&thread_is_being_made);
        sem_wait(&fork_begins);
        for (int i = 0; i < YIELDS && !atomic_load(&fork_goes_on); i++)
            sched_yield();
    }
    int rc = real(thread, attributes, start, argument);
    if (is_fillers)
        atomic_store(&thread_is_made, true);
    return rc;
}

/* The C library's lists of stacks change meanwhile, and a child would free one that is in use. */
TEST(a_fork_waits_until_the_thread_is_made)
{
    sem_init(&thread_is_being_made, 0, 0);
    sem_init(&fork_begins, 0, 0);
    pthread_atfork(note_going_on, NULL, NULL);
    begin("x-pool-max-age: 1min");
    is_watching = true;
    start_threads(1, fork_meanwhile, NULL);
    draw_until_filled(session);
    join_threads();
    ck_assert(atomic_load(&fork_goes_on));
    ck_assert_msg(!atomic_load(&fork_came_early), "a fork was made beside pthread_create()");
}
