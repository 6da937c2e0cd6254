/* worker.c - a process that draws random bytes from one module, by several threads, for each figure. */
#include "bench/bench.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    CLOCK_TRIES = 1000,
    BATCH_NS = 20 * 1000, /* calls are timed together until they take so long */
    BURST_DRAWS = 1000,
    WARM_UPS = 6 /* in which the proxy learns how many bytes it can ask the token for */
};

static const int64_t SLICE_NS = 75 * NS_PER_MS; /* for a figure */
static const struct timespec PAUSE = {.tv_nsec = 500 * NS_PER_MS};

/* What the process that draws has loaded and opened. */
static struct {
    enum way way;
    struct drawn *drawn;
    CK_FUNCTION_LIST *list;
    CK_SLOT_ID slot;
    CK_SESSION_HANDLE session; /* open all the time */
    int64_t clock_ns;          /* what reading the clock costs */
} own;

/* The first one has the process's own session, because a token may permit but one. */
static struct worker_thread {
    const struct figure *figure;
    pthread_t handle;
    CK_SESSION_HANDLE session; /* 0: none could be opened */
    CK_RV rv;
    CK_BYTE *bytes;
    struct measured measured;
    uint64_t times[TIMES_PLACES];
} threads[THREADS_MOST];

/* Ends the process, and leaves a message that says why. */
#define give_up(...) (message_set(&own.drawn->message, __VA_ARGS__), _exit(EXIT_FAILURE))

static int64_t cost_of_clock(void)
{
    int64_t least_ns = NS_PER_S;
    for (int i = 0; i < CLOCK_TRIES; i++) {
        int64_t begin_ns = clock_exact_ns();
        int64_t took_ns = clock_exact_ns() - begin_ns;
        least_ns = took_ns < least_ns ? took_ns : least_ns;
    }
    return least_ns;
}

static CK_RV open_session(CK_SESSION_HANDLE *session)
{
    return own.list->C_OpenSession(own.slot, CKF_SERIAL_SESSION, NULL, NULL, session);
}

/* Draws, in a session of its own if cycles. */
static CK_RV draw(const struct worker_thread *thread, bool cycles)
{
    CK_SESSION_HANDLE session = thread->session;
    CK_RV rv = cycles ? open_session(&session) : CKR_OK;
    if (rv != CKR_OK)
        return rv;
    rv = own.list->C_GenerateRandom(session, thread->bytes, thread->figure->size_bytes);
    if (cycles)
        own.list->C_CloseSession(session);
    return rv;
}

/* Adds what was measured besides. */
static void add(struct measured *to, const struct measured *more)
{
    to->calls += more->calls;
    to->spent_ns += more->spent_ns;
}

static void count_time(uint64_t times[TIMES_PLACES], int64_t ns)
{
    times[ns > 0 ? (size_t)(log2((double)ns + 1) * TIMES_STEPS) : 0]++;
}

/* At least one call, because on a busy machine a thread may wait until its time is over. */
static void time_calls(struct worker_thread *thread)
{
    enum operation operation = thread->figure->operation;
    uint64_t most = operation == OPERATION_BURST ? BURST_DRAWS : UINT64_MAX, batch = 1;
    int64_t now_ns, until_ns = clock_exact_ns() + SLICE_NS;
    do {
        struct measured measured = {0};
        int64_t before_ns = clock_exact_ns();
        for (; measured.calls < batch && thread->rv == CKR_OK; measured.calls++)
            thread->rv = draw(thread, operation == OPERATION_CYCLE);
        now_ns = clock_exact_ns();
        measured.spent_ns = now_ns - before_ns - own.clock_ns;
        add(&thread->measured, &measured);
        if (operation == OPERATION_EACH)
            count_time(thread->times, measured.spent_ns);
        else if (measured.spent_ns < BATCH_NS)
            batch *= 2;
        if (batch > most - thread->measured.calls)
            batch = most - thread->measured.calls;
    } while (thread->rv == CKR_OK && batch > 0 && now_ns < until_ns);
}

