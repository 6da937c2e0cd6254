/* test_thread.c - a fork beside the making of the filler's thread waits for its end. */
#include "fixture.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

enum { YIELDS = 20000 };

static bool is_watching;
static _Thread_local bool is_forking;
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
    is_forking = true;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    reap(child);
    return unused;
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

/* The fork waits for long, however slow this machine is. */
int pthread_cond_timedwait(pthread_cond_t *changed, pthread_mutex_t *lock,
                           const struct timespec *until)
{
    int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    struct timespec late = {.tv_sec = until->tv_sec + HANG_S};
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    return real(changed, lock, is_forking ? &late : until);
}

/* The C library's lists of stacks change meanwhile, and a child would free one that is in use. */
TEST(a_fork_waits_until_the_thread_is_made)
{
    pthread_t forks;
    SKIP_IF_SANITIZED();
    sem_init(&thread_is_being_made, 0, 0);
    sem_init(&fork_begins, 0, 0);
    pthread_atfork(note_going_on, NULL, NULL);
    begin("x-pool-max-age: 1min");
    is_watching = true;
    ck_assert_int_eq(pthread_create(&forks, NULL, fork_meanwhile, NULL), 0);
    draw_until_filled(session);
    ck_assert_int_eq(pthread_join(forks, NULL), 0);
    ck_assert(atomic_load(&fork_goes_on));
    ck_assert_msg(!atomic_load(&fork_came_early), "a fork was made beside pthread_create()");
}
