/* chaos.c - a random application before a target with random faults, and what must be so whatever happens.
 *
 * CHAOS_SEED and CHAOS_SECONDS choose one seed, and how long it goes on.
 *
 * Threads open, draw, seed, log in, use operations, close and fork; one thread tells the target to fail, to be slow, to
 * hang for a while, to write short or to lose its token. From one seed each thread makes the same choices in the same
 * order. Watched on line: no word twice, in any process; no zero word; nothing in the buffer after an error; no call
 * that the initialisation did not allow; no code that the target has not said; no call that lasts longer than its bound.
 */
#include "base/clock.h"
#include "base/lock.h"
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    THREADS = 4,
    SLOTS = 2,
    SESSIONS_MOST = 6,
    LARGEST = 4096,
    LIFE_CALLS = 400,      /* of each thread, between C_Initialize and C_Finalize */
    CALL_LASTS_MS = 20000, /* at most: what hangs is let go after a few calls of the others */
    CHILD_DRAWS = 20
};

/* Shared with child processes, which count what they find too. */
static struct {
    atomic_uint wrong;
    char what[256];
    atomic_ullong calls;
    atomic_ullong failed;
    atomic_uint children;
    atomic_uint lives;
    _Atomic int64_t began_ms[THREADS]; /* the call under way; 0: none */
} * seen;

static unsigned long long seed = 1;
static atomic_bool stop;
static atomic_uint running;
static bool is_over; /* written and read on different sides of the barrier */
static pthread_barrier_t barrier;
static CK_C_INITIALIZE_ARGS *const ways_to_begin[] = {&os_locking, &no_threads, &os_locking};

struct worker {
    pthread_t thread;
    unsigned number;
    uint64_t random;
    CK_SESSION_HANDLE sessions[SESSIONS_MOST];
    unsigned count;
};

static uint64_t next(uint64_t *state, uint64_t upto)
{
    *state += 0x9E3779B97F4A7C15ULL;
    return word_scramble(*state) % upto;
}

static int64_t now_ms(void)
{
    return clock_exact_ns() / NS_PER_MS;
}

/* The first that is found is kept. */
#define WRONG(...)                                                                                 \
    do {                                                                                           \
        if (atomic_fetch_add(&seen->wrong, 1) == 0)                                                \
            snprintf(seen->what, sizeof seen->what, __VA_ARGS__);                                  \
        atomic_store(&stop, true);                                                                 \
    } while (0)

/* The target's own codes, those that it is told to say, and two of the proxy's: CKR_DEVICE_ERROR for bytes that are bad
 * and CKR_CRYPTOKI_NOT_INITIALIZED beside the end of a life. */
static bool can_be_said(CK_RV rv)
{
    static const CK_RV codes[] = {CKR_OK,
                                  CKR_DEVICE_ERROR,
                                  CKR_FUNCTION_FAILED,
                                  CKR_GENERAL_ERROR,
                                  CKR_DATA_LEN_RANGE,
                                  CKR_ARGUMENTS_BAD,
                                  CKR_CRYPTOKI_NOT_INITIALIZED,
                                  CKR_SESSION_HANDLE_INVALID,
                                  CKR_SESSION_COUNT,
                                  CKR_SESSION_READ_ONLY_EXISTS,
                                  CKR_SESSION_READ_WRITE_SO_EXISTS,
                                  CKR_SESSION_EXISTS,
                                  CKR_TOKEN_NOT_PRESENT,
                                  CKR_USER_ALREADY_LOGGED_IN,
                                  CKR_USER_NOT_LOGGED_IN,
                                  CKR_OPERATION_ACTIVE,
                                  CKR_OPERATION_NOT_INITIALIZED,
                                  CKR_KEY_HANDLE_INVALID};
    for (size_t i = 0; i < COUNT_OF(codes); i++)
        if (codes[i] == rv)
            return true;
    return false;
}

