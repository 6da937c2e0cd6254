/* test_tokens.c - SoftHSM and softoken: threads with no lock around them are answered as by the token alone, nothing is
 * drawn twice, and keys are measured. */
#include "fixture.h"

#include <pthread.h>
#include <unistd.h>

static CK_SLOT_ID slot;
static CK_UTF8CHAR so_pin[] = "12345678";

/* The user can log in from now on, with pin. */
static void let_the_user_log_in(CK_UTF8CHAR *so, CK_ULONG so_bytes)
{
    session = open_session(slot, CKF_RW_SESSION);
    EXPECT(fn->C_Login(session, CKU_SO, so, so_bytes), CKR_OK);
    EXPECT(fn->C_InitPIN(session, pin, 4), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    initialize();
}

static void find_first_slot(void)
{
    CK_SLOT_ID slots[16];
    CK_ULONG count = 16;
    EXPECT(fn->C_GetSlotList(CK_FALSE, slots, &count), CKR_OK);
    slot = slots[0];
}

static void softhsm_begin(const char *path, const char *settings)
{
    write_in_root("softhsm2.conf", text_of("directories.tokendir = %s\nlog.level = ERROR\n", root));
    setenv("SOFTHSM2_CONF", in_root("softhsm2.conf"), 1);
    proxy_before(path, settings);
    initialize();
    find_first_slot();
    EXPECT(fn->C_InitToken(slot, so_pin, 8, (CK_UTF8CHAR_PTR) "tests                           "),
           CKR_OK);
    let_the_user_log_in(so_pin, 8);
    find_first_slot(); /* its number is another now */
}

static void softoken_begin(const char *path, const char *settings)
{
    enum { SLOT_WITH_KEYS = 2 };
    proxy_before(path,
                 text_of("x-target-init: configdir='sql:%s' flags=forceOpen\n%s", root, settings));
    initialize();
    slot = SLOT_WITH_KEYS;
    let_the_user_log_in(NULL, 0);
}

/* Each with a mechanism of its own that wraps a private key. */
static CK_BYTE iv[16];
static const struct {
    const char *path;
    void (*begin)(const char *path, const char *settings);
    CK_MECHANISM wrap;
} tokens[] = {
    {"/usr/lib/softhsm/libsofthsm2.so", softhsm_begin, {0x210a /* AES_KEY_WRAP_PAD */, NULL, 0}},
    {"/usr/lib/x86_64-linux-gnu/libsoftokn3.so", softoken_begin, {CKM_AES_CBC_PAD, iv, sizeof iv}},
};

enum { ROUNDS = 3, TURNS = 120, DRAWS = 4 };

static const unsigned crowds[] = {2, 4, 8};
static const char *const settings[] = {"", "x-pool-threads: never", "x-pool-size: 4KiB"};

enum { TOKENS = COUNT_OF(tokens), CROWDS = COUNT_OF(crowds), SETTINGS = COUNT_OF(settings) };

static CK_BYTE data[] = "what is digested";
static pthread_barrier_t barrier;

/* What a thread found wrong, "" if nothing; and how often it drew. */
static struct worker {
    const char *wrong;
    CK_RV rv;
    unsigned draws;
} workers[THREADS_MOST];

#define MUST(call)                                                                                 \
    do {                                                                                           \
        CK_RV got_ = (call);                                                                       \
        if (got_ != CKR_OK && worker->wrong == NULL) {                                             \
            worker->wrong = #call;                                                                 \
            worker->rv = got_;                                                                     \
        }                                                                                          \
    } while (0)

static void draw_some(struct worker *worker, CK_SESSION_HANDLE own)
{
    CK_BYTE piece[PIECE_BYTES], large[2000];
    for (int i = 0; i < DRAWS; i++) {
        MUST(fn->C_GenerateRandom(own, piece, sizeof piece));
        drawn(piece);
    }
    if (++worker->draws % 16 == 0)
        MUST(fn->C_GenerateRandom(own, large, sizeof large));
}

/* The digest of the same bytes is always the same: an operation that another thread disturbed has another. */
static void digest(struct worker *worker, CK_SESSION_HANDLE own)
{
    static _Atomic uint64_t first;
    CK_MECHANISM sha256 = {CKM_SHA256, NULL, 0};
    CK_BYTE made[32];
    CK_ULONG made_bytes = sizeof made;
    uint64_t start;
    uint64_t none = 0;
    MUST(fn->C_DigestInit(own, &sha256));
    MUST(fn->C_DigestUpdate(own, data, 4));
    MUST(fn->C_DigestUpdate(own, data + 4, sizeof data - 4));
    MUST(fn->C_DigestFinal(own, made, &made_bytes));
    memcpy(&start, made, sizeof start);
    if (!atomic_compare_exchange_strong(&first, &none, start) && none != start)
        worker->wrong = "a digest differs";
}

/* All threads share the login of the token: one more is answered so, as by the token alone. */
static void log_in(struct worker *worker, CK_SESSION_HANDLE own)
{
    CK_RV rv = fn->C_Login(own, CKU_USER, pin, 4);
    if (rv != CKR_USER_ALREADY_LOGGED_IN)
        MUST(rv);
}

static void turn(struct worker *worker, unsigned number)
{
    CK_TOKEN_INFO token;
    CK_SESSION_HANDLE own = CK_INVALID_HANDLE;
    MUST(fn->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &own));
    draw_some(worker, own);
    digest(worker, own);
    if (number % 16 == 5)
        MUST(fn->C_SeedRandom(own, data, sizeof data));
    if (number % 16 == 7)
        log_in(worker, own);
    MUST(fn->C_GetSessionInfo(own, &(CK_SESSION_INFO){0}));
    MUST(fn->C_GetTokenInfo(slot, &token));
    MUST(fn->C_CloseSession(own));
    if (fn->C_GetSessionInfo(own, &(CK_SESSION_INFO){0}) == CKR_OK && worker->wrong == NULL)
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

TEST_EACH(threads_on_a_real_token_are_answered_as_by_the_token_alone, 0, CROWDS *TOKENS *SETTINGS)
{
    unsigned count = crowds[_i % CROWDS];
    const char *path = tokens[_i / CROWDS % TOKENS].path;
    tokens[_i / CROWDS % TOKENS].begin(path, settings[_i / CROWDS / TOKENS]);
    pthread_barrier_init(&barrier, NULL, count);
    for (unsigned i = 0; i < count; i++)
        start_threads(1, work, &workers[i]);
    join_threads();
    for (unsigned i = 0; i < count; i++)
        ck_assert_msg(workers[i].wrong == NULL, "%s: thread %u: %s (0x%lx)", path, i,
                      workers[i].wrong, workers[i].rv);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    ck_assert_uint_eq(drawn_once(), (size_t)count * ROUNDS * TURNS * DRAWS);
}

static CK_BBOOL yes = CK_TRUE, no = CK_FALSE;
static CK_BYTE f4[] = {1, 0, 1};

static CK_RV make_rsa(CK_FUNCTION_LIST *by, CK_ULONG bits, CK_OBJECT_HANDLE *private_key)
{
    CK_MECHANISM mechanism = {CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 0};
    CK_OBJECT_HANDLE public_key;
    CK_ATTRIBUTE public[] = {{CKA_MODULUS_BITS, &bits, sizeof bits},
                             {CKA_PUBLIC_EXPONENT, f4, sizeof f4}};
    CK_ATTRIBUTE private[] = {{CKA_SIGN, &yes, sizeof yes},
                              {CKA_EXTRACTABLE, &yes, sizeof yes},
                              {CKA_SENSITIVE, &no, sizeof no}};
    return by->C_GenerateKeyPair(session, &mechanism, public, 2, private, 3, &public_key,
                                 private_key);
}

/* The token's own list is not guarded. What is unwrapped shows its size only then: it is gone again, and so is its
 * handle. */
TEST_EACH(rsa_keys_are_measured, 0, 2)
{
    static const CK_ULONG sizes[] = {1024, 2048};
    CK_MECHANISM wrap = tokens[_i].wrap, rsa = {CKM_RSA_PKCS, NULL, 0};
    CK_MECHANISM aes_gen = {CKM_AES_KEY_GEN, NULL, 0};
    CK_ULONG aes_bytes = 32;
    CK_OBJECT_CLASS class = CKO_PRIVATE_KEY;
    CK_KEY_TYPE type = CKK_RSA;
    CK_ATTRIBUTE aes_key[] = {{CKA_VALUE_LEN, &aes_bytes, sizeof aes_bytes},
                              {CKA_WRAP, &yes, sizeof yes},
                              {CKA_UNWRAP, &yes, sizeof yes}};
    CK_ATTRIBUTE key[] = {{CKA_CLASS, &class, sizeof class},
                          {CKA_KEY_TYPE, &type, sizeof type},
                          {CKA_SIGN, &yes, sizeof yes}};
    CK_OBJECT_HANDLE aes, private, unwrapped;
    SKIP_IF(access(tokens[_i].path, R_OK) != 0, "the token is not installed");
    tokens[_i].begin(tokens[_i].path, "x-disabled-algorithms: RSA keySize < 2048");
    CK_FUNCTION_LIST *bare = bare_list();
    session = open_session(slot, CKF_RW_SESSION);
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_OK);
    EXPECT(bare->C_GenerateKey(session, &aes_gen, aes_key, 3, &aes), CKR_OK);
    for (size_t i = 0; i < 2; i++) {
        CK_RV wanted = i == 0 ? CKR_KEY_SIZE_RANGE : CKR_OK;
        CK_BYTE wrapped[2048];
        CK_ULONG wrapped_bytes = sizeof wrapped;
        EXPECT(make_rsa(fn, sizes[i], &private), wanted);
        EXPECT(make_rsa(bare, sizes[i], &private), CKR_OK);
        EXPECT(bare->C_WrapKey(session, &wrap, aes, private, wrapped, &wrapped_bytes), CKR_OK);
        EXPECT(fn->C_UnwrapKey(session, &wrap, aes, wrapped, wrapped_bytes, key, 3, &unwrapped),
               wanted);
        ck_assert_int_eq(unwrapped == CK_INVALID_HANDLE, wanted != CKR_OK);
        EXPECT(fn->C_SignInit(session, &rsa, private), wanted);
    }

    /* What is no more is for the token to judge, in its own words. */
    EXPECT(fn->C_DestroyObject(session, unwrapped), CKR_OK);
    EXPECT(fn->C_SignInit(session, &rsa, unwrapped), bare->C_SignInit(session, &rsa, unwrapped));
}
