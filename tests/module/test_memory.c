/* test_memory.c - what was served, dropped or thrown away is nowhere in this process's memory; what the kernel has noted of
 * the pools' memory, and how much of it there is. */
#include "fixture.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A pair is two words of the target's stream, one behind the other. */
enum { WINDOW_BYTES = 1024 * 1024, PAIR_BYTES = 2 * WORD_BYTES };

struct scan {
    unsigned long served; /* pairs of which both words were noted with served() */
    unsigned long held;   /* of which neither was */
};

/* What is looked through is copied here, so here is not looked: a mapping of its own. */
static uint8_t *window;

static void scan_window(size_t len_bytes, struct scan *found)
{
    struct word one;
    struct word next;
    for (size_t at = 0; at + PAIR_BYTES <= len_bytes; at++) {
        if (window[at] == 0 && window[at + 1] == 0 && window[at + 2] == 0)
            continue;
        if (!word_read(window + at, &one) || !word_read(window + at + WORD_BYTES, &next) ||
            next.counter != one.counter + 1)
            continue;
        bool one_was = was_served(one.counter);
        bool next_was = was_served(next.counter);
        found->served += one_was && next_was;
        found->held += !one_was && !next_was;
    }
}

/* Windows overlap, so that no piece falls between two. */
static void scan_range(int fd, uint64_t from, uint64_t upto, struct scan *found)
{
    while (from < upto) {
        size_t wanted = upto - from < WINDOW_BYTES ? (size_t)(upto - from) : WINDOW_BYTES;
        ssize_t got = pread(fd, window, wanted, (off_t)from);
        if (got <= 0)
            return;
        scan_window((size_t)got, found);
        if (got < PAIR_BYTES || (uint64_t)got == upto - from)
            return;
        from += (uint64_t)got - PAIR_BYTES + 1;
    }
}

static void begin_scan(void)
{
    if (window == NULL)
        window =
            mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(window, MAP_FAILED);
}

/* All readable memory of this process. */
static struct scan scan_memory(void)
{
    struct scan found = {0};
    char line[512];
    unsigned long from;
    unsigned long upto;
    char readable;
    begin_scan();
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    FILE *maps = fopen("/proc/self/maps", "re");
    ck_assert(memory >= 0 && maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%lx-%lx %c", &from, &upto, &readable) != 3 || readable != 'r')
            continue;
        /* What the tests and their target share has no random bytes, and is large. */
        if (strstr(line, "/memfd:target") != NULL || strstr(line, "/dev/zero") != NULL)
            continue;
        /* The kernel joins neighbours into one line. */
        unsigned long ours = (unsigned long)window;
        if (ours >= from && ours < upto) {
            scan_range(memory, from, ours, &found);
            from = ours + WINDOW_BYTES;
        }
        scan_range(memory, from, upto, &found);
    }
    fclose(maps);
    close(memory);
    return found;
}

static struct scan scan_part(const uint8_t *start, size_t len_bytes)
{
    struct scan found = {0};
    begin_scan();
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(memory, 0);
    scan_range(memory, (uint64_t)start, (uint64_t)start + len_bytes, &found);
    close(memory);
    return found;
}

/* Two words that look like the stream's, of numbers that it will not reach, noted as served. */
static void scan_bait(uint8_t bytes[16])
{
    /* volatile: worked out by the compiler, the words would lie in the program. */
    static volatile const uint64_t far = 250 * 1024 * 1024;
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t whole = word_make(&(struct word){.counter = far + i});
        for (int b = 0; b < WORD_BYTES; b++)
            bytes[i * WORD_BYTES + (uint64_t)b] = (uint8_t)(whole >> 8 * b);
        served_word(far + i);
    }
}

enum { MAPPINGS_MOST = 64 };
static struct mapping {
    uint8_t *start;
    size_t len_bytes;
    unsigned long resident_kb;
} mappings[MAPPINGS_MOST];

/* Puts the mappings with that flag in /proc/self/smaps there. Returns how many they are. */
static unsigned list_mappings(const char *flag)
{
    char line[512];
    unsigned count = 0;
    unsigned long from;
    unsigned long upto;
    struct mapping one = {0};
    FILE *file = fopen("/proc/self/smaps", "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "%lx-%lx ", &from, &upto) == 2)
            one = (struct mapping){.start = (uint8_t *)from, .len_bytes = upto - from};
        else if (strncmp(line, "Rss:", 4) == 0)
            one.resident_kb = strtoul(line + 4, NULL, 10);
        else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, flag) != NULL) {
            ck_assert_uint_lt(count, MAPPINGS_MOST);
            mappings[count++] = one;
        }
    fclose(file);
    return count;
}

/* How large they are, or how much of them is in memory. */
static unsigned long mapped_kb(const char *flag, bool resident)
{
    unsigned long kb = 0;
    for (unsigned i = list_mappings(flag); i-- > 0;)
        kb += resident ? mappings[i].resident_kb : mappings[i].len_bytes / 1024;
    return kb;
}

enum { KIB = 1024, LARGEST = 4 * KIB, SLOTS = 16 };

/* The caller's own copy goes at once. */
static void draw_and_wipe(unsigned times, CK_ULONG len_bytes)
{
    static uint8_t buf[LARGEST];
    for (unsigned i = 0; i < times; i++) {
        EXPECT(fn->C_GenerateRandom(session, buf, len_bytes), CKR_OK);
        served(buf, len_bytes);
        explicit_bzero(buf, sizeof buf);
    }
}

