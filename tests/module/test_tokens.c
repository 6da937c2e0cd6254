/* test_tokens.c - SoftHSM and softoken, used by several threads with no lock around them: what each call answers is what
 * the token alone would answer, and nothing that two threads draw is the same. */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { THREADS_MOST = 8, ROUNDS = 3, TURNS = 120, DRAWN_BYTES = 16, DRAWS = 4 };

static const struct {
    const char *name;
    CK_SLOT_ID (*begin)(const char *settings);
} tokens[] = {{"SoftHSM", softhsm_begin}, {"softoken", softoken_begin}};

static const unsigned crowds[] = {2, 4, 8};
static const char *const settings[] = {"", "x-pool-threads: never", "x-pool-size: 4KiB"};

enum {
    TOKENS = sizeof tokens / sizeof *tokens,
    CROWDS = sizeof crowds / sizeof *crowds,
    SETTINGS = sizeof settings / sizeof *settings
};

static CK_SLOT_ID slot;
static CK_BYTE pin[] = "1234";
static CK_BYTE data[] = "what is digested";
static pthread_barrier_t barrier;

/* What a thread found wrong, "" if nothing; and what it drew. */
static struct worker {
    pthread_t thread;
    const char *wrong;
    CK_RV rv;
    uint8_t drawn[ROUNDS * TURNS * DRAWS][DRAWN_BYTES];
    size_t count;
} workers[THREADS_MOST];

#define MUST(call)                                                                                 \
    do {                                                                                           \
        CK_RV got_ = (call);                                                                       \
        if (got_ != CKR_OK && worker->wrong == NULL) {                                             \
            worker->wrong = #call;                                                                 \
            worker->rv = got_;                                                                     \
        }                                                                                          \
    } while (0)

static void draw_some(struct worker *worker, CK_SESSION_HANDLE session)
{
    CK_BYTE large[2000];
    for (int i = 0; i < DRAWS; i++)
        MUST(fn->C_GenerateRandom(session, worker->drawn[worker->count++], DRAWN_BYTES));
    if (worker->count % 64 == 0)
        MUST(fn->C_GenerateRandom(session, large, sizeof large));
}

/* The digest of the same bytes is always the same: an operation that another thread disturbed has another. */
static void digest(struct worker *worker, CK_SESSION_HANDLE session)
{
    static _Atomic uint64_t first;
    CK_MECHANISM sha256 = {CKM_SHA256, NULL, 0};
    CK_BYTE made[32];
    CK_ULONG made_bytes = sizeof made;
    uint64_t start;
    uint64_t none = 0;
    MUST(fn->C_DigestInit(session, &sha256));
    MUST(fn->C_DigestUpdate(session, data, 4));
    MUST(fn->C_DigestUpdate(session, data + 4, sizeof data - 4));
    MUST(fn->C_DigestFinal(session, made, &made_bytes));
    memcpy(&start, made, sizeof start);
    if (!atomic_compare_exchange_strong(&first, &none, start) && none != start)
        worker->wrong = "a digest differs";
}

/* All threads share the login of the token: one more is answered so, as by the token alone. */
static void log_in(struct worker *worker, CK_SESSION_HANDLE session)
{
    CK_RV rv = fn->C_Login(session, CKU_USER, pin, 4);
    if (rv != CKR_USER_ALREADY_LOGGED_IN)
        MUST(rv);
}

static void turn(struct worker *worker, unsigned number)
{
    CK_SESSION_INFO info;
    CK_TOKEN_INFO token;
    CK_SESSION_HANDLE session = CK_INVALID_HANDLE;
    MUST(fn->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &session));
    draw_some(worker, session);
    digest(worker, session);
    if (number % 16 == 5)
        MUST(fn->C_SeedRandom(session, data, sizeof data));
    if (number % 16 == 7)
        log_in(worker, session);
    MUST(fn->C_GetSessionInfo(session, &info));
    MUST(fn->C_GetTokenInfo(slot, &token));
    MUST(fn->C_CloseSession(session));
    if (fn->C_GetSessionInfo(session, &info) == CKR_OK && worker->wrong == NULL)
        worker->wrong = "a closed session is open";
}

/* A session stays open all the time, so that no close logs anybody out. */
static void *work(void *of)
{
    struct worker *worker = of;
    for (unsigned round = 0; round < ROUNDS; round++) {
        CK_SESSION_HANDLE kept = CK_INVALID_HANDLE;
        MUST(fn->C_OpenSession(slot, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &kept));
        log_in(worker, kept);
        for (unsigned i = 0; i < TURNS; i++)
            turn(worker, i);
        MUST(fn->C_GetSessionInfo(kept, &(CK_SESSION_INFO){0}));
        /* One thread ends it for all, as an application does; the filler may be in the token then. */
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
            MUST(fn->C_Finalize(NULL));
            MUST(fn->C_Initialize(&os_locking));
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static int compare(const void *one, const void *other)
{
    return memcmp(one, other, DRAWN_BYTES);
}

static void nothing_was_drawn_twice(unsigned count)
{
    static uint8_t all[THREADS_MOST * ROUNDS * TURNS * DRAWS + 1][DRAWN_BYTES];
    size_t sum = 1; /* the first is of zeros, which must not be drawn either */
    for (unsigned i = 0; i < count; i++) {
        memcpy(all[sum], workers[i].drawn, workers[i].count * sizeof *all);
        sum += workers[i].count;
    }
    ck_assert_uint_eq(sum, (size_t)count * ROUNDS * TURNS * DRAWS + 1);
    qsort(all, sum, DRAWN_BYTES, compare);
    for (size_t i = 1; i < sum; i++)
        ck_assert_msg(compare(all[i - 1], all[i]) != 0, "drawn twice, or zeros");
}

TEST_EACH(threads_on_a_real_token_are_answered_as_by_the_token_alone, 0, CROWDS *TOKENS *SETTINGS)
{
    unsigned count = crowds[_i % CROWDS];
    slot = tokens[_i / CROWDS % TOKENS].begin(settings[_i / CROWDS / TOKENS]);
    pthread_barrier_init(&barrier, NULL, count);
    for (unsigned i = 0; i < count; i++) {
        workers[i] = (struct worker){0};
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(workers[i].thread, NULL);
    for (unsigned i = 0; i < count; i++)
        ck_assert_msg(workers[i].wrong == NULL, "%s: thread %u: %s (0x%lx)",
                      tokens[_i / CROWDS % TOKENS].name, i, workers[i].wrong, workers[i].rv);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    nothing_was_drawn_twice(count);
}

int main(void)
{
    return test_main("tokens", set_up, tear_down);
}
