/* test_surroundings.c - programs that give the proxy little: memory, stack, descriptors, system calls, time. */
#include "served.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool draws(CK_SESSION_HANDLE session)
{
    CK_BYTE bytes[32];
    for (int i = 0; i < 200; i++)
        if (fn->C_GenerateRandom(session, bytes, sizeof bytes) != CKR_OK)
            return false;
    return true;
}

enum { OPENED = 16 };

static bool open_own(int *opened)
{
    char path[128];
    for (int i = 0; i < OPENED; i++) {
        snprintf(path, sizeof path, "%s/own%d", root, i);
        opened[i] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    }
    return opened[OPENED - 1] >= 0;
}

static bool are_open_and_empty(const int *opened)
{
    bool good = true;
    for (int i = 0; i < OPENED; i++)
        good = good && lseek(opened[i], 0, SEEK_END) == 0;
    return good;
}

/* The number of what went wrong. In a process of its own, since Check has descriptors, too. */
static int live_as_a_daemon(void)
{
    int opened[OPENED];
    CK_SESSION_HANDLE session;
    if (fn->C_Initialize(&os_locking) != CKR_OK ||
        fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session) != CKR_OK || !draws(session))
        return 1;
    if (syscall(SYS_close_range, 3U, ~0U, 0U) != 0 || !open_own(opened))
        return 2;
    if (!draws(session) || fn->C_Finalize(NULL) != CKR_OK)
        return 3;
    if (!are_open_and_empty(opened))
        return 4;
    if (fn->C_Initialize(&os_locking) != CKR_OK ||
        fn->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session) != CKR_OK ||
        !draws(session) || fn->C_Finalize(NULL) != CKR_OK)
        return 5;
    return are_open_and_empty(opened) ? 0 : 6;
}