static void nothing_is_found(const char *when)
{
    struct scan found = scan_memory();
    ck_assert_msg(found.served + found.held == 0,
                  "%s: %lu pieces that were served are there, and %lu others", when, found.served,
                  found.held);
}

TEST(a_scan_finds_what_is_there)
{
    begin_with(&no_threads, "x-pool-max-age: 1min");
    draw_and_wipe(70, 16);
    uint8_t *heap = malloc(64);
    scan_bait(heap + 3);
    struct scan found = scan_memory();
    ck_assert_uint_eq(found.served, 1);
    ck_assert_uint_gt(found.held, 0);
    memset(heap, 0, 64);
    free(heap);
}

/* By stripe, by ring, by the caller's own part of a fill, and around the pool. */
TEST_EACH(what_was_served_is_found_nowhere, 0, 7)
{
    static const struct {
        const char *settings;
        CK_ULONG len_bytes;
    } ways[] = {{"x-pool-max-age: 1min", 16},      {"x-pool-max-age: 1min", 24},
                {"x-pool-max-age: 1min", 512},     {"x-pool-max-age: 1min", 1024},
                {"x-pool-max-age: 1min", LARGEST}, {"x-pool: off", 64},
                {"x-pool-mix: kernel", 64}};
    begin_with(&os_locking, ways[_i].settings);
    draw_and_wipe(200, ways[_i].len_bytes);
    ck_assert_uint_eq(scan_memory().served, 0);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    nothing_is_found("after C_Finalize");
}

TEST(what_is_dropped_is_found_nowhere)
{
    begin_with(&no_threads, "x-pool-max-age: 1min");
    draw_and_wipe(300, 16);
    ck_assert_uint_gt(scan_memory().held, 0);
    EXPECT(fn->C_SeedRandom(session, (CK_BYTE_PTR) "seed", 4), CKR_OK);
    nothing_is_found("after a seed");
    draw_and_wipe(300, 16);
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_OK);
    nothing_is_found("after a login");
    draw_and_wipe(300, 16);
    EXPECT(fn->C_CloseSession(session), CKR_OK);
    nothing_is_found("after the last close");
}

/* Half of the chunk was written before the token lied. */
TEST(what_failed_the_health_test_is_found_nowhere)
{
    static uint8_t buf[64];
    begin_with(&no_threads, "");
    draw_and_wipe(40, 64);
    script("C_GenerateRandom: write half");
    for (int i = 0; i < 1000 && fn->C_GenerateRandom(session, buf, sizeof buf) == CKR_OK; i++)
        served(buf, sizeof buf);
    explicit_bzero(buf, sizeof buf);
    EXPECT(fn->C_GenerateRandom(session, buf, sizeof buf), CKR_DEVICE_ERROR);
    nothing_is_found("after two alarms");
}

/* Wiped on fork, left out of core files, locked; no page of it is in a child's way or in swap's. */
TEST(all_mappings_that_fork_wipes_stay_out_of_core_files_and_pools_out_of_swap)
{
    begin_with(&no_threads, "");
    draw(session, 16, 4096);
    unsigned wiped = list_mappings(" wf");
    ck_assert_uint_ge(wiped, 2);
    ck_assert_uint_eq(list_mappings(" wf dd"), wiped);
    ck_assert_uint_eq(list_mappings(" lo"), 1);
    /* The pool's default is 64 KiB of bytes; the rest of its mapping is slices and accounts. */
    ck_assert_uint_ge(mapped_kb(" lo", false), 64);
    ck_assert_uint_le(mapped_kb(" lo", false), 64 + 2 * 64 + 32);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    ck_assert_uint_eq(mapped_kb(" lo", false), 0);
    begin_again();
    draw(session, 16, 4096);
    ck_assert_uint_gt(mapped_kb(" lo", false), 0);
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
    begin("x-pool-max-age: 1min");
    small_draws_are_served_ahead(session);
    ck_assert_uint_eq(mapped_kb(" lo", false), 0);
}

static CK_SESSION_HANDLE sessions[SLOTS];

static void begin_slots(CK_C_INITIALIZE_ARGS *args, const char *settings)
{
    script("quiet; slots %u", SLOTS);
    proxy_with(settings);
    EXPECT(fn->C_Initialize(args), CKR_OK);
    for (unsigned i = 0; i < SLOTS; i++)
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
    begin_with(&no_threads, "");
    draw(session, 16, 4096);
    unsigned count = list_mappings(" wf");
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
    begin("x-pool-max-age: 1min");
    script("C_GenerateRandom by filler: hold");
    DRAW_UNTIL(session, script_held() == 1);
    unsigned count = list_mappings(" wf");
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

enum { POOLS = COUNT_OF(pools) };

/* As much as there is, so that it is a bound and not just a little. */
TEST_EACH(all_slots_together_hold_no_more_than_the_pools_size, 0, 2 * POOLS)
{
    size_t most = pools[_i % POOLS].size_bytes;
    begin_slots(_i < POOLS ? &os_locking : &no_threads, pools[_i % POOLS].settings);
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
    begin_slots(&no_threads, "x-pool-size: 16MiB\nx-pool-max-age: 60min");
    for (unsigned slot = 0; slot < SLOTS; slot++)
        draw(sessions[slot], 16, 4096);
    ck_assert_uint_le(mapped_kb(" wf", true), SLOTS * 64);
}
