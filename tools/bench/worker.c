/* worker.c - a process that draws random bytes from one module, by several threads, when it is ordered to. */
#include "bench/bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    SLOTS_MOST = 64,
    CLOCK_TRIES = 1000,
    CLOCK_LOOKS_NS = 20 * 1000, /* the clock is read so often where draws are not timed singly */
    BATCH_LEAST = 64,           /* fewer draws are over too soon to be timed */
    BURST_DRAWS = 1000
};

struct order {
    unsigned figure;
    int64_t slice_ns;
    bool counts;
};

struct worker_thread {
    const struct order *order;
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
    int64_t slice_ns = thread->order->slice_ns;
    enum operation operation = figures[thread->order->figure].operation;
    bool is_first = thread == threads;
    thread->function = "C_OpenSession";
    thread->session = own.session;
    thread->rv = is_first ? CKR_OK : open_session(&thread->session);
    if (thread->rv == CKR_OK)
        thread->bytes = malloc(thread->size_bytes);
    if (thread->bytes == NULL)
        return NULL;
    thread->function = "C_GenerateRandom";
    int64_t until_ns = clock_exact_ns() + slice_ns;
    if (thread->order->figure == FIGURE_LOAD) /* half the time for each way */
        time_each(thread, until_ns - slice_ns / 2);
    if (operation == OPERATION_CYCLE || operation == OPERATION_FIRST)
        time_sessions(thread, until_ns, operation == OPERATION_FIRST);
    else
        time_all(thread, until_ns, operation == OPERATION_BURST ? BURST_DRAWS : UINT64_MAX);
    if (!is_first)
        own.list->C_CloseSession(thread->session);
    free(thread->bytes);
    return NULL;
}

/* Draws as ordered, and adds the result to own.drawn if it counts and all threads could draw. */
static void draw_figure(const struct order *order, const struct request *request)
{
    const struct figure *figure = &figures[order->figure];
    bool is_load = order->figure == FIGURE_LOAD, worked = true;
    unsigned long count = is_load ? request->threads : figure->threads;
    own.clock_ns = cost_of_clock();
    for (struct worker_thread *thread = threads; thread < threads + count; thread++) {
        *thread = (struct worker_thread){
            .order = order, .size_bytes = is_load ? request->size_bytes : figure->size_bytes};
        if (pthread_create(&thread->handle, NULL, work, thread) != 0)
            give_up_because("so many threads cannot be made");
    }
    for (struct worker_thread *thread = threads; thread < threads + count; thread++) {
        pthread_join(thread->handle, NULL);
        worked = worked && thread->rv == CKR_OK;
        if (thread->rv != CKR_OK && is_load)
            give_up(thread->function, thread->rv);
    }
    for (unsigned long i = 0; i < count && order->counts && worked; i++) {
        add(&own.drawn->figures[order->figure], &threads[i].measured);
        times_merge(&own.drawn->times, &threads[i].times);
    }
}

/* Opens a session with a token, and sees whether it draws. */
static CK_RV try_slot(CK_SLOT_ID slot, const char **function)
{
    CK_BYTE bytes[16];
    own.slot = slot;
    *function = "C_OpenSession";
    CK_RV rv = open_session(&own.session);
    if (rv != CKR_OK)
        return rv;
    *function = "C_GenerateRandom";
    rv = own.list->C_GenerateRandom(own.session, bytes, sizeof bytes);
    if (rv != CKR_OK)
        own.list->C_CloseSession(own.session);
    return rv;
}

/* The first initialised token with a random number generator, else the first token that draws without being
 * initialised. The other process finds the same one. */
