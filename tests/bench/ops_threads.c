/* ops_threads.c - the same draws by many threads at once, each in a session of its own. */
#include <pthread.h>
#include <stdlib.h>

#include "bench.h"

enum {
    DRAW_BYTES = 32,
    DRAWS = 20000, /* of each thread in one go, longer than it takes all to get going */
    DRAWS_OF_ALL =
        200 * 1000, /* less than half of a pool of 16 MiB, so that nothing refills it meanwhile */
    WARM_DRAWS = 10 * DRAWS /* by each: the pool grows when it is empty */
};

static const int64_t REFILL_NS = 200 * 1000 * 1000; /* SoftHSM fills 16 MiB in less */

struct drawer {
    pthread_t thread;
    struct subject *subject;
    CK_SESSION_HANDLE session;
    long draws;
    pthread_barrier_t *start;
    double ns;
};

static void prepare(struct subject *s)
{
    s->fn = load_module(s->module);
    initialize(s->fn);
    open_sessions(s, find_slot(s->fn, CKF_RNG | CKF_TOKEN_INITIALIZED, 0), s->argument);
}

static void prepare_floor(struct subject *s)
{
    s->count = s->argument;
}

static void *draw(void *context)
{
    struct drawer *d = context;
    CK_BYTE bytes[DRAW_BYTES];
    CK_RV rv = CKR_OK;
    pthread_barrier_wait(d->start);
    int64_t begin_ns = now_ns();
    if (d->subject->fn == NULL)
        draw_from_floor(bytes, sizeof bytes, d->draws);
    else
        for (long i = 0; i < d->draws && rv == CKR_OK; i++)
            rv = d->subject->fn->C_GenerateRandom(d->session, bytes, sizeof bytes);
    d->ns = (double)(now_ns() - begin_ns) / (double)d->draws;
    must("C_GenerateRandom", rv);
    return NULL;
}

/* The mean of what one draw took in each of the threads. */
static double in_threads(struct subject *s, long times)
{
    struct drawer *drawers = calloc((size_t)s->count, sizeof *drawers);
    pthread_barrier_t start;
    double sum_ns = 0;
    if (times > DRAWS_OF_ALL / s->count)
        times = DRAWS_OF_ALL / s->count;
    pthread_barrier_init(&start, NULL, (unsigned)s->count);
    for (long i = 0; i < s->count; i++) {
        drawers[i] = (struct drawer){.subject = s, .draws = times, .start = &start};
        if (s->sessions != NULL)
            drawers[i].session = s->sessions[i];
        if (pthread_create(&drawers[i].thread, NULL, draw, &drawers[i]) != 0)
            fail("cannot start a thread", "there are too many");
    }
    for (long i = 0; i < s->count; i++) {
        pthread_join(drawers[i].thread, NULL);
        sum_ns += drawers[i].ns;
    }
    pthread_barrier_destroy(&start);
    free(drawers);
    return sum_ns / (double)s->count;
}

const struct op ops_threads[] = {{"threads", "draws of 32 bytes by N threads at once", prepare,
                                  NULL, in_threads, DRAWS, REFILL_NS, WARM_DRAWS},
                                 {"floor-threads", "the floor by N threads at once", prepare_floor,
                                  NULL, in_threads, DRAWS, 0, DRAWS},
                                 {0}};
