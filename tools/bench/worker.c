/* worker.c - a process that draws random bytes from one module, by several threads, for each figure. */
#include "bench/bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "counters/counters.h"

enum {
    SLOTS_MOST = 64,
    CLOCK_TRIES = 1000,
    CLOCK_LOOKS_NS = 20 * 1000, /* the clock is read so often where draws are not timed singly */
    BATCH_LEAST = 64,           /* fewer draws are over too soon to be timed */
    BURST_DRAWS = 1000,
    WARM_UPS = 3 /* in which the proxy learns how many bytes it can ask the token for */
};

/* The load has one long slice, each figure a short one. */
static const int64_t LOAD_NS = 150 * NS_PER_MS, FIGURE_NS = 20 * NS_PER_MS;
static const struct timespec PAUSE = {.tv_nsec = 500 * NS_PER_MS};

struct worker_thread {
    unsigned figure;
    int64_t slice_ns;
    pthread_t handle;
    CK_SESSION_HANDLE session;
    CK_RV rv;
    const char *function; /* that answered rv */
    size_t size_bytes;
    CK_BYTE *bytes;
    struct measured measured;
    struct times times;
};

/* What the process that draws has loaded and opened. */
static struct {
    CK_FUNCTION_LIST *list;
    CK_SLOT_ID slot;
    CK_SESSION_HANDLE session; /* open all the time */
    struct drawn *drawn;
    int64_t clock_ns; /* what reading the clock costs */
} own;

/* The first one has the process's own session, because a token may permit but one. */
static struct worker_thread threads[THREADS_MOST];

/* These two leave a message that says why the process ends, and end it. */
_Noreturn static void give_up_because(const char *text)
{
    message_set(&own.drawn->message, "%s", text);
    _exit(EXIT_FAILURE);
}

_Noreturn static void give_up(const char *function, CK_RV rv)
{
    message_set(&own.drawn->message, "%s answers %s", function, token_code(rv));
    _exit(EXIT_FAILURE);
}

static CK_RV open_session(CK_SESSION_HANDLE *session)
{
    return own.list->C_OpenSession(own.slot, CKF_SERIAL_SESSION, NULL, NULL, session);
}

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

static void draw(struct worker_thread *thread)
{
    thread->rv = own.list->C_GenerateRandom(thread->session, thread->bytes, thread->size_bytes);
}

/* Each draw by itself, at least one: a busy machine may let it wait until the time is over. */
static void time_each(struct worker_thread *thread, int64_t until_ns)
{
    int64_t before_ns = clock_exact_ns();
    do {
        draw(thread);
        times_add(&thread->times, clock_exact_ns() - before_ns - own.clock_ns);
        before_ns = clock_exact_ns();
    } while (thread->rv == CKR_OK && before_ns < until_ns);
}

/* Adds what was measured besides. */
static void add(struct measured *to, const struct measured *more)
{
    if (more->least_ns > 0 && (to->least_ns == 0 || more->least_ns < to->least_ns))
        to->least_ns = more->least_ns;
    to->calls += more->calls;
    to->spent_ns += more->spent_ns;
}

/* Draws in batches, until the time is over or there were so many. */
static void time_all(struct worker_thread *thread, int64_t until_ns, uint64_t most)
{
    int64_t now_ns = clock_exact_ns();
    uint64_t draws = 0, batch = 1;
    while (thread->rv == CKR_OK && draws < most && (draws == 0 || now_ns < until_ns)) {
        int64_t before_ns = now_ns;
        uint64_t drawn_before = draws;
        for (uint64_t i = 0; i < batch && thread->rv == CKR_OK && draws < most; i++, draws++)
            draw(thread);
        now_ns = clock_exact_ns();
        int64_t took_ns = now_ns - before_ns;
        double each_ns = batch >= BATCH_LEAST ? (double)took_ns / (double)batch : 0;
        add(&thread->measured, &(struct measured){draws - drawn_before, took_ns, each_ns});
        if (took_ns < CLOCK_LOOKS_NS)
            batch *= 2;
        else if (batch > 1)
            batch /= 2;
    }
}

