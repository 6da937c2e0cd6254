/* test_initialize.c - C_Initialize: what the target gets for what the caller gives, and a second call. */
#include "fixture.h"

#include <pthread.h>

static CK_INFO info;

static CK_RV make(CK_VOID_PTR_PTR mutex)
{
    *mutex = NULL;
    return CKR_OK;
}

static CK_RV use(CK_VOID_PTR mutex)
{
    (void)mutex;
    return CKR_OK;
}

/* Nothing to be found there. */
#define NOWHERE ((void *)1)

static CK_C_INITIALIZE_ARGS nothing,
    locking = {.flags = CKF_OS_LOCKING_OK, .pReserved = NOWHERE},
    no_thread = {.flags = CKF_OS_LOCKING_OK | CKF_LIBRARY_CANT_CREATE_OS_THREADS},
    callbacks = {make, use, use, use, 0, NULL},
    callbacks_and_no_thread = {make, use, use, use, CKF_LIBRARY_CANT_CREATE_OS_THREADS, NULL},
    both = {make, use, use, use, CKF_OS_LOCKING_OK, NOWHERE};

enum given {
    THE_SAME, /* the caller's own pointer, unread */
    PLAIN     /* a struct of ours: OS locking, no callbacks, the caller's pReserved */
};

static const struct {
    const CK_C_INITIALIZE_ARGS *args;
    enum given given;
    bool thread; /* may be made */
    const char *settings;
} forms[] = {
    {NULL, PLAIN, true, ""},
    {&nothing, PLAIN, true, ""},
    {&both, PLAIN, true, ""},
    {&locking, THE_SAME, true, ""},
    {&no_thread, THE_SAME, false, ""},
    {&callbacks, THE_SAME, false, ""},
    {&callbacks_and_no_thread, THE_SAME, false, ""},
    {NULL, THE_SAME, false, "x-pool-threads: never"},
    {&both, THE_SAME, false, "x-pool-threads: never"},
    {NULL, THE_SAME, false, "x-pool: off"},
    {&both, THE_SAME, false, "x-pool: off"},
};

enum { FORMS = COUNT_OF(forms), PLAIN_FORMS = 3 };

/* As C_Initialize wants them: as long as the specification says, before a page that faults. */
static CK_C_INITIALIZE_ARGS *args_of(int form)
{
    const CK_C_INITIALIZE_ARGS *args = forms[form].args;
    return args == NULL ? NULL : memcpy(before_a_fault(sizeof *args), args, sizeof *args);
}

static void is_plain(const struct target_init *got, const CK_C_INITIALIZE_ARGS *callers)
{
    static const CK_C_INITIALIZE_ARGS none;
    CK_C_INITIALIZE_ARGS plain = {.flags = CKF_OS_LOCKING_OK,
                                  .pReserved = (callers != NULL ? callers : &none)->pReserved};
    ck_assert_ptr_ne(got->pointer, callers);
    ck_assert_mem_eq(&got->args, &plain, sizeof plain);
}

/* The target complains of a thread that was not allowed. */
TEST_EACH(the_target_gets_the_callers_pointer_or_plain_os_locking, 0, FORMS)
{
    CK_C_INITIALIZE_ARGS *args = args_of(_i);
    proxy_with(forms[_i].settings);
    EXPECT(fn->C_Initialize(args), CKR_OK);
    ck_assert_uint_eq(shared->init_count, 1);
    if (forms[_i].given == THE_SAME)
        ck_assert_ptr_eq(shared->inits[0].pointer, args);
    else
        is_plain(&shared->inits[0], args);
    session = open_session(0, 0);
    if (forms[_i].thread)
        draw_until_filled(session);
    else
        draw(session, 16, 32768);
    ck_assert_int_eq(filler_thread() != 0, forms[_i].thread);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
}

static const CK_RV refusals[] = {CKR_CANT_LOCK, CKR_ARGUMENTS_BAD, CKR_NEED_TO_CREATE_THREADS,
                                 0x80004711};
enum { REFUSALS = COUNT_OF(refusals) };