/* What the program opens next gets the numbers that were ours, and stays as it is. */
TEST(a_program_that_closes_all_descriptors_keeps_those_it_opens_later)
{
    int status = 0;
    proxy_with("x-pool-max-age: 1min");
    pid_t child = fork();
    if (child == 0)
        _exit(live_as_a_daemon());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

static void *whole_life(void *unused)
{
    (void)unused;
    initialize();
    CK_SESSION_HANDLE session = open_session(0, 0);
    ck_assert(draws(session));
    EXPECT(fn->C_CloseSession(session), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    return NULL;
}

TEST(a_life_fits_on_the_smallest_stack)
{
    pthread_t thread;
    pthread_attr_t small;
    SKIP_IF_SANITIZED(); /* its frames are larger */
    proxy_with("x-pool-max-age: 1min");
    pthread_attr_init(&small);
    ck_assert_int_eq(pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN), 0);
    ck_assert_int_eq(pthread_create(&thread, &small, whole_life, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

static void *draw_for_ever(void *session)
{
    CK_BYTE bytes[16];
    for (;;)
        fn->C_GenerateRandom(*(CK_SESSION_HANDLE *)session, bytes, sizeof bytes);
    return NULL;
}

/* The target sleeps, so the draw can be cancelled there. */
TEST_EACH(a_cancelled_draw_leaves_the_pool_and_the_end_whole, 0, 2)
{
    pthread_t thread;
    script("C_GenerateRandom: last 2ms");
    proxy_with(_i == 0 ? "" : "x-pool-threads: never");
    for (int life = 0; life < 5; life++) {
        initialize();
        CK_SESSION_HANDLE session = open_session(0, 0);
        ck_assert_int_eq(pthread_create(&thread, NULL, draw_for_ever, &session), 0);
        unsigned calls = CALLS(C_GenerateRandom);
        WAIT_UNTIL(CALLS(C_GenerateRandom) >= calls + 3);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        draw(session, 16, 16384);
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
    }
    served_once(1000);
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
    CK_SESSION_HANDLE session = open_session(0, 0);
    draw(session, 16, 65536);
    let_filler_work();
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        taken |= fstat(fd, &file) == 0;
    dup2(kept, STDERR_FILENO);
    dup2(kept, STDOUT_FILENO);
    ck_assert_uint_eq(rv, CKR_OK);
    ck_assert(!taken);
}

#define REFUSE(number)                                                                             \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                                           \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1 /* EPERM */)

static void filter(struct sock_filter *rules, size_t count)
{
    struct sock_fprog program = {.len = (unsigned short)count, .filter = rules};
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

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
    filter(rules, sizeof rules / sizeof *rules);
}

/* Newer architectures never had these. */
#ifndef SYS_open
enum { SYS_open = 0xffff, SYS_mkdir = SYS_open, SYS_unlink = SYS_open, SYS_rename = SYS_open };
#endif

/* From here on nothing is written to, made, renamed or removed: the program dies of the attempt. */
static void enter_read_only_world(void)
{
    enum { FLAGS_TO_WRITE = O_WRONLY | O_RDWR | O_CREAT };
    struct sock_filter rules[] = {
        /* 0 */ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        /* 1 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 9 - 2, 0),
        /* 2 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 7 - 3, 0),
        /* 3 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdir, 11 - 4, 0),
        /* 4 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unlink, 11 - 5, 0),
        /* 5 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rename, 11 - 6, 0),
        /* 6 */ BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        /* 7 */ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        /* 8 */ BPF_JUMP(BPF_JMP | BPF_JA, 10 - 9, 0, 0),
        /* 9 */ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        /* 10 */ BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, FLAGS_TO_WRITE, 11 - 11, 12 - 11),
        /* 11 */ BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        /* 12 */ BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    filter(rules, sizeof rules / sizeof *rules);
}

/* From here on no descriptor is opened that a program started from here would inherit, not for a moment. */
static void enter_world_without_inheritance(void)
{
    struct sock_filter rules[] = {
        /* 0 */ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        /* 1 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 6 - 2, 0),
        /* 2 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 8 - 3, 0),
        /* 3 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 10 - 4, 0),
        /* 4 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 12 - 5, 0),
        /* 5 */ BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        /* 6 */ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        /* 7 */ BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CLOEXEC, 13 - 8, 12 - 8),
        /* 8 */ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        /* 9 */ BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, SOCK_CLOEXEC, 13 - 10, 12 - 10),
        /* 10 */ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        /* 11 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_DUPFD, 12 - 12, 13 - 12),
        /* 12 */ BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        /* 13 */ BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    filter(rules, sizeof rules / sizeof *rules);
}

static void live_twice_in(void (*enter)(void), const char *log)
{
    char settings[512];
    int status = 0;
    script("quiet");
    snprintf(settings, sizeof settings, "x-target: %s\nx-log: %s debug", target_path("scripted"),
             log);
    proxy_configured(settings);
    capture_stderr();
    pid_t child = fork();
    if (child == 0) {
        enter();
        for (int life = 0; life < 2; life++)
            whole_life(NULL);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

TEST(nothing_is_written_to_any_file)
{
    SKIP_IF_SANITIZED();
    live_twice_in(enter_read_only_world, "stderr");
    ck_assert_uint_ge(messages_with("version"), 2);
}

TEST_EACH(no_other_program_inherits_a_descriptor, 0, 2)
{
    char log[128];
    SKIP_IF_SANITIZED();
    snprintf(log, sizeof log, "%s/log", root);
    live_twice_in(enter_world_without_inheritance, _i == 0 ? log : "syslog");
    ck_assert_uint_ge(messages_with("version"), _i == 0 ? 2U : 0U);
}

/* _i: whether it closes before or after C_Initialize. */
TEST_EACH(a_sandbox_costs_speed_only, 0, 2)
{
    SKIP_IF_SANITIZED(); /* which needs what the sandbox refuses */
    proxy_with("x-pool-max-age: 1min");
    if (_i == 0)
        enter_sandbox();
    initialize();
    CK_SESSION_HANDLE session = open_session(0, 0);
    if (_i == 1)
        enter_sandbox();
    ck_assert(draws(session));
    EXPECT(fn->C_CloseSession(session), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
}

int main(void)
{
    return test_main("surroundings", set_up, tear_down);
}