#define CALL(worker, call)                                                                         \
    ({                                                                                             \
        atomic_store(&seen->began_ms[(worker)->number], now_ms());                                 \
        CK_RV got_ = (call);                                                                       \
        atomic_store(&seen->began_ms[(worker)->number], 0);                                        \
        atomic_fetch_add(&seen->calls, 1);                                                         \
        if (got_ != CKR_OK)                                                                        \
            atomic_fetch_add(&seen->failed, 1);                                                    \
        if (!can_be_said(got_))                                                                    \
            WRONG("%s is 0x%lx", #call, got_);                                                     \
        got_;                                                                                      \
    })

static void check_drawn(CK_RV rv, const uint8_t *bytes, size_t len_bytes)
{
    static const uint8_t nothing[LARGEST];
    if (bytes[len_bytes] != 0)
        WRONG("a byte behind %zu bytes was written", len_bytes);
    if (rv == CKR_OK)
        served(bytes, len_bytes);
    else if (memcmp(bytes, nothing, len_bytes) != 0)
        WRONG("after 0x%lx the buffer of %zu bytes is not empty", rv, len_bytes);
    if (served_wrong() != NULL)
        WRONG("%s, lately in %zu bytes", served_wrong(), len_bytes);
}

/* Small ones of a size that no fetch has, so that a fault can be told to fetches alone. */
static void draw_once(struct worker *worker, CK_SESSION_HANDLE on)
{
    uint8_t bytes[LARGEST + 1] = {0};
    size_t len_bytes = next(&worker->random, 8) != 0 ? 1 + next(&worker->random, 64)
                                                     : 1025 + next(&worker->random, LARGEST - 1025);
    CK_RV rv = CALL(worker, fn->C_GenerateRandom(on, bytes, len_bytes));
    check_drawn(rv, bytes, len_bytes);
}

/* In a child of a process with many threads; the target is strict, so what is inherited is not initialised. */
static void live_in_child(struct worker *worker, CK_SESSION_HANDLE parents)
{
    uint8_t bytes[64 + 1] = {0};
    CK_SESSION_HANDLE own;
    child_begins();
    if (fn->C_GenerateRandom(parents, bytes, 64) == CKR_OK)
        WRONG("a child is served from what it inherits");
    CK_RV rv = fn->C_Initialize(ways_to_begin[next(&worker->random, 2)]);
    if (rv != CKR_OK || fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &own) != CKR_OK)
        _exit(0); /* the target may be failing */
    for (int i = 0; i < CHILD_DRAWS; i++) {
        memset(bytes, 0, sizeof bytes);
        rv = fn->C_GenerateRandom(own, bytes, 64);
        check_drawn(rv, bytes, 64);
    }
    fn->C_Finalize(NULL);
    _exit(0);
}

static void fork_once(struct worker *worker, CK_SESSION_HANDLE on)
{
    int status = 0;
    if (IS_SANITIZED)
        return;
    pid_t child = fork();
    if (child == 0)
        live_in_child(worker, on);
    atomic_fetch_add(&seen->children, 1);
    if (waitpid(child, &status, 0) == child && status != 0)
        WRONG("a child ended with status 0x%x", (unsigned)status);
}

static void open_one(struct worker *worker)
{
    CK_SLOT_ID slot = next(&worker->random, SLOTS);
    CK_FLAGS flags =
        next(&worker->random, 2) == 0 ? CKF_SERIAL_SESSION : CKF_SERIAL_SESSION | CKF_RW_SESSION;
    if (worker->count < SESSIONS_MOST &&
        CALL(worker, fn->C_OpenSession(slot, flags, NULL, NULL,
                                       &worker->sessions[worker->count])) == CKR_OK)
        worker->count++;
}

