/* test_exit.c - the end of a program that did not finalize: the target has ended, and nobody may call it. */
#include "run.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Moments of 50 ms: longer than the thread ever sleeps while it still looks round. */
enum { A_POOLS_DRAWS = 200, QUIET_MOMENTS = 30, TRIES = 1 };

/* What the prefetch's thread is at when the program leaves, or what the program does at last. */
enum way { BEFORE_A_FILL, BEFORE_A_CLOSE, ASLEEP, FINALIZES };

static enum way way;
static CK_BYTE bytes[1024];
static bool holding; /* the fork that is under way */
static sem_t fork_is_held;
static sem_t fork_may_go_on;
static long filler; /* the prefetch's thread */
static unsigned long naps;
static CK_SESSION_HANDLE hidden; /* the prefetch's session */

/* How often it went to sleep so far; 0 while it is awake. */
static unsigned long naps_of_filler(void)
{
    char path[64];
    char line[128];
    unsigned long count = 0;
    bool asleep = false;
    snprintf(path, sizeof path, "/proc/self/task/%ld/status", filler);
    FILE *status = fopen(path, "re");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, "State:\tS", strlen("State:\tS")) == 0)
            asleep = true;
        sscanf(line, "voluntary_ctxt_switches: %lu", &count);
    }
    if (status != NULL)
        fclose(status);
    return asleep ? count : 0;
}

static bool filler_is_asleep(void)
{
    return naps_of_filler() != 0;
}

/* It may take some naps while it leaves the slot to the application, and then a long one. */
static bool filler_woke_and_sleeps_on(void)
{
    static unsigned long last_naps;
    static unsigned quiet_moments;
    unsigned long now = naps_of_filler();
    quiet_moments = now > naps && now == last_naps ? quiet_moments + 1 : 0;
    last_naps = now;
    return quiet_moments == QUIET_MOMENTS;
}

/* It looks whether it may go in, again and again. */
static bool filler_tries(void)
{
    return naps_of_filler() > naps + TRIES;
}

static bool hidden_session_is_let_go(void)
{
    CK_SESSION_INFO info;
    return fn->C_GetSessionInfo(hidden, &info) == CKR_OK;
}

/* Runs in fork() after the proxy's own handler, which keeps the prefetch out of the target meanwhile. */
static void hold_the_fork(void)
{
    if (!holding)
        return;
    sem_post(&fork_is_held);
    while (sem_wait(&fork_may_go_on) != 0)
        ;
}

static void *fork_and_forget(void *unused)
{
    if (fork() == 0)
        _exit(0);
    return unused;
}

/* Runs after the proxy's own handler, as the end of the target would. */
static void end_of_the_target(void)
{
    unsigned calls = target_calls_by_others(NULL);
    if (holding)
        sem_post(&fork_may_go_on);
    /* A thread that ends sleeps no more. */
    if (!wait_for(filler_woke_and_sleeps_on))
        _exit(4);
    if (target_calls_by_others(NULL) != calls)
        _exit(5);
    _exit(way == FINALIZES && fn->C_Finalize(NULL) != CKR_OK ? 6 : 0);
}

/* The prefetch's thread wants to make a call: a fill, or the close of an idle session. A fork keeps it out. */
static void stop_before_a_call(CK_SESSION_HANDLE session)
{
    pthread_t forker;
    holding = true;
    pthread_create(&forker, NULL, fork_and_forget, NULL);
    while (sem_wait(&fork_is_held) != 0)
        ;
    naps = naps_of_filler();
    for (int i = 0; way == BEFORE_A_FILL && i < A_POOLS_DRAWS; i++)
        fn->C_GenerateRandom(session, bytes, sizeof bytes);
    if (!wait_for(filler_tries) || hidden_session_is_let_go())
        _exit(3);
}

static void leave(void)
{
    alarm(CHILD_HANGS_S);
    sem_init(&fork_is_held, 0, 0);
    sem_init(&fork_may_go_on, 0, 0);
    atexit(end_of_the_target);
    pthread_atfork(hold_the_fork, NULL, NULL);
    if (fn->C_Initialize(&os_locking) != CKR_OK)
        _exit(1);
    CK_SESSION_HANDLE session;
    fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session);
    for (int i = 0; i < A_POOLS_DRAWS; i++)
        fn->C_GenerateRandom(session, bytes, 32);
    wait_until_quiet();
    filler = prefetch_thread();
    hidden = session + 1;
    if (filler == 0 || hidden_session_is_let_go() || !wait_for(filler_is_asleep))
        _exit(2);
    if (way == BEFORE_A_FILL || way == BEFORE_A_CLOSE)
        stop_before_a_call(session);
    naps = naps_of_filler();
    exit(0);
}

static int status_of_leaving(enum way how)
{
    int status = 0;
    way = how;
    proxy_before("counting", "");
    pid_t child = fork();
    if (child == 0)
        leave();
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

START_TEST(a_fill_that_was_about_to_begin_at_exit_does_not)
{
    ck_assert_int_eq(status_of_leaving(BEFORE_A_FILL), 0);
}
END_TEST

START_TEST(an_idle_session_that_was_about_to_be_closed_at_exit_is_not)
{
    ck_assert_int_eq(status_of_leaving(BEFORE_A_CLOSE), 0);
}
END_TEST

START_TEST(the_thread_does_not_end_beside_the_target)
{
    ck_assert_int_eq(status_of_leaving(ASLEEP), 0);
}
END_TEST

START_TEST(a_handler_that_finalizes_at_exit_is_not_kept_waiting)
{
    ck_assert_int_eq(status_of_leaving(FINALIZES), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_fill_that_was_about_to_begin_at_exit_does_not);
    tcase_add_test(tcase, an_idle_session_that_was_about_to_be_closed_at_exit_is_not);
    tcase_add_test(tcase, the_thread_does_not_end_beside_the_target);
    tcase_add_test(tcase, a_handler_that_finalizes_at_exit_is_not_kept_waiting);
}

int main(void)
{
    return run_tests("exit", add_tests);
}
