/* test_unload_busy.c - dlclose() and exit() in the middle of something: a call to the token, a fork, a draw. */
#include "run.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unload_fixture.h"

enum { ROUNDS = 5 };

static uint8_t bytes[64];

static void (*gate)(bool);
static bool (*is_at_gate)(void);
static pid_t closer;
static atomic_bool closing, opened;

static void *open_gate_once_unloading(void *unused)
{
    (void)unused;
    while (!atomic_load(&closing) || !thread_sleeps(closer))
        sched_yield();
    atomic_store(&opened, true);
    gate(false);
    return NULL;
}

/* The thread is in a call to the token, and the gate keeps it there. */
static void lock_the_thread_in(void)
{
    CK_SESSION_HANDLE session = open_session(0, 0);
    /* Of the same target that the proxy has loaded, while it is loaded. */
    void *handle = dlopen(target_path("counting"), RTLD_NOW | RTLD_NOLOAD);
    ck_assert_ptr_nonnull(handle);
    *(void **)&gate = dlsym(handle, "counting_gate");
    *(void **)&is_at_gate = dlsym(handle, "counting_is_at_gate");
    dlclose(handle);
    gate(true);
    words_draw(session, 16, 2048);
    words_draw_until(session, is_at_gate);
}

/* The call does not end before somebody waits in dlclose(). */
static void unload_while_the_thread_is_in_a_call(void)
{
    pthread_t opener;
    load(getenv("TEST_MODULE"));
    initialize();
    lock_the_thread_in();
    closer = (pid_t)syscall(SYS_gettid);
    atomic_store(&closing, false);
    atomic_store(&opened, false);
    ck_assert_int_eq(pthread_create(&opener, NULL, open_gate_once_unloading, NULL), 0);
    atomic_store(&closing, true);
    unload();
    ck_assert(atomic_load(&opened));
    pthread_join(opener, NULL);
}

START_TEST(a_call_of_the_thread_is_waited_for)
{
    begin("x-pool-max-age: 1min");
    unload();
    for (int i = 0; i < ROUNDS; i++) {
        unload_while_the_thread_is_in_a_call();
        expect_nothing_of_us();
    }
    words_check(500);
}
END_TEST

static bool thread_sleeps_for_good(void)
{
    char path[300];
    char call[64] = "";
    bool pauses = false;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *comm = entry->d_name[0] != '.' ? fopen(path, "re") : NULL;
        if (comm == NULL)
            continue;
        bool ours = fgets(call, sizeof call, comm) != NULL && strcmp(call, "p11-proxy-fill\n") == 0;
        fclose(comm);
        snprintf(path, sizeof path, "/proc/self/task/%s/syscall", entry->d_name);
        FILE *system_call = ours ? fopen(path, "re") : NULL;
        if (system_call == NULL)
            continue;
        long number = -1;
        if (fscanf(system_call, "%ld", &number) == 1)
#ifdef SYS_pause
            pauses = pauses || number == SYS_pause;
#else
            pauses = pauses || number == SYS_ppoll;
#endif
        fclose(system_call);
    }
    closedir(tasks);
    return pauses;
}

START_TEST(a_call_that_wants_the_loader_is_left_behind_and_nothing_breaks)
{
    begin("x-pool-max-age: 1min");
    unload();
    setenv("COUNTING_WANTS_LOADER", "1", 1);
    unload_while_the_thread_is_in_a_call();
    /* It comes back to what is left of us, and stays there. */
    ck_assert(wait_for(thread_sleeps_for_good));
    ck_assert(is_mapped(target_path("counting")));
    unsetenv("COUNTING_WANTS_LOADER");
    ck_assert_uint_eq(messages_with("call to the token does not end"), 1);

    load(getenv("TEST_MODULE"));
    EXPECT(fn->C_Initialize(&os_locking), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    words_draw(open_session(0, 0), 16, 8192);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    EXPECT(fn->C_Initialize(&os_locking), CKR_OK);
    words_draw(open_session(0, 0), 16, 8192);
    unload();
    words_check(1500);
}
END_TEST

START_TEST(a_call_that_hangs_is_left_behind_and_the_next_life_has_a_thread_of_its_own)
{
    begin("x-pool-max-age: 1min");
    initialize();
    lock_the_thread_in();
    unload();
    ck_assert_uint_eq(messages_with("call to the token does not end"), 1);

    load(getenv("TEST_MODULE"));
    EXPECT(fn->C_Initialize(&os_locking), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    EXPECT(fn->C_Initialize(&os_locking), CKR_OK);
    words_draw(open_session(0, 0), 16, 8192);
    gate(false);
    ck_assert(wait_for(thread_sleeps_for_good));
    words_draw(open_session(0, 0), 16, 8192);
    unload();
    words_check(900);
}
END_TEST
/* Ends the child, with the number of the step that failed. No assertion of Check's in there. */
#define CHILD_EXPECT(step, condition)                                                              \
    do {                                                                                           \
        if (!(condition))                                                                          \
            _exit(step);                                                                           \
    } while (0)

static void reap(pid_t child)
{
    int status = 0;
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "the child ended by signal %d", WTERMSIG(status));
    ck_assert_msg(WEXITSTATUS(status) == 0, "the child failed at step %d", WEXITSTATUS(status));
}

static void child_unloads(void)
{
    CK_C_GetFunctionList get_list;
    CK_SESSION_HANDLE session;
    alarm(CHILD_HANGS_S);
    for (int i = 0; i < ROUNDS; i++) {
        CHILD_EXPECT(1, dlclose(proxy) == 0);
        CHILD_EXPECT(2, !is_mapped(getenv("TEST_MODULE")));
        CHILD_EXPECT(3, !is_mapped(target_path("counting")));
        CHILD_EXPECT(4, (proxy = dlopen(getenv("TEST_MODULE"), RTLD_NOW)) != NULL);
        *(void **)&get_list = dlsym(proxy, "C_GetFunctionList");
        CHILD_EXPECT(5, get_list(&fn) == CKR_OK);
        CHILD_EXPECT(6, fn->C_Initialize(&os_locking) == CKR_OK);
        CHILD_EXPECT(7, fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session) == CKR_OK);
        for (int k = 0; k < 64; k++) {
            CHILD_EXPECT(8, fn->C_GenerateRandom(session, bytes, sizeof bytes) == CKR_OK);
            words_note(bytes, sizeof bytes);
        }
    }
    _exit(0);
}

