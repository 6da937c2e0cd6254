/* test_lifecycle.c - C_Initialize and C_Finalize: once, twice, at once, in a circle and in vain. */
#include "run.h"

#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inits.h"
#include "words_seen.h"

static CK_BYTE bytes[64];
static CK_INFO info;

static void begin(const char *settings)
{
    words_begin();
    proxy_before("counting", settings);
}

START_TEST(initialize_and_finalize_work_once_each)
{
    begin("");
    EXPECT(fn->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
    EXPECT(fn->C_GetInfo(&info), CKR_CRYPTOKI_NOT_INITIALIZED);
    EXPECT(fn->C_Initialize(&os_locking), CKR_OK);
    EXPECT(fn->C_Initialize(&os_locking), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    EXPECT(fn->C_Initialize(NULL), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    CK_SESSION_HANDLE session = open_session(0, 0);
    EXPECT(fn->C_GenerateRandom(session, bytes, 8), CKR_OK);
    EXPECT(fn->C_Finalize(bytes), CKR_ARGUMENTS_BAD);
    EXPECT(fn->C_GenerateRandom(session, bytes, 8), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
    EXPECT(fn->C_GetInfo(&info), CKR_CRYPTOKI_NOT_INITIALIZED);
}
END_TEST

START_TEST(two_users_of_one_process_share_one_life)
{
    begin("");
    EXPECT(fn->C_Initialize(&os_locking), CKR_OK);
    EXPECT(fn->C_Initialize(NULL), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    CK_SESSION_HANDLE session = open_session(0, 0);
    words_draw(session, 16, 4096);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    EXPECT(fn->C_GenerateRandom(session, bytes, 8), CKR_CRYPTOKI_NOT_INITIALIZED);
    EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session),
           CKR_CRYPTOKI_NOT_INITIALIZED);
    EXPECT(fn->C_Initialize(NULL), CKR_OK);
    session = open_session(0, 0);
    words_draw(session, 16, 4096);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    words_check(900);
}
END_TEST

/* Another library in the process uses the target directly. */
START_TEST(a_target_that_is_initialized_already_is_used_and_can_be_lost)
{
    CK_FUNCTION_LIST_PTR bare;
    begin("");
    EXPECT(((CK_C_GetFunctionList)target_symbol("C_GetFunctionList"))(&bare), CKR_OK);
    EXPECT(bare->C_Initialize(&os_locking), CKR_OK);
    EXPECT(fn->C_Initialize(&os_locking), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    CK_SESSION_HANDLE session = open_session(0, 0);
    words_draw(session, 16, 4096);
    EXPECT(bare->C_Finalize(NULL), CKR_OK);
    EXPECT(fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session),
           CKR_CRYPTOKI_NOT_INITIALIZED);
    EXPECT(fn->C_Initialize(&os_locking), CKR_OK);
    session = open_session(0, 0);
    words_draw(session, 16, 4096);
    words_check(900);
}
END_TEST

START_TEST(a_target_that_another_user_initialized_gets_no_thread_of_ours)
{
    CK_FUNCTION_LIST_PTR bare;
    begin("x-pool-max-age: 1min");
    EXPECT(((CK_C_GetFunctionList)target_symbol("C_GetFunctionList"))(&bare), CKR_OK);
    initialize();
    words_draw(open_session(0, 0), 16, 4096);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    /* Without locking: nobody may call it beside another. */
    EXPECT(bare->C_Initialize(NULL), CKR_OK);
    EXPECT(fn->C_Initialize(&os_locking), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    unsigned before = target_calls_by_others("C_GenerateRandom");
    words_draw(open_session(0, 0), 16, 16384);
    wait_until_quiet();
    ck_assert_uint_eq(target_calls_by_others("C_GenerateRandom"), before);
}
END_TEST

static unsigned count_in(const char *folder)
{
    unsigned count = 0;
    DIR *entries = opendir(folder);
    while (readdir(entries) != NULL)
        count++;
    closedir(entries);
    return count;
}

START_TEST(a_failed_start_leaves_nothing_behind_and_may_succeed_later)
{
    begin("");
    unsigned threads = threads_now();
    knob("INIT_CODE", "0x6");
    EXPECT(fn->C_Initialize(&os_locking), CKR_FUNCTION_FAILED);
    EXPECT(fn->C_Initialize(&os_locking), CKR_FUNCTION_FAILED);
    EXPECT(fn->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
    EXPECT(fn->C_GetInfo(&info), CKR_CRYPTOKI_NOT_INITIALIZED);
    ck_assert_uint_eq(threads_now(), threads);
    knob("INIT_CODE", NULL);
    EXPECT(fn->C_Initialize(&os_locking), CKR_OK);
    EXPECT(fn->C_GetInfo(&info), CKR_OK);
    words_draw(open_session(0, 0), 16, 1024);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
}
END_TEST

START_TEST(a_finalize_that_fails_changes_nothing)
{
    begin("");
    initialize();
    CK_SESSION_HANDLE session = open_session(0, 0);
    words_draw(session, 16, 4096);
    knob("FINALIZE_CODE", "0x6");
    EXPECT(fn->C_Finalize(NULL), CKR_FUNCTION_FAILED);
    words_draw(session, 16, 16384);
    knob("FINALIZE_CODE", NULL);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    words_check(2000);
}
END_TEST

static pthread_barrier_t barrier;
static atomic_uint won, beaten, odd;

static void *initialize_at_once(void *unused)
{
    CK_ULONG count = 0;
    (void)unused;
    pthread_barrier_wait(&barrier);
    CK_RV rv = fn->C_Initialize(&os_locking);
    atomic_fetch_add(rv == CKR_OK                             ? &won
                     : rv == CKR_CRYPTOKI_ALREADY_INITIALIZED ? &beaten
                                                              : &odd,
                     1);
    /* Whoever is told that it is initialised can use it at once. */
    if (fn->C_GetSlotList(CK_TRUE, NULL, &count) != CKR_OK)
        atomic_fetch_add(&odd, 1);
    return NULL;
}

START_TEST(of_eight_threads_that_initialize_at_once_one_does)
{
    pthread_t threads[8];
    begin("");
    knob("INIT_MS", "5");
    for (unsigned round = 1; round <= 20; round++) {
        pthread_barrier_init(&barrier, NULL, 8);
        for (int i = 0; i < 8; i++)
            ck_assert_int_eq(pthread_create(&threads[i], NULL, initialize_at_once, NULL), 0);
        for (int i = 0; i < 8; i++)
            pthread_join(threads[i], NULL);
        ck_assert_uint_eq(atomic_load(&won), round);
        ck_assert_uint_eq(atomic_load(&beaten), round * 7);
        ck_assert_uint_eq(atomic_load(&odd), 0);
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
    }
}
END_TEST

static atomic_bool go;
static CK_SESSION_HANDLE shared_session;

static void *draw_meanwhile(void *unused)
{
    (void)unused;
    uint8_t own[64];
    while (atomic_load(&go)) {
        CK_RV rv = fn->C_GenerateRandom(shared_session, own, sizeof own);
        if (rv != CKR_OK && rv != CKR_CRYPTOKI_NOT_INITIALIZED && rv != CKR_SESSION_HANDLE_INVALID)
            atomic_store(&odd, (unsigned)rv);
    }
    return NULL;
}

START_TEST(finalize_beside_threads_that_draw_is_harmless)
{
    pthread_t threads[4];
    unsetenv("COUNTING_LOG");
    begin("");
    for (int round = 0; round < 50; round++) {
        initialize();
        shared_session = open_session(0, 0);
        atomic_store(&go, true);
        for (int i = 0; i < 4; i++)
            ck_assert_int_eq(pthread_create(&threads[i], NULL, draw_meanwhile, NULL), 0);
        usleep(1000U * (unsigned)(round % 7));
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
        usleep(500);
        atomic_store(&go, false);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        ck_assert_uint_eq(atomic_load(&odd), 0);
    }
}
END_TEST

static CK_RV during_initialize, during_finalize, during_info;

static void call_back(void)
{
    during_initialize = fn->C_Initialize(NULL);
    during_finalize = fn->C_Finalize(NULL);
    during_info = fn->C_GetInfo(&info);
}

START_TEST(a_target_that_comes_back_to_us_from_initialize_is_answered)
{
    proxy_before("inits", "");
    struct inits *inits = target_symbol("inits");
    inits->during = call_back;
    EXPECT(fn->C_Initialize(NULL), CKR_OK);
    ck_assert_uint_eq(during_initialize, CKR_FUNCTION_FAILED);
    ck_assert_uint_eq(during_finalize, CKR_FUNCTION_FAILED);
    ck_assert_uint_eq(during_info, CKR_OK);
    ck_assert_uint_eq(inits->calls, 1);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
}
END_TEST

/* Less than the smallest allocation of each: what libc keeps for the moment counts as allocated. */
enum { LIVES_MAY_LEAVE_BYTES = 16 * 1024 };

START_TEST(a_thousand_lives_leave_no_thread_no_descriptor_and_no_memory)
{
    unsigned descriptors = 0;
    size_t allocated_bytes = 0;
    begin_a_thread_and_end_it();
    unsigned threads = threads_now();
    unsetenv("COUNTING_LOG");
    begin("");
    for (int i = 0; i < 1000; i++) {
        initialize();
        CK_SESSION_HANDLE session = open_session(0, 0);
        for (int k = 0; k < 20; k++)
            EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
        if (i == 50) {
            descriptors = count_in("/proc/self/fd");
            allocated_bytes = mallinfo2().uordblks;
        }
    }
    ck_assert(threads_become(threads));
    ck_assert_uint_eq(count_in("/proc/self/fd"), descriptors);
    ck_assert_uint_lt(mallinfo2().uordblks, allocated_bytes + LIVES_MAY_LEAVE_BYTES);
}
END_TEST

/* What a program does at its end, in the middle of a slow prefetch. */
static void leave(int way)
{
    alarm(CHILD_HANGS_S);
    if (fn->C_Initialize(&os_locking) != CKR_OK)
        _exit(1);
    CK_SESSION_HANDLE session;
    if (fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session) != CKR_OK)
        _exit(2);
    for (int i = 0; i < 40; i++)
        if (fn->C_GenerateRandom(session, bytes, 16) != CKR_OK)
            _exit(3);
    if (way == 1)
        dlclose(proxy);
    if (way == 2 && fn->C_Finalize(NULL) != CKR_OK)
        _exit(4);
    exit(0);
}

START_TEST(a_program_may_leave_as_it_likes)
{
    begin("");
    knob("DELAY_US", "20000");
    for (int i = 0; i < 12; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            leave(i % 3);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(status == 0, "way %d ends with status 0x%x", i % 3, (unsigned)status);
    }
}
END_TEST

/* The prefetch is in a call that does not come back. */
static void leave_it_hanging(void)
{
    alarm(CHILD_HANGS_S);
    CK_SESSION_HANDLE session;
    if (fn->C_Initialize(&os_locking) != CKR_OK)
        _exit(1);
    if (fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session) != CKR_OK)
        _exit(2);
    ((void (*)(bool))target_symbol("counting_gate"))(true);
    for (int i = 0; i < 40; i++)
        if (fn->C_GenerateRandom(session, bytes, 16) != CKR_OK)
            _exit(3);
    ((void (*)(void))target_symbol("counting_wait_at_gate"))();
    exit(0);
}

START_TEST(a_program_may_leave_though_the_token_hangs)
{
    int status = 0;
    begin("");
    pid_t child = fork();
    if (child == 0)
        leave_it_hanging();
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(status == 0, "it ends with status 0x%x", (unsigned)status);
}
END_TEST

START_TEST(fork_after_unloading_is_harmless)
{
    for (int i = 0; i < 20; i++) {
        int status = 0;
        begin("");
        initialize();
        EXPECT(fn->C_GenerateRandom(open_session(0, 0), bytes, 8), CKR_OK);
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
        dlclose(proxy);
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
    }
}
END_TEST

START_TEST(the_thread_comes_with_demand_has_a_name_and_takes_no_signals)
{
    char path[64];
    char text[4096] = "";
    sigset_t ours;
    begin_a_thread_and_end_it();
    unsigned threads = threads_now();
    begin("x-pool-max-age: 1min");
    initialize();
    CK_SESSION_HANDLE session = open_session(0, 0);
    ck_assert_uint_eq(threads_now(), threads);
    words_draw(session, 16, 8192);
    ck_assert_uint_eq(threads_now(), threads + 1);
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &ours), 0);
    ck_assert(sigisemptyset(&ours)); /* the caller's own mask is what it was */
    wait_until_quiet();
    ck_assert_int_ne(prefetch_thread(), 0); /* which goes by the name */
    snprintf(path, sizeof path, "/proc/self/task/%ld/status", prefetch_thread());
    FILE *status = fopen(path, "re");
    ck_assert_ptr_nonnull(status);
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, status), 0);
    fclose(status);
    const char *blocked = strstr(text, "SigBlk:\t");
    ck_assert_ptr_nonnull(blocked);
    unsigned long mask = strtoul(blocked + strlen("SigBlk:\t"), NULL, 16);
    ck_assert_uint_ne(mask >> (SIGTERM - 1) & 1, 0);
    ck_assert_uint_ne(mask >> (SIGALRM - 1) & 1, 0);
    ck_assert_uint_ne(mask >> (SIGUSR1 - 1) & 1, 0);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    ck_assert(threads_become(threads));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, initialize_and_finalize_work_once_each);
    tcase_add_test(tcase, two_users_of_one_process_share_one_life);
    tcase_add_test(tcase, a_target_that_is_initialized_already_is_used_and_can_be_lost);
    tcase_add_test(tcase, a_target_that_another_user_initialized_gets_no_thread_of_ours);
    tcase_add_test(tcase, a_failed_start_leaves_nothing_behind_and_may_succeed_later);
    tcase_add_test(tcase, a_finalize_that_fails_changes_nothing);
    tcase_add_test(tcase, of_eight_threads_that_initialize_at_once_one_does);
    tcase_add_test(tcase, finalize_beside_threads_that_draw_is_harmless);
    tcase_add_test(tcase, a_target_that_comes_back_to_us_from_initialize_is_answered);
    tcase_add_test(tcase, a_thousand_lives_leave_no_thread_no_descriptor_and_no_memory);
    if (UNLOADING_IS_THE_END)
        tcase_add_test(tcase, a_program_may_leave_as_it_likes);
    tcase_add_test(tcase, a_program_may_leave_though_the_token_hangs);
    if (UNLOADING_IS_THE_END)
        tcase_add_test(tcase, fork_after_unloading_is_harmless);
    tcase_add_test(tcase, the_thread_comes_with_demand_has_a_name_and_takes_no_signals);
}

int main(void)
{
    return run_tests("lifecycle", add_tests);
}
