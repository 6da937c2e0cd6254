/* test_init_args.c - what the target's C_Initialize is given for what the caller gave ours. */
#include "run.h"

#include "inits.h"

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

static struct init_args_of_nss nothing = {{.flags = 0}, NULL};
static struct init_args_of_nss locking = {{.flags = CKF_OS_LOCKING_OK, .pReserved = NOWHERE},
                                          NOWHERE};
static struct init_args_of_nss no_thread = {
    {.flags = CKF_OS_LOCKING_OK | CKF_LIBRARY_CANT_CREATE_OS_THREADS}, NOWHERE};
static struct init_args_of_nss callbacks = {{make, use, use, use, 0, NULL}, NULL};
static struct init_args_of_nss both = {{make, use, use, use, CKF_OS_LOCKING_OK, NOWHERE}, NULL};

enum given {
    THE_SAME, /* the caller's own pointer, unread */
    PLAIN     /* a struct of ours: OS locking, no callbacks, the caller's pReserved */
};

static const struct {
    const char *name;
    void *args;
    enum given given;
    const char *settings;
} forms[] = {
    {"NULL", NULL, PLAIN, ""},
    {"no flag", &nothing, PLAIN, ""},
    {"OS locking", &locking, THE_SAME, ""},
    {"no threads", &no_thread, THE_SAME, ""},
    {"callbacks", &callbacks, THE_SAME, ""},
    {"both", &both, PLAIN, ""},
    {"NULL, no thread wanted", NULL, THE_SAME, "x-pool-threads: never"},
    {"both, no thread wanted", &both, THE_SAME, "x-pool-threads: never"},
    {"NULL, no pool", NULL, THE_SAME, "x-pool: off"},
    {"both, no pool", &both, THE_SAME, "x-pool: off"},
};

static struct inits *begin(const char *settings)
{
    proxy_before("inits", settings);
    return target_symbol("inits");
}

static void is_plain(const CK_C_INITIALIZE_ARGS *got, const CK_C_INITIALIZE_ARGS *callers)
{
    CK_FLAGS flags = callers != NULL ? callers->flags : 0;
    ck_assert_uint_eq(got->flags, flags | CKF_OS_LOCKING_OK);
    ck_assert(got->CreateMutex == NULL && got->DestroyMutex == NULL && got->LockMutex == NULL &&
              got->UnlockMutex == NULL);
    ck_assert_ptr_eq(got->pReserved, callers != NULL ? callers->pReserved : NULL);
}

START_TEST(the_target_gets_the_callers_pointer_or_plain_os_locking)
{
    struct inits *inits = begin(forms[_i].settings);
    EXPECT(fn->C_Initialize(forms[_i].args), CKR_OK);
    ck_assert_uint_eq(inits->calls, 1);
    if (forms[_i].given == THE_SAME)
        ck_assert_ptr_eq(inits->got[0].pointer, forms[_i].args);
    else
        is_plain(&inits->got[0].args, forms[_i].args);
}
END_TEST

START_TEST(a_target_that_cannot_lock_is_asked_again_as_the_caller_asked)
{
    struct inits *inits = begin("");
    inits->answers[0] = CKR_CANT_LOCK;
    EXPECT(fn->C_Initialize(forms[_i].args), forms[_i].given == PLAIN ? CKR_OK : CKR_CANT_LOCK);
    if (forms[_i].given == PLAIN) {
        ck_assert_uint_eq(inits->calls, 2);
        ck_assert_ptr_eq(inits->got[1].pointer, forms[_i].args);
    } else
        ck_assert_uint_eq(inits->calls, 1);
}
END_TEST

START_TEST(the_targets_refusal_is_the_callers_answer)
{
    static const CK_RV refusals[] = {CKR_ARGUMENTS_BAD, CKR_HOST_MEMORY, CKR_NEED_TO_CREATE_THREADS,
                                     CKR_CANT_LOCK, 0x80004711};
    struct inits *inits = begin("");
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        inits->calls = 0;
        inits->answers[0] = inits->answers[1] = refusals[i];
        EXPECT(fn->C_Initialize(&locking), refusals[i]);
        ck_assert_uint_eq(inits->calls, 1);
        inits->calls = 0;
        EXPECT(fn->C_Initialize(NULL), refusals[i]);
        EXPECT(fn->C_Finalize(NULL), CKR_OK); /* the target's own answer */
    }
}
END_TEST

