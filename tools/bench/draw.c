/* draw.c - the threads of a process that draws. */
#include "bench/worker.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"

enum {
    CLOCK_TRIES = 1000,
    CLOCK_LOOKS_NS = 20 * 1000, /* the clock is read so often where draws are not timed singly */
    BATCH_LEAST = 64,           /* fewer draws are over too soon to be timed */
    BURST_DRAWS = 1000
};

struct worker_thread {
    const struct figure *figure;
    bool is_first;
    CK_SESSION_HANDLE session;
    const char *function; /* that answered rv */
    size_t size_bytes;
    int64_t slice_ns;
    CK_BYTE *bytes;
    unsigned short chance[3];
    int64_t samples[SLICE_SAMPLES];
    struct measured measured;
    CK_RV rv;
};

static int64_t clock_ns; /* what reading the clock costs */

static int64_t cost_of_clock(void)
{
    int64_t least_ns = NS_PER_S;
    for (int i = 0; i < CLOCK_TRIES; i++) {
        int64_t begin_ns = clock_exact_ns();
        int64_t took_ns = clock_exact_ns() - begin_ns;
        if (took_ns < least_ns)
            least_ns = took_ns;
    }
    return least_ns;
}

static void draw(struct worker_thread *thread)
{
    thread->rv = own.list->C_GenerateRandom(thread->session, thread->bytes, thread->size_bytes);
}

/* Adds what was measured besides. */
static void add(struct measured *to, const struct measured *more)
{
    if (more->timed > 0 && (to->timed == 0 || more->min_ns < to->min_ns))
        to->min_ns = more->min_ns;
    if (more->max_ns > to->max_ns)
        to->max_ns = more->max_ns;
    if (more->least_ns > 0 && (to->least_ns == 0 || more->least_ns < to->least_ns))
        to->least_ns = more->least_ns;
    to->calls += more->calls;
    to->spent_ns += more->spent_ns;
    to->timed += more->timed;
}

/* Keeps each of a slice's draws with the same chance. */
static void add_sample(struct worker_thread *thread, int64_t took_ns)
{
    uint64_t at = thread->measured.timed;
    if (took_ns < 0)
        took_ns = 0;
    add(&thread->measured, &(struct measured){.timed = 1, .min_ns = took_ns, .max_ns = took_ns});
    if (at >= SLICE_SAMPLES)
        at = (uint64_t)(erand48(thread->chance) * (double)thread->measured.timed);
    if (at < SLICE_SAMPLES)
        thread->samples[at] = took_ns;
}

/* Each draw by itself, at least one: a busy machine may let it wait until the time is over. */
static void time_each(struct worker_thread *thread, int64_t until_ns)
{
    int64_t before_ns = clock_exact_ns();
    do {
        draw(thread);
        int64_t took_ns = clock_exact_ns() - before_ns - clock_ns;
        add_sample(thread, took_ns);
        before_ns = clock_exact_ns();
    } while (thread->rv == CKR_OK && before_ns < until_ns);
}

/* Draws in batches, until the time is over or there were so many. */
static void time_all(struct worker_thread *thread, int64_t until_ns, uint64_t most)
{
    int64_t begin_ns = clock_exact_ns();
    int64_t now_ns = begin_ns;
    uint64_t draws = 0, batch = 1;
    while (thread->rv == CKR_OK && draws < most && (draws == 0 || now_ns < until_ns)) {
        int64_t before_ns = now_ns;
        for (uint64_t i = 0; i < batch && thread->rv == CKR_OK && draws < most; i++, draws++)
            draw(thread);
        now_ns = clock_exact_ns();
        if (batch >= BATCH_LEAST)
            add(&thread->measured,
                &(struct measured){.least_ns = (double)(now_ns - before_ns) / (double)batch});
        if (now_ns - before_ns < CLOCK_LOOKS_NS)
            batch *= 2;
        else if (batch > 1)
            batch /= 2;
    }
    thread->measured.calls += draws;
    thread->measured.spent_ns += now_ns - begin_ns;
}