static void use_operation(struct worker *worker, CK_SESSION_HANDLE on)
{
    CK_MECHANISM sha256 = {CKM_SHA256, NULL, 0};
    CK_BYTE bytes[32];
    CK_ULONG len_bytes = sizeof bytes;
    if (CALL(worker, fn->C_DigestInit(on, &sha256)) == CKR_OK && next(&worker->random, 4) != 0)
        CALL(worker, fn->C_Digest(on, bytes, 4, bytes, &len_bytes));
}

static void act(struct worker *worker)
{
    CK_SESSION_INFO session_info;
    CK_TOKEN_INFO token_info;
    unsigned which = (unsigned)next(&worker->random, worker->count + 1U);
    CK_SESSION_HANDLE on = which < worker->count ? worker->sessions[which] : CK_INVALID_HANDLE;
    CK_SLOT_ID slot = next(&worker->random, SLOTS);
    uint64_t choice = next(&worker->random, 400);
    if (choice < 240)
        draw_once(worker, on);
    else if (choice < 280 || worker->count == 0)
        open_one(worker);
    else if (choice < 310 && which < worker->count) {
        CALL(worker, fn->C_CloseSession(on));
        worker->sessions[which] = worker->sessions[--worker->count];
    } else if (choice < 325)
        use_operation(worker, on);
    else if (choice < 335)
        CALL(worker, fn->C_SeedRandom(on, pin, 4));
    else if (choice < 345)
        CALL(worker, fn->C_Login(on, choice % 8 == 0 ? CKU_SO : CKU_USER, pin, 4));
    else if (choice < 355)
        CALL(worker, fn->C_Logout(on));
    else if (choice < 370)
        CALL(worker, fn->C_GetSessionInfo(on, &session_info));
    else if (choice < 385)
        CALL(worker, fn->C_GetTokenInfo(slot, &token_info));
    else if (choice < 388)
        CALL(worker, fn->C_CloseAllSessions(slot));
    else if (choice < 390)
        fork_once(worker, on);
}

/* What is told, and in which life; the threads tell nothing but in between. */
static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;
static unsigned told, statements;

static void begin_next_life(struct worker *worker)
{
    CK_RV rv = CALL(worker, fn->C_Finalize(NULL));
    if (rv != CKR_OK)
        WRONG("C_Finalize is 0x%lx", rv);
    pthread_mutex_lock(&telling);
    script_anew("slots 2; quiet");
    told = statements = 0;
    pthread_mutex_unlock(&telling);
    rv = CALL(worker,
              fn->C_Initialize(ways_to_begin[(seed + atomic_fetch_add(&seen->lives, 1)) % 3]));
    if (rv != CKR_OK)
        WRONG("C_Initialize is 0x%lx", rv);
}

