/* test_fork_filler.c - a fork while the filler is at work: it is out of the token, keeps no call waiting, and leaves no lock. */
#include "served.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

static CK_SESSION_HANDLE session;

static void live_not_at_all(void)
{
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

/* One fork waits for a while, in case the call comes back. */
TEST(a_token_that_hangs_keeps_one_fork_waiting_and_not_each)
{
    SKIP_IF_SANITIZED();
    session = begin("x-pool-max-age: 1min");
    script("C_GenerateRandom by filler: hold once");
    DRAW_UNTIL(session, script_held() == 1);
    reap(child_that(live_not_at_all));
    ck_assert_uint_eq(waits, 1);
    for (int i = 0; i < 20; i++)
        reap(child_that(live_not_at_all));
    ck_assert_uint_eq(waits, 1);
    script_release();
    draw_until_filled(session);
}

static unsigned filler_calls_in_fork;
static bool is_counting;

/* Registered first, so that they run in between the proxy's own. */
static void fork_is_prepared(void)
{
    if (is_counting)
        filler_calls_in_fork = CALLS(C_GenerateRandom, .by = FILLER);
    for (int i = 0; is_counting && i < 200; i++)
        sched_yield();
}

static void fork_is_made(void)
{
    if (is_counting)
        filler_calls_in_fork = CALLS(C_GenerateRandom, .by = FILLER) - filler_calls_in_fork;
}

/* Locks of the token that it held would stay locked in the child. */
TEST(the_filler_is_out_of_the_token_while_a_fork_is_made)
{
    SKIP_IF_SANITIZED();
    pthread_atfork(fork_is_prepared, fork_is_made, NULL);
    session = begin("x-pool-max-age: 1min");
    draw_until_filled(session);
    is_counting = true;
    for (int i = 0; i < 100; i++) {
        draw(session, 64, 8192); /* it is wanted */
        reap(child_that(live_not_at_all));
        ck_assert_uint_eq(filler_calls_in_fork, 0);
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
    session = begin("x-pool-max-age: 1min");
    draw_until_filled(session);
    pthread_mutex_lock(&calls_lock);
    ck_assert_int_eq(pthread_create(&forks, NULL, fork_one, &child), 0);
    sem_wait(&handler_begins);
    draw(session, 16, 65536); /* the filler is wanted */
    switch (_i) {
    case 0:
        EXPECT(fn->C_CloseSession(session), CKR_OK);
        break;
    case 1:
        EXPECT(fn->C_CloseAllSessions(0), CKR_OK);
        break;
    default:
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
    }
    pthread_mutex_unlock(&calls_lock);
    pthread_join(forks, NULL);
    reap(child);
}

static CK_SLOT_ID token_slot;

static void work_on_the_token(void)
{
    CK_BYTE bytes[32];
    CK_RV rv = fn->C_Initialize(&os_locking);
    CHILD_EXPECT(rv == CKR_OK || rv == CKR_CRYPTOKI_ALREADY_INITIALIZED, true);
    CHILD_EXPECT(fn->C_OpenSession(token_slot, CKF_SERIAL_SESSION, NULL, NULL, &session), CKR_OK);
    for (int i = 0; i < 50; i++)
        CHILD_EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
}

/* Of SoftHSM's locks none is held in a child, though the fork comes while the filler begins, at any moment of that. */
TEST(a_child_never_finds_the_token_locked)
{
    enum { TIMES = 150 };
    CK_BYTE bytes[32];
    SKIP_IF_SANITIZED();
    token_slot = softhsm_begin("");
    for (int life = 0; life < TIMES; life++) {
        session = open_session(token_slot, 0);
        for (int i = 0; i < 60; i++)
            EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
        for (volatile int spin = life * 400; spin > 0; spin--)
            continue;
        reap(child_that(work_on_the_token));
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
        initialize();
    }
}

int main(void)
{
    return test_main("fork_filler", set_up, tear_down);
}