static void *work(void *context)
{
    struct worker_thread *thread = context;
    bool is_first = thread == threads;
    thread->bytes = malloc(thread->figure->size_bytes);
    if (is_first)
        thread->session = own.session;
    else
        thread->rv = open_session(&thread->session);
    if (thread->bytes == NULL)
        thread->rv = CKR_HOST_MEMORY;
    if (thread->rv == CKR_OK)
        time_calls(thread);
    if (!is_first && thread->session != 0)
        own.list->C_CloseSession(thread->session);
    free(thread->bytes);
    return NULL;
}

/* Draws, and adds the result to own.drawn if it counts and all threads could draw. */
static void draw_figure(int index, bool counts)
{
    const struct figure *figure = &figures[index];
    const struct worker_thread *end = threads + figure->threads;
    own.clock_ns = cost_of_clock();
    if (figure->operation == OPERATION_BURST)
        nanosleep(&PAUSE, NULL);
    for (struct worker_thread *thread = threads; thread < end; thread++) {
        *thread = (struct worker_thread){.figure = figure};
        if (pthread_create(&thread->handle, NULL, work, thread) != 0)
            give_up("so many threads cannot be made");
    }
    for (struct worker_thread *thread = threads; thread < end; thread++) {
        pthread_join(thread->handle, NULL);
        if (thread->rv != CKR_OK && index == FIGURE_LOAD)
            give_up("%s answers %s", thread->session != 0 ? "C_GenerateRandom" : "C_OpenSession",
                    token_code(thread->rv));
        counts = counts && thread->rv == CKR_OK;
    }
    for (struct worker_thread *thread = threads; thread < end && counts; thread++) {
        add(&own.drawn->figures[index], &thread->measured);
        for (size_t i = 0; i < TIMES_PLACES; i++)
            own.drawn->times[i] += thread->times[i];
    }
}

/* The first token that draws; not each one has to be initialised for that. Each round finds the same one. */
static void find_slot(void)
{
    CK_SLOT_ID slots[SLOTS_MOST] = {0};
    CK_ULONG count;
    CK_BYTE bytes[16];
    const char *failed = "C_GetSlotList";
    CK_RV failure = token_slots(own.list, slots, &count);
    for (CK_ULONG i = 0; i < count; i++) {
        CK_TOKEN_INFO info = {0};
        own.slot = slots[i];
        if (own.list->C_GetTokenInfo(own.slot, &info) != CKR_OK || (info.flags & CKF_RNG) == 0)
            continue;
        token_text(own.drawn->label, info.label, sizeof info.label);
        failed = "C_OpenSession";
        failure = open_session(&own.session);
        if (failure == CKR_OK) {
            failed = "C_GenerateRandom";
            failure = own.list->C_GenerateRandom(own.session, bytes, sizeof bytes);
        }
        if (failure == CKR_OK)
            return;
    }
    if (failure != CKR_OK)
        give_up("%s answers %s", failed, token_code(failure));
    give_up("there is no token that makes random bytes; p11-proxy check says what to do");
}

/* In a child. */
static void measure_all(void *context)
{
    (void)context;
    const struct config *config = bench.config;
    bool is_straight = own.way == STRAIGHT, locks;
    struct message message;
    if (!token_start(&own.list, is_straight ? config->target : bench.module_path,
                     is_straight ? config->target_init : NULL, &locks, &message))
        give_up("%s", message.text);
    if (!locks && figures[FIGURE_LOAD].threads > 1)
        give_up("it does not work with several threads");
    if (is_straight && token_is_started(bench.module_path))
        give_up("it loads the proxy in turn, so there is nothing to compare; p11-proxy "
                "check says what to do");
    find_slot();
    for (int i = 0; i < WARM_UPS && !is_straight; i++)
        draw_figure(FIGURE_LOAD, /* counts= */ false);
    /* Where several threads do not work, the figures for them are left out. */
    for (int i = 0; i < FIGURES; i++)
        if (locks || figures[i].threads == 1)
            draw_figure(i, /* counts= */ true);
    own.list->C_Finalize(NULL);
}

bool measure_round(enum way way, struct drawn *drawn)
{
    own.way = way;
    own.drawn = drawn;
    message_set(&drawn->message, "it ended the process that had loaded it");
    return in_child(measure_all, NULL) == 0;
}