START_TEST(a_configured_string_stands_where_the_reserved_pointer_does)
{
    struct inits *inits = begin("x-target-init: configdir='/a b'");
    EXPECT(fn->C_Initialize(forms[_i].args), CKR_OK);
    ck_assert_str_eq(inits->got[0].args.pReserved, "configdir='/a b'");
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
}
END_TEST

/* A thread is demanded that may not be made. */
START_TEST(whoever_requires_a_thread_is_told_that_there_is_none)
{
    struct inits *inits = begin("x-pool-threads: require");
    EXPECT(fn->C_Initialize(&no_thread), CKR_NEED_TO_CREATE_THREADS);
    EXPECT(fn->C_Initialize(&callbacks), CKR_NEED_TO_CREATE_THREADS);
    ck_assert_uint_eq(inits->calls, 0);
    EXPECT(fn->C_Initialize(&locking), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    inits->calls = 0;
    EXPECT(fn->C_Initialize(NULL), CKR_OK);
}
END_TEST

START_TEST(a_strict_target_gets_what_it_needs)
{
    knob("NEEDS_LOCKING", "1");
    proxy_before("counting", _i == 0 ? "" : "x-pool-threads: never");
    EXPECT(fn->C_Initialize(NULL), _i == 0 ? CKR_OK : CKR_CANT_LOCK);
    CK_C_INITIALIZE_ARGS partial = {.CreateMutex = make};
    if (_i == 1)
        EXPECT(fn->C_Initialize(&partial), CKR_ARGUMENTS_BAD);
}
END_TEST

START_TEST(some_callbacks_without_the_others_are_bad_arguments)
{
    CK_C_INITIALIZE_ARGS partial = {.CreateMutex = make};
    proxy_before("counting", "");
    EXPECT(fn->C_Initialize(&partial), CKR_ARGUMENTS_BAD);
    partial.flags = CKF_OS_LOCKING_OK;
    EXPECT(fn->C_Initialize(&partial), CKR_ARGUMENTS_BAD);
}
END_TEST

/* A target without locks has one caller at a time. _i: it cannot lock, or somebody else started it so. */
START_TEST(a_target_without_locks_meets_no_thread_of_ours)
{
    CK_FUNCTION_LIST_PTR bare;
    CK_BYTE bytes[64];
    proxy_before("counting", "x-pool-max-age: 1min");
    EXPECT(((CK_C_GetFunctionList)target_symbol("C_GetFunctionList"))(&bare), CKR_OK);
    if (_i == 0)
        knob("CANNOT_LOCK", "1");
    else {
        /* A life with locks before it does not count. */
        initialize();
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
        EXPECT(bare->C_Initialize(NULL), CKR_OK);
    }
    EXPECT(fn->C_Initialize(NULL), _i == 0 ? CKR_OK : CKR_CRYPTOKI_ALREADY_INITIALIZED);
    CK_SESSION_HANDLE session = open_session(0, 0);
    for (int i = 0; i < 1000; i++)
        EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
    wait_until_quiet();
    ck_assert_uint_eq(target_calls_by_others("C_GenerateRandom"), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    int count = sizeof forms / sizeof *forms;
    tcase_add_loop_test(tcase, the_target_gets_the_callers_pointer_or_plain_os_locking, 0, count);
    tcase_add_loop_test(tcase, a_target_that_cannot_lock_is_asked_again_as_the_caller_asked, 0, 6);
    tcase_add_test(tcase, the_targets_refusal_is_the_callers_answer);
    tcase_add_loop_test(tcase, a_configured_string_stands_where_the_reserved_pointer_does, 0, 6);
    tcase_add_test(tcase, whoever_requires_a_thread_is_told_that_there_is_none);
    tcase_add_loop_test(tcase, a_strict_target_gets_what_it_needs, 0, 2);
    tcase_add_test(tcase, some_callbacks_without_the_others_are_bad_arguments);
    tcase_add_loop_test(tcase, a_target_without_locks_meets_no_thread_of_ours, 0, 2);
}

int main(void)
{
    return run_tests("init_args", add_tests);
}