START_TEST(a_forked_child_unloads_and_loads_anew)
{
    if (!CHILDREN_CAN_RUN)
        return;
    begin("x-pool-max-age: 1min");
    initialize();
    CK_SESSION_HANDLE session = open_session(0, 0);
    words_draw(session, 16, 8192);
    pid_t child = fork();
    if (child == 0)
        child_unloads();
    reap(child);
    words_draw(session, 16, 8192);
    words_check(2000);
}
END_TEST

START_TEST(forks_after_unloading_are_harmless)
{
    begin("");
    unload();
    for (int i = 0; i < 20; i++) {
        load(getenv("TEST_MODULE"));
        initialize();
        words_draw(open_session(0, 0), 16, 2048);
        unload();
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        reap(child);
    }
}
END_TEST

static atomic_bool forks;

static void *fork_meanwhile(void *unused)
{
    (void)unused;
    while (atomic_load(&forks)) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
    }
    return NULL;
}

START_TEST(forks_beside_unloading_are_harmless)
{
    pthread_t forker;
    unsetenv("COUNTING_LOG");
    begin("");
    unload();
    atomic_store(&forks, true);
    ck_assert_int_eq(pthread_create(&forker, NULL, fork_meanwhile, NULL), 0);
    for (int i = 0; i < 100; i++) {
        load(getenv("TEST_MODULE"));
        initialize();
        words_draw(open_session(0, 0), 16, 2048);
        unload();
    }
    atomic_store(&forks, false);
    pthread_join(forker, NULL);
}
END_TEST

static void *at_end;

/* And lets the thread return from the call that it is in. */
static void close_at_end(void)
{
    dlclose(at_end);
    gate(false);
    CHILD_EXPECT(2, wait_for(thread_sleeps_for_good));
}

/* An exit with the thread in a call that does not end. first: the application's handler runs before ours. */
static void leave_by_closing_at_exit(bool first)
{
    alarm(CHILD_HANGS_S);
    if (!first)
        CHILD_EXPECT(1, atexit(close_at_end) == 0);
    begin("x-pool-max-age: 1min");
    initialize();
    at_end = proxy;
    lock_the_thread_in();
    if (first)
        CHILD_EXPECT(1, atexit(close_at_end) == 0);
    exit(0);
}

START_TEST(an_exit_handler_may_close_us_in_the_middle_of_a_call)
{
    for (int first = 0; first < 2; first++) {
        pid_t child = fork();
        if (child == 0)
            leave_by_closing_at_exit(first);
        reap(child);
    }
}
END_TEST

static atomic_uint draws;

static void *draw_for_ever(void *unused)
{
    uint8_t own[32];
    CK_SESSION_HANDLE session;
    (void)unused;
    CHILD_EXPECT(1, fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session) == CKR_OK);
    for (;;) {
        CHILD_EXPECT(2, fn->C_GenerateRandom(session, own, sizeof own) == CKR_OK);
        atomic_fetch_add(&draws, 1);
    }
    return NULL;
}

/* Handlers that were registered earlier run later: others still draw when ours are long over. */
static void draw_on(void)
{
    for (unsigned until = atomic_load(&draws) + 20000; atomic_load(&draws) < until;)
        sched_yield();
}

__attribute__((destructor)) static void draw_on_to_the_very_end(void)
{
    if (atomic_load(&draws) != 0)
        draw_on();
}

static void leave_while_others_draw(void)
{
    pthread_t thread;
    alarm(CHILD_HANGS_S);
    CHILD_EXPECT(3, atexit(draw_on) == 0);
    begin("");
    initialize();
    for (int i = 0; i < 3; i++)
        CHILD_EXPECT(4, pthread_create(&thread, NULL, draw_for_ever, NULL) == 0);
    draw_on();
    exit(0);
}

START_TEST(an_exit_takes_nothing_from_threads_that_still_draw_and_does_not_call_the_target)
{
    pid_t child = fork();
    if (child == 0)
        leave_while_others_draw();
    reap(child);
    ck_assert_uint_eq(target_calls("C_Initialize"), 1);
    ck_assert_uint_eq(target_calls("C_Finalize") + target_calls("C_CloseSession"), 0);
}
END_TEST
static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_call_of_the_thread_is_waited_for);
    tcase_add_test(tcase, a_call_that_wants_the_loader_is_left_behind_and_nothing_breaks);
    tcase_add_test(tcase,
                   a_call_that_hangs_is_left_behind_and_the_next_life_has_a_thread_of_its_own);
    tcase_add_test(tcase, a_forked_child_unloads_and_loads_anew);
    tcase_add_test(tcase, forks_after_unloading_are_harmless);
    tcase_add_test(tcase, forks_beside_unloading_are_harmless);
    tcase_add_test(tcase, an_exit_handler_may_close_us_in_the_middle_of_a_call);
    tcase_add_test(tcase,
                   an_exit_takes_nothing_from_threads_that_still_draw_and_does_not_call_the_target);
}

int main(void)
{
    return run_tests("unload_busy", add_tests);
}
