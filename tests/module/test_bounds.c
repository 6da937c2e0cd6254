/* test_bounds.c - where the pools' memory begins and ends, and how much of it there is. */
#include "served.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "memory_scan.h"

enum { KIB = 1024, SLOTS = 16 };

static struct mapping mappings[MAPPINGS_MOST];

static bool is_droppable(const struct mapping *mapping)
{
    struct mapping droppable[MAPPINGS_MOST];
    unsigned count = smaps_list(" dp", droppable, MAPPINGS_MOST);
    for (unsigned i = 0; i < count; i++)
        if (droppable[i].start == mapping->start)
            return true;
    return false;
}

/* Those that bytes may lie in: not the pages that the kernel may drop, which it wipes as well. */
static unsigned wiped_mappings(void)
{
    unsigned all = smaps_list(" wf", mappings, MAPPINGS_MOST);
    unsigned count = 0;
    for (unsigned i = 0; i < all; i++)
        if (!is_droppable(&mappings[i]))
            mappings[count++] = mappings[i];
    ck_assert_uint_ge(count, 2); /* the state of the module, and a pool */
    return count;
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

static sigjmp_buf back;
static const volatile uint8_t *volatile faulted;

static void note_fault(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    faulted = info->si_addr;
    siglongjmp(back, 1);
}

static bool faults(const volatile uint8_t *byte)
{
    faulted = NULL;
    if (sigsetjmp(back, 1) == 0)
        (void)*byte;
    return faulted == byte;
}

TEST(a_page_before_and_one_behind_fault_and_no_byte_between)
{
    struct sigaction action = {.sa_sigaction = note_fault, .sa_flags = SA_SIGINFO};
    long page = sysconf(_SC_PAGESIZE);
    begin_with(&no_threads, 2, "x-pool-max-age: 1min");
    draw(sessions[0], 16, 4096);
    draw(sessions[1], 16, 4096);
    unsigned count = wiped_mappings();
    ck_assert_uint_ge(count, 3);
    sigaction(SIGSEGV, &action, NULL);
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *start = mappings[i].start;
        const uint8_t *end = start + mappings[i].len_bytes;
        ck_assert(faults(start - page) && faults(start - 1) && faults(end) &&
                  faults(end + page - 1));
        for (const uint8_t *byte = start; byte < end; byte++)
            ck_assert(!faults(byte));
    }
}

/* The filler has its bytes from the token, and they are not tested yet. */
TEST(the_token_writes_there_and_nowhere_else)
{
    begin_with(&os_locking, 1, "x-pool-max-age: 1min");
    script("C_GenerateRandom by filler: hold");
    DRAW_UNTIL(sessions[0], script_held() == 1);
    unsigned count = wiped_mappings();
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
            draw(sessions[slot], 16, 8 * KIB);
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
    return test_main("bounds", set_up, tear_down);
}