/* A session for each draw. */
static void time_sessions(struct worker_thread *thread, int64_t until_ns, bool draw_alone)
{
    CK_SESSION_HANDLE outer = thread->session;
    int64_t end_ns = 0;
    while (thread->rv == CKR_OK && end_ns < until_ns) {
        int64_t begin_ns = clock_exact_ns();
        thread->rv = open_session(&thread->session);
        if (thread->rv != CKR_OK)
            break;
        begin_ns = draw_alone ? clock_exact_ns() : begin_ns;
        draw(thread);
        end_ns = clock_exact_ns();
        own.list->C_CloseSession(thread->session);
        end_ns = draw_alone ? end_ns : clock_exact_ns();
        add(&thread->measured, &(struct measured){1, end_ns - begin_ns - own.clock_ns, 0});
    }
    thread->session = outer;
}

static void *work(void *context)
{
    struct worker_thread *thread = context;
    enum operation operation = figures[thread->figure].operation;
    bool is_first = thread == threads;
    thread->function = "C_OpenSession";
    thread->session = own.session;
    thread->rv = is_first ? CKR_OK : open_session(&thread->session);
    if (thread->rv == CKR_OK)
        thread->bytes = malloc(thread->size_bytes);
    if (thread->bytes == NULL)
        return NULL;
    thread->function = "C_GenerateRandom";
    int64_t until_ns = clock_exact_ns() + thread->slice_ns;
    if (thread->figure == FIGURE_LOAD) /* half the time for each way */
        time_each(thread, until_ns - thread->slice_ns / 2);
    if (operation == OPERATION_CYCLE || operation == OPERATION_FIRST)
        time_sessions(thread, until_ns, operation == OPERATION_FIRST);
    else
        time_all(thread, until_ns, operation == OPERATION_BURST ? BURST_DRAWS : UINT64_MAX);
    if (!is_first)
        own.list->C_CloseSession(thread->session);
    free(thread->bytes);
    return NULL;
}

/* Draws, and adds the result to own.drawn if it counts and all threads could draw. */
static void draw_figure(unsigned index, const struct request *request, bool counts)
{
    const struct figure *figure = &figures[index];
    bool is_load = index == FIGURE_LOAD, worked = true;
    unsigned long count = is_load ? request->threads : figure->threads;
    own.clock_ns = cost_of_clock();
    if (figure->operation == OPERATION_BURST)
        nanosleep(&PAUSE, NULL);
    for (struct worker_thread *thread = threads; thread < threads + count; thread++) {
        *thread = (struct worker_thread){.figure = index,
                                         .slice_ns = is_load ? LOAD_NS : FIGURE_NS,
                                         .size_bytes =
                                             is_load ? request->size_bytes : figure->size_bytes};
        if (pthread_create(&thread->handle, NULL, work, thread) != 0)
            give_up_because("so many threads cannot be made");
    }
    for (struct worker_thread *thread = threads; thread < threads + count; thread++) {
        pthread_join(thread->handle, NULL);
        worked = worked && thread->rv == CKR_OK;
        if (thread->rv != CKR_OK && is_load)
            give_up(thread->function, thread->rv);
    }
    for (unsigned long i = 0; i < count && counts && worked; i++) {
        add(&own.drawn->figures[index], &threads[i].measured);
        times_merge(&own.drawn->times, &threads[i].times);
    }
}

/* Adds the draws of this process until now, or takes them off: sign is 1 or -1. */
static void count_draws(int sign)
{
    uint64_t factor = (uint64_t)sign; /* modulo 2^64 */
    struct counted_list list;
    pid_t pid = getpid();
    counters_find(&list, &pid, 1, /* complaints= */ NULL);
    for (size_t i = 0; i < list.count; i++) {
        const struct statistics *counters = list.proxies[i].counters;
        for (size_t slot = 0; slot < counters->slot_count; slot++) {
            const struct statistics_calls *calls = &counters->slots[slot].calls;
            uint64_t pool_draws = counters->slots[slot].pool.pool_draws;
            own.drawn->pool_draws += factor * pool_draws;
            own.drawn->all_draws +=
                factor * (pool_draws + calls->token_draws + calls->failed_draws);
        }
    }
    counters_free(&list);
}

