/* bench_drawer.c - a process that draws random bytes from one module, when it is told to. */
#include "bench/bench.h"

#include <pthread.h>
#include <stdio.h>
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
    CLOCK_LOOKS_NS =
        20 * 1000 /* so often is the clock looked at where draws are not timed singly */
};

struct order {
    int64_t slice_ns;
    bool counts;
};

/* One thread of the process. */
struct hand {
    CK_FUNCTION_LIST *list;
    CK_SESSION_HANDLE session;
    size_t size_bytes;
    int64_t slice_ns;
    int64_t clock_ns; /* what reading the clock costs */
    CK_BYTE *bytes;
    struct latencies latencies;
    double draws_per_s;
    CK_RV rv;
};

/* In the process that draws: says why it ends, and ends. */
static void give_up(struct drawn *drawn, const char *function, CK_RV rv)
{
    message_set(&drawn->message, "%s answers %s", function, token_code(rv));
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

static void time_each(struct hand *hand, int64_t until_ns)
{
    int64_t before_ns = clock_exact_ns();

    /* Once at least: a busy machine may let us wait until the time is over. */
    do {
        hand->rv = hand->list->C_GenerateRandom(hand->session, hand->bytes, hand->size_bytes);
        int64_t after_ns = clock_exact_ns();
        int64_t took_ns = after_ns - before_ns - hand->clock_ns;
        latencies_add(&hand->latencies, took_ns > 0 ? took_ns : 0);
        before_ns = after_ns;
    } while (hand->rv == CKR_OK && before_ns < until_ns);
}

static void time_all(struct hand *hand, int64_t until_ns)
{
    int64_t begin_ns = clock_exact_ns();
    int64_t now_ns = begin_ns;
    uint64_t draws = 0, batch = 1;

    while (hand->rv == CKR_OK && (draws == 0 || now_ns < until_ns)) {
        int64_t before_ns = now_ns;
        for (uint64_t i = 0; i < batch && hand->rv == CKR_OK; i++)
            hand->rv = hand->list->C_GenerateRandom(hand->session, hand->bytes, hand->size_bytes);
        draws += batch;
        now_ns = clock_exact_ns();
        if (now_ns - before_ns < CLOCK_LOOKS_NS)
            batch *= 2;
        else if (batch > 1)
            batch /= 2;
    }
    if (now_ns > begin_ns)
        hand->draws_per_s = (double)draws * NS_PER_S / (double)(now_ns - begin_ns);
}

static void *draw(void *context)
{
    struct hand *hand = context;
    int64_t begin_ns = clock_exact_ns();

    time_each(hand, begin_ns + hand->slice_ns / 2);
    time_all(hand, clock_exact_ns() + hand->slice_ns / 2);
    return NULL;
}

static void draw_slice(struct drawn *drawn, struct hand *hands, unsigned threads,
                       const struct order *order)
{
    pthread_t thread[THREADS_MOST];
    double draws_per_s = 0;
    unsigned started = 0;

    for (unsigned i = 0; i < threads; i++) {
        hands[i].slice_ns = order->slice_ns;
        memset(&hands[i].latencies, 0, sizeof hands[i].latencies);
    }
    while (started < threads && pthread_create(&thread[started], NULL, draw, &hands[started]) == 0)
        started++;
    for (unsigned i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    if (started < threads) {
        message_set(&drawn->message, "no more than %u threads can be made", started);
        _exit(EXIT_FAILURE);
    }
    for (unsigned i = 0; i < threads; i++) {
        if (hands[i].rv != CKR_OK)
            give_up(drawn, "C_GenerateRandom", hands[i].rv);
        draws_per_s += hands[i].draws_per_s;
        if (order->counts)
            latencies_join(&drawn->latencies, &hands[i].latencies);
    }
    if (order->counts)
        drawn->draws_per_s += (draws_per_s - drawn->draws_per_s) / (double)++drawn->slices;
}

/* The first token that makes random bytes; both processes find the same one. */
static CK_SLOT_ID find_slot(struct drawn *drawn, CK_FUNCTION_LIST *list)
{
    const CK_FLAGS wanted = CKF_RNG | CKF_TOKEN_INITIALIZED;
    CK_SLOT_ID slots[SLOTS_MOST] = {0};
    CK_ULONG count = SLOTS_MOST;
    CK_RV rv = list->C_GetSlotList(CK_TRUE, slots, &count);

    if (rv != CKR_OK)
        give_up(drawn, "C_GetSlotList", rv);
    for (CK_ULONG i = 0; i < count; i++) {
        CK_TOKEN_INFO info = {0};
        if (list->C_GetTokenInfo(slots[i], &info) != CKR_OK || (info.flags & wanted) != wanted)
            continue;
        token_text(drawn->label, info.label, sizeof info.label);
        return slots[i];
    }
    message_set(&drawn->message, "there is no token that makes random bytes");
    _exit(EXIT_FAILURE);
}

static void load(struct token_module *module, struct drawn *drawn, const struct drawer_setup *setup)
{
    struct message message;

    if (setup->load.simulate_ns > 0 && (token_load(module, setup->target, &message) != 0 ||
                                        !simulate_delay(module, setup->load.simulate_ns))) {
        message_set(&drawn->message, "its C_GenerateRandom cannot be made slower");
        _exit(EXIT_FAILURE);
    }
    if (token_load(module, setup->module, &message) != 0) {
        drawn->message = message;
        _exit(EXIT_FAILURE);
    }
}

static struct hand *get_ready(struct drawn *drawn, const struct drawer_setup *setup)
{
    struct hand *hands = calloc(setup->load.threads, sizeof *hands);
    struct token_module module;
    bool locks;
    CK_RV rv;

    load(&module, drawn, setup);
    rv = token_start(&module, setup->reserved, &locks);
    if (rv != CKR_OK)
        give_up(drawn, "C_Initialize", rv);
    if (!locks && setup->load.threads > 1) {
        message_set(&drawn->message, "it is not for several threads");
        _exit(EXIT_FAILURE);
    }
    CK_SLOT_ID slot = find_slot(drawn, module.list);
    for (unsigned i = 0; hands != NULL && i < setup->load.threads; i++) {
        struct hand *hand = &hands[i];
        hand->list = module.list;
        hand->size_bytes = setup->load.size_bytes;
        hand->clock_ns = cost_of_clock();
        hand->bytes = malloc(hand->size_bytes);
        rv = hand->bytes == NULL
                 ? CKR_HOST_MEMORY
                 : module.list->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &hand->session);
        if (rv != CKR_OK)
            give_up(drawn, "C_OpenSession", rv);
    }
    if (hands == NULL)
        give_up(drawn, "calloc", CKR_HOST_MEMORY);
    return hands;
}

static void work(struct drawn *drawn, const struct drawer_setup *setup, int orders)
{
    struct hand *hands = get_ready(drawn, setup);
    struct order order;

    while (read(orders, &order, sizeof order) == sizeof order) {
        draw_slice(drawn, hands, setup->load.threads, &order);
        if (write(orders, "", 1) != 1)
            break;
    }
    hands[0].list->C_Finalize(NULL);
    _exit(EXIT_SUCCESS);
}

bool drawer_start(struct drawer *drawer, const struct drawer_setup *setup, struct message *message)
{
    int ends[2];
    void *memory = mmap(NULL, sizeof *drawer->drawn, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        message_set(message, "no process can be made: %m");
        return false;
    }
    drawer->drawn = memory;
    fflush(NULL);
    drawer->pid = fork();
    if (drawer->pid == 0) {
        close(ends[0]);
        dup2(STDERR_FILENO, STDOUT_FILENO); /* whatever the module has to say */
        work(drawer->drawn, setup, ends[1]);
    }
    close(ends[1]);
    drawer->socket = ends[0];
    if (drawer->pid < 0)
        message_set(message, "no process can be made: %m");
    return drawer->pid > 0;
}

bool drawer_draw(const struct drawer *drawer, int64_t slice_ns, bool counts)
{
    struct order order = {.slice_ns = slice_ns, .counts = counts};
    char done;

    if (send(drawer->socket, &order, sizeof order, MSG_NOSIGNAL) == sizeof order &&
        read(drawer->socket, &done, 1) == 1)
        return true;
    if (drawer->drawn->message.text[0] == '\0')
        message_set(&drawer->drawn->message, "it ended the process that had loaded it");
    return false;
}

void drawer_stop(struct drawer *drawer)
{
    shutdown(drawer->socket, SHUT_WR); /* a copy in the other process does not count */
    waitpid(drawer->pid, NULL, 0);
    close(drawer->socket);
}
