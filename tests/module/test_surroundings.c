/* test_surroundings.c - programs that give the proxy little: stack, descriptors, system calls, time; and that end as they
 * like, in the middle of a fill, so that the end of the process meets no call. */
#include "fixture.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool draws(void)
{
    CK_BYTE bytes[32];
    for (int i = 0; i < 200; i++)
        if (fn->C_GenerateRandom(session, bytes, sizeof bytes) != CKR_OK)
            return false;
    return true;
}

enum { OPENED = 16 };

/* Without Check's own macros, which write to a descriptor that is closed here. */
static void live_as_a_daemon(void)
{
    int opened[OPENED];
    session = child_session(&os_locking, CKR_OK);
    CHILD_EXPECT(draws(), true);
    CHILD_EXPECT(syscall(SYS_close_range, 3U, ~0U, 0U), 0);
    for (int i = 0; i < OPENED; i++)
        opened[i] = open(text_of("%s/own%d", root, i), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    for (int life = 0; life < 2; life++) {
        CHILD_EXPECT(draws(), true);
        CHILD_EXPECT(fn->C_Finalize(NULL), CKR_OK);
        for (int i = 0; i < OPENED; i++)
            CHILD_EXPECT(lseek(opened[i], 0, SEEK_END), 0);
        session = child_session(&os_locking, CKR_OK);
    }
}

/* What the program opens next gets the numbers that were ours, and stays as it is. */
TEST(a_program_that_closes_all_descriptors_keeps_those_it_opens_later)
{
    proxy_with("x-pool-max-age: 1min");
    reap(child_that(live_as_a_daemon));
}

static void *draw_for_ever(void *unused)
{
    CK_BYTE bytes[16];
    for (;;)
        fn->C_GenerateRandom(session, bytes, sizeof bytes);
    return unused;
}

/* The target sleeps, so the draw can be cancelled there. */
TEST_EACH(a_cancelled_draw_leaves_the_pool_and_the_end_whole, 0, 2)
{
    pthread_t thread;
    script("C_GenerateRandom: last 2ms");
    proxy_with(_i == 0 ? "" : "x-pool-threads: never");
    for (int life = 0; life < 5; life++) {
        begin_again();
        ck_assert_int_eq(pthread_create(&thread, NULL, draw_for_ever, NULL), 0);
        unsigned calls = CALLS(C_GenerateRandom);
        WAIT_UNTIL(CALLS(C_GenerateRandom) >= calls + 3);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        draw(session, 16, 16384);
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
    }
}

TEST(no_standard_stream_is_taken)
{
    struct stat file;
    bool taken = false;
    proxy_with("x-pool-max-age: 1min");
    int kept = dup(STDERR_FILENO);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        close(fd);
    CK_RV rv = fn->C_Initialize(&os_locking);
    session = open_session(0, 0);
    draw(session, 16, 65536);
    let_filler_work();
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        taken |= fstat(fd, &file) == 0;
    dup2(kept, STDERR_FILENO);
    dup2(kept, STDOUT_FILENO);
    ck_assert_uint_eq(rv, CKR_OK);
    ck_assert(!taken);
}

/* Whatever is opened while it lives, the log in a file included. */
TEST(no_other_program_inherits_a_descriptor)
{
    bool was_open[64];
    for (int fd = 0; fd < 64; fd++)
        was_open[fd] = fcntl(fd, F_GETFD) >= 0;
    begin("");
    draw(session, 16, 4096);
    unsigned opened = 0;
    for (int fd = 0; fd < 64; fd++) {
        int flags = was_open[fd] ? -1 : fcntl(fd, F_GETFD);
        opened += flags >= 0;
        ck_assert(flags < 0 || (flags & FD_CLOEXEC) != 0);
    }
    ck_assert_uint_ge(opened, 1);
}

static void *whole_life(void *unused)
{
    CK_BYTE bytes[2000]; /* the program needs some of its stack itself */
    (void)unused;
    initialize();
    session = open_session(0, 0);
    ck_assert(draws());
    EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
    EXPECT(fn->C_CloseSession(session), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    return NULL;
}

/* _i: what is logged meanwhile, from the depth of a list that is read. */
TEST_EACH(a_life_fits_on_the_smallest_stack, 0, 3)
{
    static const char *const logs[] = {"off", "stderr debug", "/dev/full debug"};
    pthread_t thread;
    pthread_attr_t small;
    SKIP_IF_SANITIZED(); /* its frames are larger */
    write_in_root("list", "jdk.tls.disabledAlgorithms=RC4, EC keySize < 224, NoSuchName, MD6\n");
    proxy_with(
        text_of("x-disabled-algorithms: MD5\nx-disabled-algorithms-file: %s", in_root("list")));
    setenv("P11_PROXY_LOG", logs[_i], 1);
    pthread_attr_init(&small);
    ck_assert_int_eq(pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN), 0);
    ck_assert_int_eq(pthread_create(&thread, &small, whole_life, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

#define REFUSE(number)                                                                             \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                                           \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1 /* EPERM */)

/* From here on no thread, no advice on memory, no locked memory, no socket. */
static void enter_sandbox(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(SYS_clone),
        REFUSE(SYS_clone3),
        REFUSE(SYS_madvise),
        REFUSE(SYS_mlock),
        REFUSE(SYS_mlock2),
        REFUSE(SYS_socket),
        REFUSE(SYS_membarrier),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = COUNT_OF(rules), .filter = rules};
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* _i: whether it closes before or after C_Initialize. */
TEST_EACH(a_sandbox_costs_speed_only, 0, 2)
{
    SKIP_IF_SANITIZED(); /* which needs what the sandbox refuses */
    proxy_with("x-pool-max-age: 1min");
    if (_i == 0)
        enter_sandbox();
    initialize();
    session = open_session(0, 0);
    if (_i == 1)
        enter_sandbox();
    ck_assert(draws());
    EXPECT(fn->C_CloseSession(session), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
}

static CK_BYTE bytes[64];

enum ending {
    EXIT,
    EXIT_FROM_A_THREAD,
    QUICK_EXIT,
    EXEC,
    END_OF_THE_MAIN_THREAD,
    EXIT_AFTER_FINALIZE_AND_DLCLOSE,
    EXIT_FROM_A_CHILD,
    ENDINGS
};

static void *exit_here(void *unused)
{
    exit(0);
    return unused;
}

static void finalize_at_exit(void)
{
    CK_RV rv = fn->C_Finalize(NULL);
    if (rv != CKR_OK && rv != CKR_CRYPTOKI_NOT_INITIALIZED)
        _exit(7);
}

static void draw_at_exit(void)
{
    for (int i = 0; i < 200; i++)
        fn->C_GenerateRandom(session, bytes, sizeof bytes);
}

static void unload_at_exit(void)
{
    dlclose(proxy);
}

static void draw_and_exit(void)
{
    fn->C_GenerateRandom(session, bytes, sizeof bytes);
    exit(0);
}

static void end(enum ending ending)
{
    switch (ending) {
    case EXIT_FROM_A_THREAD:
        start_threads(1, exit_here, NULL);
        pause();
        break;
    case QUICK_EXIT:
        quick_exit(0);
    case EXEC:
        execl("/bin/true", "true", (char *)NULL);
        break;
    case END_OF_THE_MAIN_THREAD:
        pthread_exit(NULL);
    case EXIT_AFTER_FINALIZE_AND_DLCLOSE:
        finalize_at_exit();
        unload_at_exit();
        break;
    case EXIT_FROM_A_CHILD:
        reap(child_that(draw_and_exit));
        break;
    default:
        break;
    }
    exit(0);
}

static void (*const at_exits[])(void) = {NULL, finalize_at_exit, draw_at_exit, unload_at_exit};
enum { AT_EXITS = COUNT_OF(at_exits) };

/* Handlers of the application run after ours if they were registered before C_Initialize, else before. */
static int way_out;
static bool registers_early;

static void live_and_end(void)
{
    void (*at_exit)(void) = at_exits[way_out / ENDINGS];
    if (at_exit != NULL && registers_early)
        atexit(at_exit);
    session = child_session(&os_locking, CKR_OK);
    if (at_exit != NULL && !registers_early)
        atexit(at_exit);
    while (CALLS(C_GenerateRandom, .by = FILLER) == 0)
        CHILD_EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
    end(way_out % ENDINGS);
}

/* At exit() a target's static objects are destroyed: SoftHSM crashes if that meets a call, and this target says so. */
TEST_EACH(a_program_ends_as_it_likes_and_its_end_meets_no_call, 0, (ENDINGS + 1) * AT_EXITS)
{
    SKIP_IF_SANITIZED();
    registers_early = _i >= ENDINGS * AT_EXITS;
    way_out = registers_early ? _i % AT_EXITS * ENDINGS : _i;
    script("strict exit; C_GenerateRandom by filler: last 5ms");
    proxy_with("x-pool-max-age: 1min");
    reap(child_that(live_and_end));
}

static void exit_while_the_filler_hangs(void)
{
    begin_again();
    DRAW_UNTIL(session, script_held() == 1);
    end(way_out);
}

/* Not for ever: a second is what a call of the filler's is waited for. The main thread's end alone ends nothing then. */
TEST_EACH(a_program_may_end_though_the_token_hangs, 0, 4)
{
    SKIP_IF_SANITIZED();
    way_out = _i;
    script("C_GenerateRandom by filler: hold");
    proxy_with("x-pool-max-age: 1min");
    reap(child_that(exit_while_the_filler_hangs));
    script_release();
}

/* The proxy's own handler has run, and the target is being torn down: no call of the filler's comes after that. */
static void count_no_calls(void)
{
    unsigned calls = CALLS(C_GenerateRandom, .by = FILLER) + CALLS(C_CloseSession, .by = FILLER);
    for (int i = 0; i < 100; i++)
        fn->C_GenerateRandom(session, bytes, sizeof bytes); /* it is wanted */
    let_filler_work();
    if (CALLS(C_GenerateRandom, .by = FILLER) + CALLS(C_CloseSession, .by = FILLER) != calls)
        _exit(9);
}

static void exit_with_a_late_handler(void)
{
    atexit(count_no_calls); /* before ours, so it runs after */
    begin_filled();
    exit(0);
}

TEST(after_the_end_has_begun_the_filler_makes_no_call)
{
    SKIP_IF_SANITIZED();
    reap(child_that(exit_with_a_late_handler));
}
