/* ops.c - the things that are measured: draws, threads, signatures, what a process pays once, names of a policy. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "policy/policy.h"

enum {
    SLOTS_MAX = 128,
    DRAW_BYTES = 32,
    DRAW_MOST_BYTES = 1024 * 1024,
    STORE_BYTES = 4096,
    THREADS_MOST = 64,
    /* Of all threads: less than a quarter of a pool of 16 MiB, so that nothing refills it meanwhile. */
    THREADS_DRAWS = 120 * 1000,
    THREADS_WARM_UPS = 10, /* the pool grows when it is empty */
    WARM_DRAWS = 20000,
    SIGNATURES = 200,
    EARLIER_SIGNATURES = 40, /* not timed: demand has to be known */
    BESIDE_SIGNATURES = 20 * 1000,
    BESIDE_DRAWS = 1000 * 1000
};

static const int64_t FILL_NS = 200 * 1000 * 1000; /* SoftHSM fills 16 MiB in less */
static const int64_t BETWEEN_SIGNATURES_NS = 5 * 1000 * 1000;

void fail(const char *what, const char *detail)
{
    fprintf(stderr, "measure: %s: %s\n", what, detail);
    exit(EXIT_FAILURE);
}

/* Fails unless a PKCS#11 function answered CKR_OK. */
static void must(const char *function, CK_RV rv)
{
    char code[32];
    snprintf(code, sizeof code, "0x%lx", rv);
    if (rv != CKR_OK)
        fail(function, code);
}

int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void rest_ns(int64_t duration_ns)
{
    struct timespec pause = {duration_ns / 1000000000, duration_ns % 1000000000};
    while (nanosleep(&pause, &pause) != 0)
        ;
}

static CK_SESSION_HANDLE open_session(const struct subject *s)
{
    CK_SESSION_HANDLE session;
    must("C_OpenSession", s->fn->C_OpenSession(s->slot, CKF_SERIAL_SESSION, NULL, NULL, &session));
    return session;
}

/* As programs with threads load it. */
static void load(struct subject *s)
{
    CK_C_INITIALIZE_ARGS args = {.flags = CKF_OS_LOCKING_OK};
    void *module = dlopen(s->module, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL)
        fail("cannot load the module", dlerror());
    CK_C_GetFunctionList get = (CK_C_GetFunctionList)dlsym(module, "C_GetFunctionList");
    if (get == NULL)
        fail("not a PKCS#11 module", s->module);
    must("C_GetFunctionList", get(&s->fn));
    must("C_Initialize", s->fn->C_Initialize(&args));
}

static void prepare(struct subject *s)
{
    CK_SLOT_ID slots[SLOTS_MAX] = {0};
    CK_ULONG count = SLOTS_MAX;
    load(s);
    must("C_GetSlotList", s->fn->C_GetSlotList(CK_TRUE, slots, &count));
    if (count == 0)
        fail("there is no token", "is SOFTHSM2_CONF set to one's?");
    s->slot = slots[0]; /* SoftHSM lists what is not initialised last */
    s->session = open_session(s);
}

static CK_BYTE bytes[DRAW_MOST_BYTES];

static void draw(struct subject *s, long times)
{
    CK_RV rv = CKR_OK;
    CK_ULONG len_bytes = (CK_ULONG)s->argument;
    for (long i = 0; i < times && rv == CKR_OK; i++)
        rv = s->fn->C_GenerateRandom(s->session, bytes, len_bytes);
    must("C_GenerateRandom", rv);
}

static void get_session_info(struct subject *s, long times)
{
    CK_SESSION_INFO info;
    CK_RV rv = CKR_OK;
    for (long i = 0; i < times && rv == CKR_OK; i++)
        rv = s->fn->C_GetSessionInfo(s->session, &info);
    must("C_GetSessionInfo", rv);
}

/* Each begins anew: for a target that permits it. */
static void sign_init(struct subject *s, long times)
{
    CK_MECHANISM mechanism = {CKM_SHA256_RSA_PKCS, NULL, 0};
    CK_RV rv = CKR_OK;
    for (long i = 0; i < times && rv == CKR_OK; i++)
        rv = s->fn->C_SignInit(s->session, &mechanism, /* hKey= */ 1);
    must("C_SignInit", rv);
}

static void start(struct subject *s, long times)
{
    for (long i = 0; i < times; i++) {
        load(s);
        must("C_Finalize", s->fn->C_Finalize(NULL));
    }
}

static __thread uint8_t store[STORE_BYTES];

/* The floor: what no draw can do without, an indirect call that copies bytes and wipes them. */
static size_t copy_and_wipe(uint8_t *to, size_t at)
{
    at = at + DRAW_BYTES > sizeof store ? 0 : at;
    memcpy(to, store + at, DRAW_BYTES);
    explicit_bzero(store + at, DRAW_BYTES);
    return at + DRAW_BYTES;
}

