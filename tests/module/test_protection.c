/* test_protection.c - what the kernel has noted of the pools' memory, and how much of it there is. */
#include "served.h"

#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory_scan.h"

enum { KIB = 1024, SLOTS = 16 };

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

static CK_SESSION_HANDLE sessions[SLOTS];

static void begin_with(CK_C_INITIALIZE_ARGS *args, unsigned slots, const char *settings)
{
    script("quiet; slots %u", slots);
    proxy_with(settings);
    EXPECT(fn->C_Initialize(args), CKR_OK);
    for (unsigned i = 0; i < slots; i++)
        sessions[i] = open_session(i, 0);
}

/* The kernel tells whether it can read there. */
static bool faults(const uint8_t *byte)
{
    int fd = memfd_create("byte", 0);
    bool is_bad = write(fd, byte, 1) < 0;
    close(fd);
    return is_bad;
}

TEST(a_page_before_and_one_behind_fault)
{
    long page = sysconf(_SC_PAGESIZE);
    begin_warm(&no_threads, "");
    unsigned count = smaps_list(" wf", mappings, MAPPINGS_MOST);
    ck_assert_uint_ge(count, 2); /* the state of the module, and the pool */
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *start = mappings[i].start, *end = start + mappings[i].len_bytes;
        ck_assert(faults(start - page) && faults(start - 1) && !faults(start));
        ck_assert(faults(end) && faults(end + page - 1) && !faults(end - 1));
    }
}

/* The filler has its bytes from the token, and they are not tested yet. */
TEST(the_token_writes_there_and_nowhere_else)
{
    begin_with(&os_locking, 1, "x-pool-max-age: 1min");
    script("C_GenerateRandom by filler: hold");
    DRAW_UNTIL(sessions[0], script_held() == 1);
    unsigned count = smaps_list(" wf", mappings, MAPPINGS_MOST);
    unsigned long inside = 0;
    for (unsigned i = 0; i < count; i++)
        inside += scan_part(mappings[i].start, mappings[i].len_bytes).held;
    ck_assert_uint_ge(inside, 64);
    ck_assert_uint_eq(scan_memory().held, inside);
    script_release();
}

static const struct {
    const char *settings;
    size_t size_bytes;
} pools[] = {
    {"x-pool-size: 4KiB\nx-pool-max-age: 60min", 4 * KIB},
    {"x-pool-max-age: 60min", 64 * KIB},
    {"x-pool-size: 1MiB\nx-pool-max-age: 60min", 1024 * KIB},
};

enum { POOLS = sizeof pools / sizeof *pools };

/* As much as there is, so that it is a bound and not just a little. */
TEST_EACH(all_slots_together_hold_no_more_than_the_pools_size, 0, 2 * POOLS)
{
    size_t most = pools[_i % POOLS].size_bytes;
    begin_with(_i < POOLS ? &os_locking : &no_threads, SLOTS, pools[_i % POOLS].settings);
    for (int round = 0; round < 4; round++) {
        for (unsigned slot = 0; slot < SLOTS; slot++) {
            draw(sessions[slot], 1024, 64 * KIB);
            draw(sessions[slot], 16, 8 * KIB + 16); /* the last one begins a fetch */
        }
        if (_i < POOLS)
            let_filler_work();
        /* Pieces overlap: there is one less than words in each stretch. */
        unsigned long held = scan_memory().held * WORD_BYTES;
        ck_assert_msg(held <= most, "%lu bytes are held, in a pool of %zu", held, most);
        ck_assert_uint_ge(held, most / 8);
    }
}

/* Locked memory is not taken before it is needed. */
TEST(a_large_pool_that_is_hardly_used_takes_little_memory)
{
    begin_with(&no_threads, SLOTS, "x-pool-size: 16MiB\nx-pool-max-age: 60min");
    for (unsigned slot = 0; slot < SLOTS; slot++)
        draw(sessions[slot], 16, 4096);
    ck_assert_uint_le(smaps_kb(" wf", true), SLOTS * 64);
}

int main(void)
{
    return test_main("protection", set_up, tear_down);
}
