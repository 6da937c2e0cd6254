/* worker.c - a process that draws random bytes from one module, when it is ordered to. */
#include "bench/bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    SLOTS_MOST = 64,
    CLOCK_TRIES = 1000,
    CLOCK_LOOKS_NS = 20 * 1000, /* the clock is read so often where draws are not timed singly */
    BATCH_LEAST = 64,           /* so many draws tell what one takes */
    BURST_DRAWS = 1000
};

struct order {
    unsigned figure;
    int64_t slice_ns;
    bool counts;
};

/* What the process has loaded and opened. */
static struct {
    CK_FUNCTION_LIST *list;
    CK_SLOT_ID slot;
    CK_SESSION_HANDLE session; /* open all the time, and the first thread's */
    int64_t clock_ns;          /* what reading the clock costs */
    const struct load *load;
    struct drawn *drawn;
} own;

struct worker_thread {
    const struct figure *figure;
    CK_SESSION_HANDLE session;
    size_t size_bytes;
    int64_t slice_ns;
    CK_BYTE *bytes;
    struct latencies latencies;
    struct measured measured;
    CK_RV rv;
};

/* Says why the process ends, and ends it. */
static void give_up(const char *function, CK_RV rv)
{
    message_set(&own.drawn->message, "%s answers %s", function, token_code(rv));
    _exit(EXIT_FAILURE);
}

static void give_up_because(const char *text)
{
    message_set(&own.drawn->message, "%s", text);
    _exit(EXIT_FAILURE);
}

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

static void add(struct worker_thread *thread, uint64_t calls, int64_t spent_ns)
{
    thread->measured.calls += calls;
    thread->measured.spent_ns += spent_ns > 0 ? spent_ns : 0;
}

/* Each draw by itself, at least one: a busy machine may let it wait until the time is over. */
static void time_each(struct worker_thread *thread, int64_t until_ns)
{
    int64_t before_ns = clock_exact_ns();

    do {
        draw(thread);
        int64_t after_ns = clock_exact_ns();
        int64_t took_ns = after_ns - before_ns - own.clock_ns;
        latencies_add(&thread->latencies, took_ns > 0 ? took_ns : 0);
        before_ns = after_ns;
    } while (thread->rv == CKR_OK && before_ns < until_ns);
}

static void keep_least(struct measured *measured, double call_ns)
{
    if (call_ns > 0 && (measured->least_ns == 0 || call_ns < measured->least_ns))
        measured->least_ns = call_ns;
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
            keep_least(&thread->measured, (double)(now_ns - before_ns) / (double)batch);
        if (now_ns - before_ns < CLOCK_LOOKS_NS)
            batch *= 2;
        else if (batch > 1)
            batch /= 2;
    }
    add(thread, draws, now_ns - begin_ns - own.clock_ns);
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
        add(thread, 1, (first ? drawn_ns - opened_ns : clock_exact_ns() - begin_ns) - own.clock_ns);
    } while (thread->rv == CKR_OK && clock_exact_ns() < until_ns);
    thread->session = outer;
}

static void *work(void *context)
{
    struct worker_thread *thread = context;
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
    return NULL;
}

/* The first thread has the process's own session: a token may permit but one. */
static CK_RV prepare(struct worker_thread *threads, unsigned count, const struct figure *figure,
                     int64_t slice_ns)
{
    CK_RV rv = CKR_OK;

    for (unsigned i = 0; i < count && rv == CKR_OK; i++) {
        struct worker_thread *thread = &threads[i];
        thread->figure = figure;
        thread->slice_ns = slice_ns;
        thread->size_bytes = figure->size_bytes != 0 ? figure->size_bytes : own.load->size_bytes;
        thread->bytes = malloc(thread->size_bytes);
        thread->session = own.session;
        if (thread->bytes == NULL)
            rv = CKR_HOST_MEMORY;
        else if (i > 0)
            rv =
                own.list->C_OpenSession(own.slot, CKF_SERIAL_SESSION, NULL, NULL, &thread->session);
        if (rv != CKR_OK)
            thread->session = own.session;
    }
    return rv;
}

static void run(struct worker_thread *threads, unsigned count)
{
    pthread_t handles[THREADS_MOST];
    unsigned started = 0;

    while (started < count && pthread_create(&handles[started], NULL, work, &threads[started]) == 0)
        started++;
    for (unsigned i = 0; i < started; i++)
        pthread_join(handles[i], NULL);
    if (started < count)
        give_up_because("so many threads cannot be made");
}