static void find_slot(void)
{
    CK_SLOT_ID slots[SLOTS_MOST] = {0};
    CK_ULONG count = SLOTS_MOST;
    const char *function;
    CK_RV rv = own.list->C_GetSlotList(CK_TRUE, slots, &count);
    if (rv != CKR_OK)
        give_up("C_GetSlotList", rv);
    for (CK_FLAGS initialised = CKF_TOKEN_INITIALIZED;; initialised = 0) {
        for (CK_ULONG i = 0; i < count; i++) {
            CK_TOKEN_INFO info = {0};
            if (own.list->C_GetTokenInfo(slots[i], &info) != CKR_OK ||
                (info.flags & CKF_RNG) == 0 || (info.flags & CKF_TOKEN_INITIALIZED) != initialised)
                continue;
            token_text(own.drawn->label, info.label, sizeof info.label);
            rv = try_slot(slots[i], &function);
            if (rv == CKR_OK)
                return;
            if (initialised != 0)
                give_up(function, rv);
        }
        if (initialised == 0)
            give_up_because("there is no token that makes random bytes; p11-proxy "
                            "check says what to do");
    }
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

static void obey(enum way way, const struct request *request, const struct config *config,
                 const char *path, int orders)
{
    struct token_module module;
    struct message message;
    struct order order;
    bool locks;
    if (request->simulate_ns > 0 && (token_load(&module, config->target, &message) != 0 ||
                                     !simulate_delay(&module, request->simulate_ns)))
        give_up_because("its C_GenerateRandom cannot be made slower");
    if (token_load(&module, path, &message) != 0)
        give_up_because(message.text);
    CK_RV rv = token_start(&module, way == STRAIGHT ? config->target_init : NULL, &locks);
    if (rv != CKR_OK)
        give_up("C_Initialize", rv);
    if (!locks && request->threads > 1)
        give_up_because("it does not work with several threads");
    if (way == STRAIGHT && token_is_started(request->common.module_path))
        give_up_because("it loads the proxy in turn, so there is nothing to compare; p11-proxy "
                        "check says what to do");
    own.list = module.list;
    find_slot();
    if (request->simulate_ns > 0)
        check_delay(request->simulate_ns);
    while (read(orders, &order, sizeof order) == sizeof order) {
        /* Where several threads do not work, the figures for them are left out. */
        if (locks || figures[order.figure].threads <= 1)
            draw_figure(&order, request);
        if (write(orders, "", 1) != 1)
            break;
    }
    module.list->C_Finalize(NULL);
    _exit(EXIT_SUCCESS);
}

bool worker_start(struct worker *worker, enum way way, const struct request *request,
                  const struct config *config, struct message *message)
{
    int ends[2];
    void *memory = mmap(NULL, sizeof *worker->drawn, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *worker =
        (struct worker){.module = way == STRAIGHT ? config->target : request->common.module_path};
    if (memory != MAP_FAILED && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0) {
        own.drawn = worker->drawn = memory;
        worker->socket = ends[0];
        fflush(NULL);
        worker->pid = fork();
        if (worker->pid == 0) {
            close(ends[0]);
            dup2(STDERR_FILENO, STDOUT_FILENO); /* for what the module prints */
            obey(way, request, config, worker->module, ends[1]);
        }
        close(ends[1]);
    }
    if (worker->pid <= 0)
        message_set(message, "no process can be made: %m");
    return worker->pid > 0;
}

bool worker_measure(const struct worker *worker, unsigned figure, int64_t slice_ns, bool counts)
{
    struct order order = {.figure = figure, .slice_ns = slice_ns, .counts = counts};
    char done;
    if (send(worker->socket, &order, sizeof order, MSG_NOSIGNAL) == sizeof order &&
        read(worker->socket, &done, 1) == 1)
        return true;
    if (worker->drawn->message.text[0] == '\0')
        message_set(&worker->drawn->message, "it ended the process that had loaded it");
    return false;
}

void worker_stop(struct worker *worker)
{
    if (worker->pid <= 0)
        return;
    shutdown(worker->socket, SHUT_WR); /* a copy in the other process does not count */
    waitpid(worker->pid, NULL, 0);
    close(worker->socket);
}