/* Lives are the same for all threads; one of them ends a life and begins the next. */
static void *work(void *of)
{
    struct worker *worker = of;
    for (;;) {
        for (int i = 0; i < LIFE_CALLS && !atomic_load(&stop); i++)
            act(worker);
        /* One thread looks for all whether it is over. */
        bool chosen = pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
        if (chosen)
            is_over = atomic_load(&stop);
        pthread_barrier_wait(&barrier);
        if (is_over)
            break;
        worker->count = 0;
        if (chosen)
            begin_next_life(worker);
        pthread_barrier_wait(&barrier);
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static const char *const faults[] = {
    "C_GenerateRandom: fail 0x30 twice",
    "C_GenerateRandom by filler: fail 0x5 3 times",
    "C_GenerateRandom over 256: fail 0x21 20 times",
    "C_GenerateRandom over 100: fail 0x6 20 times",
    "C_GenerateRandom: last 2ms 20 times",
    "C_GenerateRandom by filler: last 50ms twice",
    "C_GenerateRandom over 100 under 1025: write half once",
    "C_GenerateRandom: stuck once",
    "C_GenerateRandom by filler: hold first once",
    "C_GenerateRandom: hold once",
    "C_OpenSession: fail 0xb1 3 times",
    "C_OpenSession by filler: hold once",
    "C_CloseSession: fail 0x6 once",
    "C_CloseSession by filler: last 20ms once",
    "C_GetTokenInfo: fail 0x30 once",
    "C_SeedRandom: fail 0x6 twice",
    "C_Login: fail 0x5 once",
    "login for random 1",
    "login for random 0",
    "sessions at most 8",
    "sessions at most 0",
    "empty slot 1",
    "empty slot none",
};

enum { FAULTS = COUNT_OF(faults), SCRIPT_IS_FULL = STATEMENTS_MOST - 8 };

static void look_for_hangs(void)
{
    for (unsigned i = 0; i < THREADS; i++) {
        int64_t began_ms = atomic_load(&seen->began_ms[i]);
        if (began_ms != 0 && now_ms() - began_ms > CALL_LASTS_MS)
            WRONG("a call of thread %u has lasted for %d ms", i, CALL_LASTS_MS);
    }
}

static void tell(uint64_t *random)
{
    const char *fault = faults[next(random, FAULTS)];
    HOLD(&telling);
    if (told == SCRIPT_IS_FULL)
        return;
    script("%s", fault);
    told++;
    statements += strchr(fault, ':') != NULL;
}

/* Faults follow each other by the calls of the threads, unless these are all held. */
static void make_faults(int64_t until_ms)
{
    enum { HELD_MS = 100 };
    uint64_t random = seed;
    while (atomic_load(&running) != 0 && atomic_load(&seen->wrong) == 0) {
        uint64_t upto = atomic_load(&seen->calls) + 10 + next(&random, 60);
        int64_t since_ms = now_ms();
        if (since_ms < until_ms)
            tell(&random);
        else
            atomic_store(&stop, true);
        while (atomic_load(&seen->calls) < upto && atomic_load(&running) != 0 &&
               now_ms() - since_ms < HELD_MS)
            usleep(200);
        pthread_mutex_lock(&telling);
        script_release_first(statements);
        pthread_mutex_unlock(&telling);
        look_for_hangs();
    }
}

static int seconds;

TEST(whatever_happens_what_must_be_so_is_so)
{
    static struct worker workers[THREADS];
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(seen, MAP_FAILED);
    script("slots 2; quiet");
    proxy_with(seed % 4 == 3 ? "x-pool-size: 4KiB" : "x-pool-max-age: 1s");
    EXPECT(fn->C_Initialize(ways_to_begin[seed % 3]), CKR_OK);
    pthread_barrier_init(&barrier, NULL, THREADS);
    atomic_store(&running, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.number = i, .random = word_scramble(seed * THREADS + i)};
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    make_faults(now_ms() + seconds * 1000);
    printf(
        "chaos: seed %llu: %llu calls, of which %llu failed, %u lives, %u children, %llu words\n",
        seed, atomic_load(&seen->calls), atomic_load(&seen->failed), atomic_load(&seen->lives),
        atomic_load(&seen->children), (unsigned long long)words_made());
    fflush(stdout);
    ck_assert_msg(atomic_load(&seen->wrong) == 0, "seed %llu: %s", seed, seen->what);
    ck_assert_msg(atomic_load(&shared->complaints) == 0, "seed %llu: the target complains: %s",
                  seed, shared->complaint);
    /* Or nothing was tried. */
    ck_assert_uint_gt(atomic_load(&seen->failed), 0);
    ck_assert_uint_ge(served_words(), 1000);
}

static unsigned long long number_in(const char *variable, unsigned long long otherwise)
{
    const char *text = getenv(variable);
    return text != NULL ? strtoull(text, NULL, 0) : otherwise;
}

void before_all(void)
{
    seed = number_in("CHAOS_SEED", (unsigned long long)clock_exact_ns() % NS_PER_S);
    seconds = (int)number_in("CHAOS_SECONDS", getenv("TESTS_LONG") != NULL ? 3600 : 30);
    setenv("CK_TIMEOUT_MULTIPLIER", text_of("%d", 1 + seconds / HANG_S * 2), 1);
}
