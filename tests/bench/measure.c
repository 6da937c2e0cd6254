/* measure.c - does one thing so many times, and says how long one took; also for programs that count what that
 * takes: callgrind, strace.
 *
 *     measure OP NUMBER TIMES [MODULE]
 *
 * The operations, and what their number means, are in ops[] below. It says when it begins and ends, and how often the
 * scripted target, if one is there, was asked for random bytes meanwhile.
 */
#include <dlfcn.h>
#include <err.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "scripted.h"
#include "words.h"

enum {
    SLOTS_MAX = 128,
    DRAW_BYTES = 32,
    DRAW_MOST_BYTES = 1024 * 1024,
    GROWING_BYTES = 1024, /* the largest draws that a pool answers: they empty it, so it grows */
    THREADS_MOST = 64,
    /* Of all threads: less than a quarter of a pool of 16 MiB, so that nothing refills it meanwhile. */
    THREADS_DRAWS = 120 * 1000,
    THREADS_WARM_UPS = 10,
    WARM_DRAWS = 20000,
    SIGNATURES = 200,
    EARLIER_SIGNATURES = 40 /* not timed: demand has to be known */
};

static const int64_t FILL_NS = 200 * NS_PER_MS; /* SoftHSM fills 16 MiB in less */

/* The floor: what no draw can do without, a call of the function list that copies bytes and wipes them. */
static CK_RV copy_and_wipe(CK_SESSION_HANDLE own, CK_BYTE *to, CK_ULONG len_bytes)
{
    static __thread uint8_t store[4096];
    static __thread size_t at;
    (void)own;
    at = at + len_bytes > sizeof store ? 0 : at;
    memcpy(to, store + at, len_bytes);
    explicit_bzero(store + at, len_bytes);
    at += len_bytes;
    return CKR_OK;
}

static CK_FUNCTION_LIST on_floor = {.C_GenerateRandom = copy_and_wipe};
static CK_FUNCTION_LIST *fn = &on_floor; /* unless a module is loaded */
static const char *module;               /* a path */
static long argument, times;
static CK_SLOT_ID slot;
static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE key;
static struct target_shared *target; /* all zero unless the scripted one is there */

static void must(const char *function, CK_RV rv)
{
    if (rv != CKR_OK)
        errx(EXIT_FAILURE, "%s: 0x%lx", function, rv);
}

static void rest_ns(int64_t duration_ns)
{
    nanosleep(&(struct timespec){duration_ns / NS_PER_S, duration_ns % NS_PER_S}, NULL);
}

static CK_SESSION_HANDLE open_session(void)
{
    CK_SESSION_HANDLE opened;
    must("C_OpenSession", fn->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &opened));
    return opened;
}

/* As programs with threads load it. */
static void load(void)
{
    CK_C_INITIALIZE_ARGS args = {.flags = CKF_OS_LOCKING_OK};
    void *loaded = dlopen(module, RTLD_NOW | RTLD_LOCAL);
    if (loaded == NULL)
        errx(EXIT_FAILURE, "cannot load the module: %s", dlerror());
    CK_C_GetFunctionList get = (CK_C_GetFunctionList)dlsym(loaded, "C_GetFunctionList");
    must("C_GetFunctionList", get(&fn));
    must("C_Initialize", fn->C_Initialize(&args));
}

static void prepare(void)
{
    CK_SLOT_ID slots[SLOTS_MAX] = {0};
    CK_ULONG count = SLOTS_MAX;
    load();
    must("C_GetSlotList", fn->C_GetSlotList(CK_TRUE, slots, &count));
    if (count == 0)
        errx(EXIT_FAILURE, "there is no token: is SOFTHSM2_CONF set to one's?");
    slot = slots[0]; /* SoftHSM lists what is not initialised last */
    session = open_session();
}

static CK_BYTE drawn[DRAW_MOST_BYTES];

static void draw_from(CK_SESSION_HANDLE own, CK_BYTE *to, CK_ULONG len_bytes, long count)
{
    CK_RV rv = CKR_OK;
    for (long i = 0; i < count && rv == CKR_OK; i++)
        rv = fn->C_GenerateRandom(own, to, len_bytes);
    must("C_GenerateRandom", rv);
}

static void draw(void)
{
    draw_from(session, drawn, (CK_ULONG)argument, times);
}

static void get_session_info(void)
{
    CK_SESSION_INFO info;
    CK_RV rv = CKR_OK;
    for (long i = 0; i < times && rv == CKR_OK; i++)
        rv = fn->C_GetSessionInfo(session, &info);
    must("C_GetSessionInfo", rv);
}

/* Each begins anew: for a target that permits it. */
static void sign_init(void)
{
    CK_MECHANISM mechanism = {CKM_SHA256_RSA_PKCS, NULL, 0};
    CK_RV rv = CKR_OK;
    for (long i = 0; i < times && rv == CKR_OK; i++)
        rv = fn->C_SignInit(session, &mechanism, /* hKey= */ 1);
    must("C_SignInit", rv);
}

