/* test_protection.c - what the kernel has noted of the pool's memory. */
#include "served.h"

#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
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
