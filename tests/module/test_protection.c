/* test_protection.c - what the kernel has noted of the pool's memory, and which system calls it costs. */
#include "served.h"

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory_scan.h"

static CK_SESSION_HANDLE session;
static struct mapping mappings[MAPPINGS_MOST];

static void begin_warm(CK_C_INITIALIZE_ARGS *args, const char *settings)
{
    proxy_with(settings);
    EXPECT(fn->C_Initialize(args), CKR_OK);
    session = open_session(0, 0);
    draw(session, 16, 4096);
}

static unsigned long locked_kb(void)
{
    char line[256];
    unsigned long kb = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "VmLck:", 6) == 0)
            kb = strtoul(line + 6, NULL, 10);
    if (file != NULL)
        fclose(file);
    return kb;
}

/* Wiped on fork, left out of core files, locked; no page of it is in a child's way or in swap's. */
TEST(all_mappings_that_fork_wipes_stay_out_of_core_files_and_pools_out_of_swap)
{
    begin_warm(&no_threads, "");
    unsigned wiped = smaps_list(" wf", mappings, MAPPINGS_MOST);
    ck_assert_uint_ge(wiped, 2);
    ck_assert_uint_eq(smaps_list(" wf dd", mappings, MAPPINGS_MOST), wiped);
    ck_assert_uint_eq(smaps_list(" lo", mappings, MAPPINGS_MOST), 1);
    /* The pool's default is 64 KiB of bytes; the rest of its mapping is stripes and accounts. */
    ck_assert_uint_ge(smaps_kb(" lo", false), 64);
    ck_assert_uint_le(smaps_kb(" lo", false), 64 + 2 * 64 + 32);
    ck_assert_uint_eq(locked_kb(), smaps_kb(" lo", false));
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    ck_assert_uint_eq(locked_kb(), 0);
    EXPECT(fn->C_Initialize(&no_threads), CKR_OK);
    session = open_session(0, 0);
    draw(session, 16, 4096);
    ck_assert_uint_gt(locked_kb(), 0);
}

/* The superuser may lock without limit, unless it gives that up. */
static void lock_no_memory(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    ck_assert_int_eq((int)syscall(SYS_capget, &header, data), 0);
    data[0].effective &= ~(1U << CAP_IPC_LOCK);
    ck_assert_int_eq((int)syscall(SYS_capset, &header, data), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){0, 0}), 0);
}

TEST(where_no_memory_may_be_locked_the_pool_works_unlocked)
{
    lock_no_memory();
    begin_warm(&os_locking, "x-pool-max-age: 1min");
    small_draws_are_served_ahead(session);
    ck_assert_uint_eq(locked_kb(), 0);
}

/* What some sandboxes do to a program that locks memory. */
static bool kill_who_locks(void)
{
    static struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mlock, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mlock2, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munlock, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {.len = sizeof rules / sizeof *rules, .filter = rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(a_pool_that_is_told_so_never_asks_for_locked_memory)
{
    SKIP_IF(!kill_who_locks(), "no seccomp filters here");
    begin_warm(&os_locking, "x-pool-max-age: 1min\nx-pool-lock-memory: never");
    small_draws_are_served_ahead(session);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    initialize();
    session = open_session(0, 0);
    small_draws_are_served_ahead(session);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
}

static void live_locking(void)
{
    CHILD_EXPECT(kill_who_locks(), true);
    fn->C_Initialize(&os_locking);
    session = open_session(0, 0);
    draw(session, 16, 4096);
}

/* And one that is not told so is killed, or this filter proves nothing. */
TEST(the_filter_kills)
{
    int status = 0;
    proxy_with("");
    pid_t child = child_that(live_locking);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    SKIP_IF(WIFEXITED(status), "no seccomp filters here");
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

static atomic_uint refused_calls;
static atomic_bool has_drawn, cannot_tell;

static void count_call(int signal_number)
{
    (void)signal_number;
    atomic_fetch_add(&refused_calls, 1);
}

/* From here on, no system call of this thread is made: it is counted instead. But for the one that the target
 * makes, which asks for its pid, and the way back from the count. */
static bool count_calls(void)
{
    static struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog program = {.len = sizeof rules / sizeof *rules, .filter = rules};
    struct sigaction action = {.sa_handler = count_call};
    return sigaction(SIGSYS, &action, NULL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* It cannot even end: that would be a call. */
static void *draw_a_million_times(void *unused)
{
    uint8_t buf[16];
    uint8_t large[2048];
    (void)unused;
    /* Each thread's first call of the token has memory made for it. */
    fn->C_GenerateRandom(session, large, sizeof large);
    atomic_store(&cannot_tell, !count_calls());
    for (int i = 0; i < 1000000 && !atomic_load(&cannot_tell); i++)
        fn->C_GenerateRandom(session, buf, sizeof buf);
    atomic_store(&has_drawn, true);
    for (;;)
        continue;
    return NULL;
}

static bool it_has_drawn(void)
{
    return atomic_load(&has_drawn);
}

/* None in the pool, and none in the caller's own fills, but to wake the thread. */
TEST_EACH(a_million_draws_cost_no_system_call, 0, 2)
{
    pthread_t thread;
    script("quiet");
    begin_warm(_i == 0 ? &no_threads : &os_locking, "x-pool-size: 16MiB\nx-pool-max-age: 60min");
    for (int i = 0; i < 64; i++)
        draw(session, 1024, 64 * 1024);
    ck_assert_int_eq(pthread_create(&thread, NULL, draw_a_million_times, NULL), 0);
    WAIT_UNTIL(it_has_drawn());
    SKIP_IF(atomic_load(&cannot_tell), "no seccomp filters here");
    /* With a thread, one draw in 64 looks into the ring: it may wake the thread, and wait while that publishes. */
    unsigned made = atomic_load(&refused_calls);
    ck_assert_uint_le(made, _i == 0 ? 0U : 1000000U / 64 * 4);
}

/* The page that the kernel takes away when memory is short, and does not write to a checkpoint. */
TEST(without_its_droppable_page_a_pool_serves_nothing_older)
{
    begin_warm(&os_locking, "x-pool-max-age: 1min");
    SKIP_IF(smaps_list(" dp", mappings, MAPPINGS_MOST) == 0, "this kernel has no such pages");
    void *page = mappings[0].start;
    for (int i = 0; i < 5; i++) {
        draw(session, 16, 8192);
        let_filler_work();
        uint64_t made = words_made();
        ck_assert_uint_le(draw(session, 16, 64), made);
        made = words_made();
        memset(page, 0, (size_t)sysconf(_SC_PAGESIZE));
        ck_assert_uint_gt(draw(session, 16, 8192), made);
    }
    served_once(5 * 2048);
}

int main(void)
{
    return test_main("protection", set_up, tear_down);
}
