/* worker.c - a process that draws random bytes from one module, when it is ordered to. */
#include "bench/worker.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum { SLOTS_MOST = 64 };

struct own own;

void give_up(const char *function, CK_RV rv)
{
    message_set(&own.drawn->message, "%s answers %s", function, token_code(rv));
    _exit(EXIT_FAILURE);
}

void give_up_because(const char *text)
{
    message_set(&own.drawn->message, "%s", text);
    _exit(EXIT_FAILURE);
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
    find_slot(setup->proxy);
    if (setup->load.simulate_ns > 0)
        check_delay(setup->load.simulate_ns);
    while (read(orders, &order, sizeof order) == sizeof order) {
        /* Where several threads do not work, the figures for them are left out. */
        if (locks || figures[order.figure].threads <= 1)
            draw_figure(&order);
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
