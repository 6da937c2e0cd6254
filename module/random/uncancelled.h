/* uncancelled.h - a call that has something to undo must come to its end, though its thread is cancelled. */
#ifndef P11_PROXY_UNCANCELLED_H
#define P11_PROXY_UNCANCELLED_H

#include <pthread.h>

static inline int cancellation_off(void)
{
    int former = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &former);
    return former;
}

static inline void cancellation_back(const int *former)
{
    int disabled;
    pthread_setcancelstate(*former, &disabled);
}

/* At the head of a function: until it returns, a request to cancel its thread waits. */
#define UNCANCELLED                                                                                \
    int cancellation __attribute__((cleanup(cancellation_back), unused)) = cancellation_off()

#endif