static size_t (*volatile floor_function)(uint8_t *, size_t) = copy_and_wipe;

struct drawer {
    pthread_t thread;
    const struct subject *subject; /* without a module it draws from the floor */
    long draws;
    pthread_barrier_t *start;
    double ns;
};

static void *draw_in_thread(void *context)
{
    struct drawer *d = context;
    const struct subject *s = d->subject;
    CK_SESSION_HANDLE session = s->fn != NULL ? open_session(s) : 0;
    CK_BYTE drawn[DRAW_BYTES];
    CK_RV rv = CKR_OK;
    size_t at = 0;
    pthread_barrier_wait(d->start);
    int64_t begin_ns = now_ns();
    for (long i = 0; s->fn == NULL && i < d->draws; i++)
        at = floor_function(drawn, at);
    for (long i = 0; s->fn != NULL && i < d->draws && rv == CKR_OK; i++)
        rv = s->fn->C_GenerateRandom(session, drawn, sizeof drawn);
    d->ns = (double)(now_ns() - begin_ns) / (double)d->draws;
    must("C_GenerateRandom", rv);
    if (s->fn != NULL)
        must("C_CloseSession", s->fn->C_CloseSession(session));
    return NULL;
}

/* The mean of what one draw took in each of the threads, when the pool is full. */
static double draw_in_threads(struct subject *s)
{
    struct drawer drawers[THREADS_MOST];
    double sum_ns = 0;
    if (s->argument < 1 || s->argument > THREADS_MOST)
        fail("threads", "say a number from 1 to 64");
    for (int round = 0; round <= THREADS_WARM_UPS; round++) {
        pthread_barrier_t begin;
        pthread_barrier_init(&begin, NULL, (unsigned)s->argument);
        rest_ns(round == THREADS_WARM_UPS ? FILL_NS : 0);
        sum_ns = 0;
        for (long i = 0; i < s->argument; i++) {
            drawers[i] = (struct drawer){
                .subject = s, .draws = THREADS_DRAWS / s->argument, .start = &begin};
            if (pthread_create(&drawers[i].thread, NULL, draw_in_thread, &drawers[i]) != 0)
                fail("cannot start a thread", "there are too many");
        }
        for (long i = 0; i < s->argument; i++) {
            pthread_join(drawers[i].thread, NULL);
            sum_ns += drawers[i].ns;
        }
        pthread_barrier_destroy(&begin);
    }
    return sum_ns / (double)s->argument;
}

static void prepare_key(struct subject *s)
{
    CK_BBOOL yes = CK_TRUE, no = CK_FALSE;
    CK_ULONG len_bytes = 32;
    CK_MECHANISM mechanism = {CKM_GENERIC_SECRET_KEY_GEN, NULL, 0};
    CK_ATTRIBUTE template[] = {{CKA_SIGN, &yes, sizeof yes},
                               {CKA_PRIVATE, &no, sizeof no},
                               {CKA_TOKEN, &no, sizeof no},
                               {CKA_VALUE_LEN, &len_bytes, sizeof len_bytes}};
    prepare(s);
    must("C_GenerateKey", s->fn->C_GenerateKey(s->session, &mechanism, template,
                                               sizeof template / sizeof *template, &s->key));
}

static atomic_bool signing;

static void sign_once(const struct subject *s, CK_SESSION_HANDLE session)
{
    CK_MECHANISM mechanism = {CKM_SHA256_HMAC, NULL, 0};
    CK_BYTE data[32] = {0}, signature[64];
    CK_ULONG len_bytes = sizeof signature;
    must("C_SignInit", s->fn->C_SignInit(session, &mechanism, s->key));
    must("C_Sign", s->fn->C_Sign(session, data, sizeof data, signature, &len_bytes));
}

static void draw_once(const struct subject *s, CK_SESSION_HANDLE session)
{
    CK_BYTE drawn[16];
    must("C_GenerateRandom", s->fn->C_GenerateRandom(session, drawn, sizeof drawn));
}

/* So many bytes a second as the argument says. */
static void draw_slowly(const struct subject *s, CK_SESSION_HANDLE session)
{
    CK_BYTE drawn[DRAW_BYTES];
    must("C_GenerateRandom", s->fn->C_GenerateRandom(session, drawn, sizeof drawn));
    rest_ns(1000000000LL * (int64_t)sizeof drawn / s->argument);
}

/* Does the one thing again and again while another thread does the other, or what no draw can do without. */
struct pair {
    const struct subject *subject;
    void (*other)(const struct subject *s, CK_SESSION_HANDLE session);
};

static void *do_other(void *context)
{
    const struct pair *pair = context;
    CK_SESSION_HANDLE session = open_session(pair->subject);
    CK_BYTE drawn[DRAW_BYTES];
    size_t at = 0;
    while (atomic_load(&signing))
        if (pair->subject->argument == 0)
            at = floor_function(drawn, at);
        else
            pair->other(pair->subject, session);
    must("C_CloseSession", pair->subject->fn->C_CloseSession(session));
    return NULL;
}