static void start(void)
{
    for (long i = 0; i < times; i++) {
        load();
        must("C_Finalize", fn->C_Finalize(NULL));
    }
}

static pthread_barrier_t all_begin;

/* Puts there what one draw took. */
static void *draw_in_thread(void *mean_ns)
{
    CK_SESSION_HANDLE own = fn != &on_floor ? open_session() : 0;
    CK_BYTE to[DRAW_BYTES];
    long draws = THREADS_DRAWS / argument;
    pthread_barrier_wait(&all_begin);
    int64_t begin_ns = clock_exact_ns();
    draw_from(own, to, sizeof to, draws);
    *(double *)mean_ns = (double)(clock_exact_ns() - begin_ns) / (double)draws;
    if (fn != &on_floor)
        must("C_CloseSession", fn->C_CloseSession(own));
    return NULL;
}

/* The mean of what one draw took in each of the threads, when the pool is full: it grows each time that it is empty. */
static double draw_in_threads(void)
{
    pthread_t threads[THREADS_MOST];
    double mean_ns[THREADS_MOST], sum_ns = 0;
    if (argument < 1 || argument > THREADS_MOST)
        errx(EXIT_FAILURE, "threads: say a number from 1 to %d", THREADS_MOST);
    pthread_barrier_init(&all_begin, NULL, (unsigned)argument);
    for (int round = 0; round <= THREADS_WARM_UPS; round++) {
        rest_ns(round == THREADS_WARM_UPS ? FILL_NS : 0);
        for (long i = 0; i < argument; i++)
            must("pthread_create",
                 (CK_RV)pthread_create(&threads[i], NULL, draw_in_thread, &mean_ns[i]));
        for (long i = 0; i < argument; i++)
            pthread_join(threads[i], NULL);
    }
    for (long i = 0; i < argument; i++)
        sum_ns += mean_ns[i];
    return sum_ns / (double)argument;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void prepare_key(void)
{
    CK_BBOOL yes = CK_TRUE, no = CK_FALSE;
    CK_ULONG len_bytes = 32;
    CK_MECHANISM mechanism = {CKM_GENERIC_SECRET_KEY_GEN, NULL, 0};
    CK_ATTRIBUTE template[] = {{CKA_SIGN, &yes, sizeof yes},
                               {CKA_PRIVATE, &no, sizeof no},
                               {CKA_TOKEN, &no, sizeof no},
                               {CKA_VALUE_LEN, &len_bytes, sizeof len_bytes}};
    prepare();
    must("C_GenerateKey", fn->C_GenerateKey(session, &mechanism, template,
                                            sizeof template / sizeof *template, &key));
}

static void sign_once(CK_SESSION_HANDLE own)
{
    CK_MECHANISM mechanism = {CKM_SHA256_HMAC, NULL, 0};
    CK_BYTE data[32] = {0}, signature[64];
    CK_ULONG len_bytes = sizeof signature;
    must("C_SignInit", fn->C_SignInit(own, &mechanism, key));
    must("C_Sign", fn->C_Sign(own, data, sizeof data, signature, &len_bytes));
}

static void draw_once(CK_SESSION_HANDLE own)
{
    CK_BYTE to[16];
    draw_from(own, to, sizeof to, 1);
}

/* So many bytes a second as the argument says. */
static void draw_slowly(CK_SESSION_HANDLE own)
{
    CK_BYTE to[DRAW_BYTES];
    draw_from(own, to, sizeof to, 1);
    rest_ns(NS_PER_S * DRAW_BYTES / argument);
}

/* Shows what a busy thread costs by itself. */
static void copy_once(CK_SESSION_HANDLE own)
{
    CK_BYTE copied[DRAW_BYTES];
    copy_and_wipe(own, copied, sizeof copied);
}

static void (*done_beside)(CK_SESSION_HANDLE);

/* Until the program ends. */
static void *go_on(void *unused)
{
    CK_SESSION_HANDLE own = open_session();
    for (;;)
        done_beside(own);
    return unused;
}

static void begin_beside(void (*other)(CK_SESSION_HANDLE))
{
    pthread_t thread;
    done_beside = other;
    must("pthread_create", (CK_RV)pthread_create(&thread, NULL, go_on, NULL));
}

/* One signature's time that one in a hundred exceeds; another thread draws so many bytes a second meanwhile. */
static double sign(void)
{
    static const int64_t between_ns = 5 * NS_PER_MS;
    int64_t ns[SIGNATURES];
    if (argument != 0)
        begin_beside(draw_slowly);
    for (int i = -EARLIER_SIGNATURES; i < SIGNATURES; i++) {
        int64_t begin_ns = clock_exact_ns();
        sign_once(session);
        if (i >= 0)
            ns[i] = clock_exact_ns() - begin_ns;
        rest_ns(between_ns);
    }
    qsort(ns, SIGNATURES, sizeof *ns, compare);
    return (double)ns[SIGNATURES * 99 / 100];
}

static double beside(void (*one)(CK_SESSION_HANDLE), void (*other)(CK_SESSION_HANDLE))
{
    int64_t begin_ns = 0;
    begin_beside(argument != 0 ? other : copy_once);
    for (long i = -times / 4; i < times; i++) {
        begin_ns = i == 0 ? clock_exact_ns() : begin_ns;
        one(session);
    }
    return (double)(clock_exact_ns() - begin_ns) / (double)times;
}

static double sign_beside(void)
{
    return beside(sign_once, draw_once);
}

static double draw_beside(void)
{
    return beside(draw_once, sign_once);
}

/* What the kernel says of this process after many draws. */
static double memory(void)
{
    const char *begin = argument != 0 ? "Private_Dirty:" : "Rss:";
    char line[256];
    double kib = -1;
    draw_from(session, drawn, DRAW_BYTES, WARM_DRAWS);
    rest_ns(FILL_NS);
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    while (file != NULL && kib < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, begin, strlen(begin)) == 0)
            kib = strtod(line + strlen(begin), NULL);
    if (kib < 0)
        errx(EXIT_FAILURE, "the kernel does not say %s", begin);
    fclose(file);
    return kib;
}

