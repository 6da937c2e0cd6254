/* gate.c - holds random calls inside the counting target, so that a test can do something meanwhile. */
#include "counting.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_closed;
static pthread_t closed_by;
static unsigned waiting;

void gate_pass(void)
{
    pthread_mutex_lock(&lock);
    /* Said once: those who wait here would wake each other for ever. */
    bool waits = is_closed && !pthread_equal(closed_by, pthread_self());
    waiting += waits;
    if (waits)
        pthread_cond_broadcast(&changed);
    while (is_closed && !pthread_equal(closed_by, pthread_self()))
        pthread_cond_wait(&changed, &lock);
    waiting -= waits;
    pthread_mutex_unlock(&lock);
}

void counting_gate(bool closed)
{
    pthread_mutex_lock(&lock);
    is_closed = closed;
    closed_by = pthread_self();
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void counting_wait_at_gate(void)
{
    pthread_mutex_lock(&lock);
    while (waiting == 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

bool counting_is_at_gate(void)
{
    pthread_mutex_lock(&lock);
    bool is_one = waiting != 0;
    pthread_mutex_unlock(&lock);
    return is_one;
}

void gate_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&changed, NULL);
    is_closed = false;
    waiting = 0;
}