/* The first initialised token with a random number generator, else the first token that draws without being
 * initialised. Each round finds the same one. */
static void find_slot(void)
{
    static const CK_FLAGS wanted[] = {CKF_RNG | CKF_TOKEN_INITIALIZED, CKF_RNG};
    CK_SLOT_ID slots[SLOTS_MOST] = {0};
    CK_ULONG count = SLOTS_MOST;
    CK_BYTE bytes[16];
    CK_RV rv = own.list->C_GetSlotList(CK_TRUE, slots, &count);
    if (rv != CKR_OK)
        give_up("C_GetSlotList", rv);
    for (int pass = 0; pass < 2; pass++) {
        for (CK_ULONG i = 0; i < count; i++) {
            CK_TOKEN_INFO info = {0};
            const char *function = "C_OpenSession";
            own.slot = slots[i];
            if (own.list->C_GetTokenInfo(own.slot, &info) != CKR_OK ||
                (info.flags & wanted[0]) != wanted[pass])
                continue;
            token_text(own.drawn->label, info.label, sizeof info.label);
            rv = open_session(&own.session);
            if (rv == CKR_OK) {
                function = "C_GenerateRandom";
                rv = own.list->C_GenerateRandom(own.session, bytes, sizeof bytes);
            }
            if (rv == CKR_OK)
                return;
            if (pass == 0)
                give_up(function, rv);
        }
    }
    give_up_because("there is no token that makes random bytes; p11-proxy check says what to do");
}

/* There are modules that write their table anew each time that they are asked for it. */
static void check_delay(int64_t delay_ns)
{
    static CK_BYTE bytes[4096]; /* too large for the pool */
    int64_t begin_ns = clock_exact_ns();
    own.list->C_GenerateRandom(own.session, bytes, sizeof bytes);
    if (clock_exact_ns() - begin_ns < delay_ns)
        give_up_because("its C_GenerateRandom cannot be made slower");
}

/* In a child. */
static void measure_all(void *context)
{
    const struct subject *subject = context;
    const struct request *request = subject->request;
    struct token_module module;
    struct message message;
    bool locks;
    own.drawn = subject->drawn;
    dup2(STDERR_FILENO, STDOUT_FILENO); /* for what the module prints */
    if (request->simulate_ns > 0 && (token_load(&module, subject->config->target, &message) != 0 ||
                                     !simulate_delay(&module, request->simulate_ns)))
        give_up_because("its C_GenerateRandom cannot be made slower");
    if (token_load(&module, subject->module, &message) != 0)
        give_up_because(message.text);
    CK_RV rv = token_start(&module, subject->way == STRAIGHT ? subject->config->target_init : NULL,
                           &locks);
    if (rv != CKR_OK)
        give_up("C_Initialize", rv);
    if (!locks && request->threads > 1)
        give_up_because("it does not work with several threads");
    if (subject->way == STRAIGHT && token_is_started(request->common.module_path))
        give_up_because("it loads the proxy in turn, so there is nothing to compare; p11-proxy "
                        "check says what to do");
    own.list = module.list;
    find_slot();
    if (request->simulate_ns > 0)
        check_delay(request->simulate_ns);
    for (int i = 0; i < WARM_UPS && subject->way == PROXIED; i++)
        draw_figure(FIGURE_LOAD, request, /* counts= */ false);
    count_draws(-1);
    draw_figure(FIGURE_LOAD, request, /* counts= */ true);
    count_draws(1);
    /* Where several threads do not work, the figures for them are left out. */
    for (unsigned i = FIGURE_LOAD + 1; i < FIGURES; i++)
        if (locks || figures[i].threads <= 1)
            draw_figure(i, request, /* counts= */ true);
    module.list->C_Finalize(NULL);
}

bool measure_round(struct subject *subject)
{
    message_set(&subject->drawn->message, "it ended the process that had loaded it");
    return in_child(measure_all, subject) == 0;
}