static unsigned target_calls(void)
{
    const struct target_counts *counts = target->counts[FUNCTION_C_GenerateRandom];
    return counts[0].good + counts[0].failed + counts[1].good + counts[1].failed;
}

/* What the target made, when the filler has nothing to do any more, and no lock to share. */
static uint64_t settled_bytes(void)
{
    enum { SETTLED_POLLS = 200 };
    uint64_t made = 0;
    for (int same = 0; same < SETTLED_POLLS; rest_ns(NS_PER_MS)) {
        uint64_t before = made;
        made = target->words * WORD_BYTES;
        same = made == before ? same + 1 : 0;
    }
    return made;
}

/* Draws until the pool has grown so far that it holds enough, and more. */
static void warm_up(void)
{
    prepare();
    uint64_t wanted = 4 * (uint64_t)(times * argument), drawn_bytes = 0;
    do {
        draw_from(session, drawn, GROWING_BYTES, (long)(wanted / GROWING_BYTES) + 1);
        drawn_bytes += (wanted / GROWING_BYTES + 1) * GROWING_BYTES;
    } while (settled_bytes() < drawn_bytes + wanted);
}

/* All that counts happens in here, and callgrind collects nothing elsewhere. */
void counted(void (*run)(void));
__attribute__((noinline)) void counted(void (*run)(void))
{
    run();
    __asm__ volatile("" ::: "memory"); /* no tail call: it has to end after what it calls */
}

static double timed(void (*run)(void))
{
    printf("begin\n");
    fflush(stdout);
    unsigned before = target_calls();
    int64_t begin_ns = clock_exact_ns();
    counted(run);
    int64_t took_ns = clock_exact_ns() - begin_ns;
    printf("end, target calls %u\n", target_calls() - before);
    return (double)took_ns / (double)times;
}

/* run() is timed, unless value() says what one time came to. */
static const struct op {
    const char *name;
    void (*prepare)(void);
    void (*run)(void);
    double (*value)(void);
} ops[] = {{"draw", prepare, draw, NULL}, /* of so many bytes, without a pause */
           /* the same, from a pool that will not be low; before the scripted target only */
           {"warm", warm_up, draw, NULL},
           {"info", prepare, get_session_info, NULL},
           {"sign-init", prepare, sign_init, NULL},
           {"start", NULL, start, NULL},
           {"threads", prepare, NULL, draw_in_threads}, /* so many, from a pool that is full */
           {"floor", NULL, NULL, draw_in_threads},      /* without a module */
           {"sign", prepare_key, NULL, sign}, /* p99, while a thread draws so many bytes a second */
           /* While a thread does the other; 0: while it copies and wipes. */
           {"sign-beside", prepare_key, NULL, sign_beside},
           {"draw-beside", prepare_key, NULL, draw_beside},
           /* KiB resident; 1: written to, that no other process has */
           {"memory", prepare, NULL, memory},
           {0}};

int main(int argc, char **argv)
{
    const struct op *op = ops;
    while (op->name != NULL && argc > 3 && strcmp(op->name, argv[1]) != 0)
        op++;
    if (argc < 4 || op->name == NULL)
        errx(EXIT_FAILURE, "usage: measure OP NUMBER TIMES [MODULE]");
    argument = strtol(argv[2], NULL, 10);
    times = strtol(argv[3], NULL, 10);
    module = argv[4];
    target = target_share();
    if (target == NULL)
        err(EXIT_FAILURE, "no memory to share with a target");
    if (op->prepare != NULL)
        op->prepare();
    printf("value %.3f\n", op->run != NULL ? timed(op->run) : op->value());
    fflush(stdout);
    _exit(
        EXIT_SUCCESS); /* beside a thread that still draws, and before the module ends, which is not to be counted */
}