/* Arguments of ours must not fail where the caller's would do; then there is no thread. */
TEST_EACH(whatever_the_target_says_to_ours_the_callers_are_tried, 0, REFUSALS *PLAIN_FORMS)
{
    script("C_Initialize locking: fail 0x%lx once", refusals[_i / PLAIN_FORMS]);
    proxy_with("");
    CK_C_INITIALIZE_ARGS *args = args_of(_i % PLAIN_FORMS);
    EXPECT(fn->C_Initialize(args), CKR_OK);
    ck_assert_uint_eq(shared->init_count, 2);
    ck_assert_ptr_eq(shared->inits[1].pointer, args);
    draw(open_session(0, 0), 16, 32768);
    ck_assert_int_eq(filler_thread(), 0);
}

TEST(the_targets_refusal_is_the_callers_answer)
{
    proxy_with("");
    for (unsigned i = 0; i < REFUSALS; i++) {
        script("C_Initialize: fail 0x%lx", refusals[i]);
        EXPECT(fn->C_Initialize(&locking), refusals[i]);
        ck_assert_uint_eq(shared->init_count, 3 * i + 1);
        EXPECT(fn->C_Initialize(NULL), refusals[i]);
        EXPECT(fn->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
        EXPECT(fn->C_GetInfo(&info), CKR_CRYPTOKI_NOT_INITIALIZED);
    }
    script("C_Initialize: ok");
    initialize();
    draw(open_session(0, 0), 16, 1024);
}

TEST_EACH(a_configured_string_stands_where_the_reserved_pointer_does, 0, 6)
{
    proxy_with("x-target-init: configdir='/a b'");
    EXPECT(fn->C_Initialize(args_of(_i)), CKR_OK);
    ck_assert_str_eq(shared->inits[0].args.pReserved, "configdir='/a b'");
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
}

TEST(whoever_requires_a_thread_is_told_that_there_is_none)
{
    proxy_with("x-pool-threads: require");
    EXPECT(fn->C_Initialize(&no_thread), CKR_NEED_TO_CREATE_THREADS);
    EXPECT(fn->C_Initialize(&callbacks), CKR_NEED_TO_CREATE_THREADS);
    ck_assert_uint_eq(shared->init_count, 0);
    EXPECT(fn->C_Initialize(&locking), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    EXPECT(fn->C_Initialize(NULL), CKR_OK);
}

TEST(some_callbacks_without_the_others_are_bad_arguments)
{
    CK_C_INITIALIZE_ARGS partial = {.CreateMutex = make};
    proxy_with("");
    EXPECT(fn->C_Initialize(&partial), CKR_ARGUMENTS_BAD);
    partial.flags = CKF_OS_LOCKING_OK;
    EXPECT(fn->C_Initialize(&partial), CKR_ARGUMENTS_BAD);
}

TEST(initialize_and_finalize_work_once_each)
{
    CK_BYTE byte;
    proxy_with("");
    EXPECT(fn->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
    EXPECT(fn->C_GetInfo(&info), CKR_CRYPTOKI_NOT_INITIALIZED);
    begin_again();
    EXPECT(fn->C_Initialize(&os_locking), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    EXPECT(fn->C_Initialize(NULL), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    draw(session, 16, 4096);
    EXPECT(fn->C_Finalize(&byte), CKR_ARGUMENTS_BAD);
    draw(session, 16, 4096);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
    EXPECT(fn->C_GenerateRandom(session, &byte, 1), CKR_CRYPTOKI_NOT_INITIALIZED);
    initialize();
    EXPECT(fn->C_GenerateRandom(session, &byte, 1), CKR_SESSION_HANDLE_INVALID);
}

/* Another library in the process uses the target directly: without locking, it may be. */
TEST(a_target_that_another_user_initialized_is_used_without_a_thread)
{
    proxy_with("x-pool-max-age: 1min");
    initialize();
    draw(open_session(0, 0), 16, 1024);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    EXPECT(bare_list()->C_Initialize(NULL), CKR_OK);
    EXPECT(fn->C_Initialize(&os_locking), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    draw(open_session(0, 0), 16, 32768);
    ck_assert_int_eq(filler_thread(), 0);
    /* And it may be gone again without a word. */
    EXPECT(bare_list()->C_Finalize(NULL), CKR_OK);
    EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &(CK_SESSION_HANDLE){0}),
           CKR_CRYPTOKI_NOT_INITIALIZED);
    initialize();
    draw(open_session(0, 0), 16, 32768);
}

TEST(a_finalize_that_fails_changes_nothing)
{
    begin_filled();
    script("C_Finalize: fail 0x6 once");
    EXPECT(fn->C_Finalize(NULL), CKR_FUNCTION_FAILED);
    draw_until_held(session);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
}

static pthread_barrier_t barrier;
static atomic_uint won, beaten, odd;

/* A thread whose C_Initialize says that it is initialised can use it at once. */
static void *initialize_at_once(void *unused)
{
    CK_ULONG count = 0;
    pthread_barrier_wait(&barrier);
    CK_RV rv = fn->C_Initialize(&os_locking);
    atomic_fetch_add(rv == CKR_OK                             ? &won
                     : rv == CKR_CRYPTOKI_ALREADY_INITIALIZED ? &beaten
                                                              : &odd,
                     1);
    if (fn->C_GetSlotList(CK_TRUE, NULL, &count) != CKR_OK)
        atomic_fetch_add(&odd, 1);
    return unused;
}

TEST(of_eight_threads_that_initialize_at_once_one_does)
{
    script("C_Initialize: last 2ms");
    proxy_with("");
    for (unsigned round = 1; round <= 20; round++) {
        pthread_barrier_init(&barrier, NULL, 8);
        start_threads(8, initialize_at_once, NULL);
        join_threads();
        ck_assert_uint_eq(won, round);
        ck_assert_uint_eq(beaten, round * 7);
        ck_assert_uint_eq(odd, 0);
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
    }
}

static CK_RV during[3];

static void call_back(void)
{
    during[0] = fn->C_Initialize(NULL);
    during[1] = fn->C_Finalize(NULL);
    during[2] = fn->C_GetInfo(&info);
}

TEST(a_target_that_comes_back_from_initialize_is_answered)
{
    script_calls_back(call_back);
    script("C_Initialize: call back");
    proxy_with("");
    EXPECT(fn->C_Initialize(NULL), CKR_OK);
    ck_assert_uint_eq(during[0], CKR_FUNCTION_FAILED);
    ck_assert_uint_eq(during[1], CKR_FUNCTION_FAILED);
    ck_assert_uint_eq(during[2], CKR_CRYPTOKI_NOT_INITIALIZED);
    ck_assert_uint_eq(shared->init_count, 1);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
}

static atomic_bool go;

static void *draw_meanwhile(void *unused)
{
    static const CK_ULONG sizes[] = {16, 64, 2048};
    CK_BYTE bytes[2048];
    for (unsigned i = 0; atomic_load(&go); i++) {
        CK_RV rv = fn->C_GenerateRandom(session, bytes, sizes[i % 3]);
        if (rv != CKR_OK && rv != CKR_CRYPTOKI_NOT_INITIALIZED && rv != CKR_SESSION_HANDLE_INVALID)
            atomic_store(&odd, (unsigned)rv);
    }
    return unused;
}

/* C_Finalize waits for what is inside, the application's draws and the filler's; and what comes while the target is
 * ending waits for that, however long it takes. */
TEST(a_draw_and_finalize_are_never_in_the_target_at_once)
{
    enum { LIVES = 20 };
    script("quiet; C_Finalize: last 2ms; C_GenerateRandom: last 300us");
    proxy_with("");
    for (int life = 0; life < LIVES; life++) {
        begin_again();
        atomic_store(&go, true);
        start_threads(4, draw_meanwhile, NULL);
        unsigned before = CALLS(C_GenerateRandom);
        WAIT_UNTIL(CALLS(C_GenerateRandom) > before + 20);
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
        atomic_store(&go, false);
        join_threads();
        ck_assert_uint_eq(odd, 0);
        ck_assert_uint_eq(shared->finalize_met, 0);
    }
}

static void *wait_for_event(void *result)
{
    CK_SLOT_ID slot = 0;
    *(CK_RV *)result = fn->C_WaitForSlotEvent(0, &slot, NULL);
    return NULL;
}

TEST(who_waits_for_an_event_holds_nobody_up_and_is_woken_at_the_end)
{
    CK_RV answer = CKR_OK;
    CK_SLOT_ID slot;
    begin("");
    script("C_WaitForSlotEvent: last 1us");
    start_threads(1, wait_for_event, &answer);
    WAIT_UNTIL(atomic_load(&shared->hits[0]) != 0); /* it is in the target */
    EXPECT(fn->C_WaitForSlotEvent(CKF_DONT_BLOCK, &slot, NULL), CKR_NO_EVENT);
    draw(session, 16, 4096);
    EXPECT(fn->C_CloseSession(session), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    join_threads();
    ck_assert_uint_eq(answer, CKR_CRYPTOKI_NOT_INITIALIZED);
}