static void measure(const struct order *order)
{
    static struct worker_thread threads[THREADS_MOST];
    const struct figure *figure = &figures[order->figure];
    unsigned count = figure->size_bytes != 0 ? figure->threads : own.load->threads;
    bool is_load = order->figure == FIGURE_LOAD;

    memset(threads, 0, count * sizeof threads[0]);
    CK_RV rv = prepare(threads, count, figure, order->slice_ns);
    if (rv != CKR_OK && is_load)
        give_up("C_OpenSession", rv);
    if (rv == CKR_OK)
        run(threads, count);
    for (unsigned i = 0; i < count; i++) {
        if (threads[i].rv != CKR_OK && is_load)
            give_up("C_GenerateRandom", threads[i].rv);
        rv = rv != CKR_OK ? rv : threads[i].rv;
        if (threads[i].session != own.session)
            own.list->C_CloseSession(threads[i].session);
        free(threads[i].bytes);
    }
    for (unsigned i = 0; i < count && order->counts && rv == CKR_OK; i++) {
        latencies_join(&own.drawn->latencies, &threads[i].latencies);
        own.drawn->figures[order->figure].calls += threads[i].measured.calls;
        own.drawn->figures[order->figure].spent_ns += threads[i].measured.spent_ns;
        keep_least(&own.drawn->figures[order->figure], threads[i].measured.least_ns);
    }
}

/* Opens a session with a token, and sees whether it draws. */
static CK_RV try_slot(CK_SLOT_ID slot, const char **function)
{
    CK_BYTE bytes[16];
    CK_RV rv = own.list->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &own.session);

    *function = "C_OpenSession";
    if (rv != CKR_OK)
        return rv;
    own.slot = slot;
    *function = "C_GenerateRandom";
    rv = own.list->C_GenerateRandom(own.session, bytes, sizeof bytes);
    if (rv != CKR_OK)
        own.list->C_CloseSession(own.session);
    return rv;
}

/* The first initialised token with a random number generator, else the first token that draws without being
 * initialised. The other process finds the same one. */
static void find_slot(const char *proxy)
{
    CK_SLOT_ID slots[SLOTS_MOST] = {0};
    CK_ULONG count = SLOTS_MOST;
    const char *function;
    CK_RV rv = own.list->C_GetSlotList(CK_TRUE, slots, &count);

    if (rv != CKR_OK)
        give_up("C_GetSlotList", rv);
    if (proxy != NULL && token_is_started(proxy))
        give_up_because("it loads the proxy in turn, so there is nothing to compare; p11-proxy "
                        "check says what to do");
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
            give_up_because("there is no token that makes random bytes");
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

static void load_module(struct token_module *module, const struct worker_setup *setup)
{
    struct message message;

    if (setup->load.simulate_ns > 0 && (token_load(module, setup->target, &message) != 0 ||
                                        !simulate_delay(module, setup->load.simulate_ns)))
        give_up_because("its C_GenerateRandom cannot be made slower");
    if (token_load(module, setup->module, &message) != 0)
        give_up_because(message.text);
}

static void obey(const struct worker_setup *setup, int orders)
{
    struct token_module module;
    struct order order;
    bool locks;
    CK_RV rv;

    load_module(&module, setup);
    rv = token_start(&module, setup->reserved, &locks);
    if (rv != CKR_OK)
        give_up("C_Initialize", rv);
    if (!locks && setup->load.threads > 1)
        give_up_because("it does not work with several threads");
    own.list = module.list;
    own.load = &setup->load;
    own.clock_ns = cost_of_clock();
    find_slot(setup->proxy);
    if (setup->load.simulate_ns > 0)
        check_delay(setup->load.simulate_ns);
    while (read(orders, &order, sizeof order) == sizeof order) {
        /* Where several threads do not work, the figures for them are left out. */
        if (locks || figures[order.figure].threads <= 1)
            measure(&order);
        if (write(orders, "", 1) != 1)
            break;
    }
    module.list->C_Finalize(NULL);
    _exit(EXIT_SUCCESS);
}

bool worker_start(struct worker *worker, const struct worker_setup *setup, struct message *message)
{
    int ends[2];
    void *memory = mmap(NULL, sizeof *worker->drawn, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        message_set(message, "no process can be made: %m");
        return false;
    }
    own.drawn = worker->drawn = memory;
    fflush(NULL);
    worker->pid = fork();
    if (worker->pid == 0) {
        close(ends[0]);
        dup2(STDERR_FILENO, STDOUT_FILENO); /* for what the module prints */
        obey(setup, ends[1]);
    }
    close(ends[1]);
    worker->socket = ends[0];
    if (worker->pid < 0)
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
    shutdown(worker->socket, SHUT_WR); /* a copy in the other process does not count */
    waitpid(worker->pid, NULL, 0);
    close(worker->socket);
}