static double beside(struct subject *s, long times,
                     void (*one)(const struct subject *s, CK_SESSION_HANDLE session),
                     void (*other)(const struct subject *s, CK_SESSION_HANDLE session))
{
    struct pair pair = {s, other};
    pthread_t thread;
    int64_t begin_ns = 0;
    atomic_store(&signing, true);
    if (pthread_create(&thread, NULL, do_other, &pair) != 0)
        fail("cannot start a thread", "there are too many");
    for (long i = -times / 4; i < times; i++) {
        if (i == 0)
            begin_ns = now_ns();
        one(s, s->session);
    }
    int64_t took_ns = now_ns() - begin_ns;
    atomic_store(&signing, false);
    pthread_join(thread, NULL);
    return (double)took_ns / (double)times;
}

static double sign_beside(struct subject *s)
{
    return beside(s, BESIDE_SIGNATURES, sign_once, draw_once);
}

static double draw_beside(struct subject *s)
{
    return beside(s, BESIDE_DRAWS, draw_once, sign_once);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* One signature's time that one in a hundred exceeds; another thread draws so many bytes a second meanwhile. */
static double sign(struct subject *s)
{
    int64_t ns[SIGNATURES];
    struct pair pair = {s, draw_slowly};
    pthread_t drawer;
    atomic_store(&signing, true);
    if (s->argument != 0 && pthread_create(&drawer, NULL, do_other, &pair) != 0)
        fail("cannot start a thread", "there are too many");
    for (int i = -EARLIER_SIGNATURES; i < SIGNATURES; i++) {
        int64_t begin_ns = now_ns();
        sign_once(s, s->session);
        if (i >= 0)
            ns[i] = now_ns() - begin_ns;
        rest_ns(BETWEEN_SIGNATURES_NS);
    }
    atomic_store(&signing, false);
    if (s->argument != 0)
        pthread_join(drawer, NULL);
    qsort(ns, SIGNATURES, sizeof *ns, compare);
    return (double)ns[SIGNATURES * 99 / 100];
}

/* What the file says of itself in a line that begins with that key, after many draws. */
static double kib_of(struct subject *s, const char *path, const char *key)
{
    char line[256];
    double kib = -1;
    s->argument = DRAW_BYTES;
    draw(s, WARM_DRAWS);
    rest_ns(FILL_NS);
    FILE *file = fopen(path, "re");
    while (file != NULL && kib < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            kib = strtod(line + strlen(key), NULL);
    if (kib < 0)
        fail(path, "it does not say how much memory there is");
    fclose(file);
    return kib;
}

static double memory(struct subject *s)
{
    return kib_of(s, "/proc/self/status", "VmRSS:");
}

static double written(struct subject *s)
{
    return kib_of(s, "/proc/self/smaps_rollup", "Private_Dirty:");
}

static void prepare_policy(struct subject *s)
{
    struct policy_sources sources = {.file = s->module, .file_from = "measure", .file_line = 1};
    struct message message;
    if (policy_compile(&s->policy, &sources, &message) != 0)
        fail("policy", message.text);
}

static void look_up_names(struct subject *s, long times)
{
    static const char *const names[] = {"SSLv3", "DES", "NULL", "TLS1.3"};
    volatile uintptr_t found = 0;
    for (long i = 0; i < times; i++)
        found = (uintptr_t)policy_name(s->policy, names[i % 4]);
    (void)found;
}

const struct op ops[] = {
    {"draw", "draws of N bytes without a pause", prepare, draw, NULL},
    {"info", "C_GetSessionInfo", prepare, get_session_info, NULL},
    {"sign-init", "C_SignInit with an RSA key, again and again", prepare, sign_init, NULL},
    {"start", "dlopen, C_Initialize, C_Finalize", NULL, start, NULL},
    {"threads", "draws of 32 bytes by N threads at once from a pool that is full", prepare, NULL,
     draw_in_threads},
    {"floor", "by N threads: an indirect call that copies and wipes 32 bytes", NULL, NULL,
     draw_in_threads},
    {"sign", "200 signatures: 99 % take no longer. A thread draws N bytes a second meanwhile",
     prepare_key, NULL, sign},
    {"sign-beside", "C_Sign while a thread draws 16 bytes again and again; 0: copies and wipes",
     prepare_key, NULL, sign_beside},
    {"draw-beside", "draws of 16 bytes while a thread signs again and again; 0: copies and wipes",
     prepare_key, NULL, draw_beside},
    {"memory", "KiB resident in a process that drew 20,000 times", prepare, NULL, memory},
    {"written", "the same: KiB written to, that no other process has", prepare, NULL, written},
    {"name", "names looked up in a policy; MODULE is a file of lists", prepare_policy,
     look_up_names, NULL},
    {0}};