/* A session for each draw. */
static void time_sessions(struct worker_thread *thread, int64_t until_ns)
{
    CK_SESSION_HANDLE outer = thread->session;
    do {
        int64_t begin_ns = clock_exact_ns();
        thread->rv =
            own.list->C_OpenSession(own.slot, CKF_SERIAL_SESSION, NULL, NULL, &thread->session);
        if (thread->rv != CKR_OK)
            break;
        int64_t opened_ns = clock_exact_ns();
        draw(thread);
        int64_t drawn_ns = clock_exact_ns();
        own.list->C_CloseSession(thread->session);
        bool first = thread->figure->operation == OPERATION_FIRST;
        thread->measured.calls++;
        thread->measured.spent_ns +=
            (first ? drawn_ns - opened_ns : clock_exact_ns() - begin_ns) - clock_ns;
    } while (thread->rv == CKR_OK && clock_exact_ns() < until_ns);
    thread->session = outer;
}

static void *work(void *context)
{
    struct worker_thread *thread = context;
    CK_BYTE *bytes = thread->bytes = malloc(thread->size_bytes);
    /* The first thread has the process's own session: a token may permit but one. */
    thread->session = own.session;
    thread->function = "C_OpenSession";
    if (thread->is_first)
        thread->rv = CKR_OK;
    else
        thread->rv =
            own.list->C_OpenSession(own.slot, CKF_SERIAL_SESSION, NULL, NULL, &thread->session);
    if (thread->rv != CKR_OK || bytes == NULL)
        return NULL;
    thread->function = "C_GenerateRandom";
    int64_t until_ns = clock_exact_ns() + thread->slice_ns;
    switch (thread->figure->operation) {
    case OPERATION_DRAW:
        if (thread->figure->size_bytes == 0) /* the load: half the time for each way */
            time_each(thread, until_ns - thread->slice_ns / 2);
        time_all(thread, until_ns, UINT64_MAX);
        break;
    case OPERATION_BURST:
        time_all(thread, until_ns, BURST_DRAWS);
        break;
    default:
        time_sessions(thread, until_ns);
    }
    if (!thread->is_first)
        own.list->C_CloseSession(thread->session);
    free(bytes);
    return NULL;
}

static void keep_samples(struct drawn *drawn, const struct worker_thread *thread)
{
    for (size_t i = 0; i < SLICE_SAMPLES && i < thread->measured.timed; i++) {
        if (drawn->sample_count < SAMPLES_MOST)
            drawn->samples[drawn->sample_count++] = thread->samples[i];
    }
}

void draw_figure(const struct order *order)
{
    clock_ns = cost_of_clock();
    static struct worker_thread threads[THREADS_MOST];
    const struct figure *figure = &figures[order->figure];
    bool is_load = order->figure == FIGURE_LOAD, worked = true;
    unsigned count = is_load ? own.load->threads : figure->threads;
    pthread_t handles[THREADS_MOST];
    for (unsigned i = 0; i < count; i++) {
        threads[i] = (struct worker_thread){
            .figure = figure,
            .is_first = i == 0,
            .slice_ns = order->slice_ns,
            .size_bytes = is_load ? own.load->size_bytes : figure->size_bytes,
        };
        if (pthread_create(&handles[i], NULL, work, &threads[i]) != 0)
            give_up_because("so many threads cannot be made");
    }
    for (unsigned i = 0; i < count; i++) {
        pthread_join(handles[i], NULL);
        worked = worked && threads[i].rv == CKR_OK;
        if (threads[i].rv != CKR_OK && is_load)
            give_up(threads[i].function, threads[i].rv);
    }
    for (unsigned i = 0; i < count && order->counts && worked; i++) {
        add(&own.drawn->figures[order->figure], &threads[i].measured);
        keep_samples(own.drawn, &threads[i]);
    }
}
