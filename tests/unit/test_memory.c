/* test_memory.c - what the pool is made of: rings, locks, and memory that fork wipes. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../hang.h"
#include "base/lock.h"
#include "pool/ring.h"
#include "base/wiped.h"

enum { CAPACITY = 1000 };

static uint8_t memory[CAPACITY];
static struct ring ring;
static uint8_t written, expected; /* the next byte on either side */
static size_t spoilt; /* bytes that were not what they should be: too many for an assertion each */

static void set_up(void)
{
    memset(memory, 0, sizeof memory);
    ring = (struct ring){.capacity_bytes = CAPACITY};
    written = expected = 0;
    spoilt = 0;
}

/* A fill of which from..upto are kept; returns how many that were. */
static size_t put(size_t least, size_t most, size_t skipped, int64_t born_ns)
{
    size_t offset;
    size_t len;
    if (!ring_open(&ring, least, most, &offset, &len))
        return 0;
    ck_assert_uint_le(offset + len, CAPACITY);
    for (size_t i = 0; i < len; i++)
        spoilt += memory[offset + i] != 0; /* nobody's bytes are zero */
    for (size_t i = skipped; i < len; i++)
        memory[offset + i] = (uint8_t)(written++ % 255 + 1);
    ring_close(&ring, skipped, len, born_ns);
    return len > skipped ? len - skipped : 0;
}

static void get(size_t len)
{
    uint8_t bytes[CAPACITY];
    ring_move(&ring, memory, bytes, len);
    for (size_t i = 0; i < len; i++)
        spoilt += bytes[i] != expected++ % 255 + 1;
}

START_TEST(a_ring_gives_what_it_got_in_order_for_many_rounds)
{
    size_t held = 0;
    srandom(1);
    for (int i = 0; i < 20000; i++) {
        held += put(1, (size_t)random() % 300 + 1, (size_t)random() % 3, i);
        ck_assert_uint_eq(ring.held_bytes, held);
        size_t some = (size_t)random() % (held + 1);
        get(some);
        held -= some;
        ck_assert_uint_eq(spoilt, 0);
    }
    get(held);
    ck_assert_uint_eq(spoilt, 0);
    for (size_t i = 0; i < CAPACITY; i++)
        ck_assert_uint_eq(memory[i], 0);
}
END_TEST

START_TEST(a_ring_has_one_region_open_and_none_without_room)
{
    size_t offset;
    size_t len;
    ck_assert(ring_open(&ring, 1, CAPACITY, &offset, &len));
    ck_assert_uint_eq(len, CAPACITY);
    ck_assert(!ring_open(&ring, 1, 1, &offset, &len));
    ring_close(&ring, 0, CAPACITY, 0);
    ck_assert(!ring_open(&ring, 1, 1, &offset, &len));
    struct ring zero = {0};
    ck_assert(!ring_open(&zero, 0, 1, &offset, &len));
}
END_TEST

START_TEST(the_oldest_go_first_and_no_date_is_too_young)
{
    put(1, 10, 0, 5);
    put(1, 20, 0, 7);
    ck_assert_int_eq(ring_oldest_born_ns(&ring), 5);
    ck_assert_uint_eq(ring_oldest_bytes(&ring), 10);
    ck_assert_uint_eq(ring_drop_oldest(&ring, memory), 10);
    ck_assert_int_eq(ring_oldest_born_ns(&ring), 7);
    ck_assert_uint_eq(ring_drop_oldest(&ring, memory), 20);
    ck_assert_uint_eq(ring_drop_oldest(&ring, memory), 0);

    /* More pieces than places: those that share a place share the older date. */
    for (int i = 0; i < 200; i++)
        put(1, 1, 0, 100 + i);
    for (int i = 0; i < 200 && ring.held_bytes != 0; i++) {
        ck_assert_int_le(ring_oldest_born_ns(&ring), 100 + i);
        uint8_t byte;
        ring_move(&ring, memory, &byte, 1);
    }
}
END_TEST

static struct lock lock;
static unsigned long guarded;

static void *count_up(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100000; i++) {
        lock_acquire(&lock);
        guarded++;
        lock_release(&lock);
    }
    return NULL;
}

START_TEST(a_lock_lets_one_in_and_wakes_the_others)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, count_up, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(guarded, 400000);
    ck_assert_uint_eq(atomic_load(&lock.word), 0);
}
END_TEST

START_TEST(a_try_lock_is_held_by_one)
{
    struct try_lock try = {0};
    ck_assert(try_lock_acquire(&try));
    ck_assert(!try_lock_acquire(&try));
    try_lock_release(&try);
    ck_assert(try_lock_acquire(&try));
}
END_TEST

START_TEST(waiting_on_a_word_ends_by_change_and_by_time_and_keeps_errno)
{
    atomic_uint word = 1;
    errno = EDOM;
    wait_on_word(&word, 2, -1);
    wait_on_word(&word, 1, 1000);
    wake_word(&word);
    ck_assert_int_eq(errno, EDOM);
}
END_TEST

START_TEST(a_child_finds_zeros_and_its_parent_keeps_what_it_wrote)
{
    void *bytes;
    int status = 0;
    ck_assert_int_eq(wiped_map(&bytes, 10000), 0);
    if (_i == 1)
        wiped_lock(bytes, 10000, true);
    memset(bytes, 0x55, 10000);
    pid_t child = fork();
    if (child == 0) {
        for (size_t i = 0; i < 10000; i++)
            if (((uint8_t *)bytes)[i] != 0)
                _exit(1);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(((uint8_t *)bytes)[9999], 0x55);
    wiped_unmap(bytes, 10000);
}
END_TEST

START_TEST(the_pages_around_fault)
{
    void *bytes;
    int status = 0;
    long page = sysconf(_SC_PAGESIZE);
    ck_assert_int_eq(wiped_map(&bytes, 1), 0);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        ((volatile uint8_t *)bytes)[_i == 0 ? -1 : page] = 1;
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}
END_TEST

/* Not only by what a child sees: the kernel's own account of it. */
START_TEST(the_kernel_has_the_wipe_and_the_core_dump_noted)
{
    void *bytes;
    char line[512];
    char start[32];
    bool found = false;
    ck_assert(wiped_is_supported());
    ck_assert_int_eq(wiped_map(&bytes, 1), 0);
    snprintf(start, sizeof start, "%lx-", (unsigned long)bytes);
    FILE *maps = fopen("/proc/self/smaps", "re");
    for (bool ours = false; fgets(line, sizeof line, maps) != NULL;) {
        if (strncmp(line, start, strlen(start)) == 0)
            ours = true;
        if (ours && strncmp(line, "VmFlags:", 8) == 0) {
            found = strstr(line, " wf") != NULL && strstr(line, " dd") != NULL;
            break;
        }
    }
    fclose(maps);
    ck_assert(found);
}
END_TEST

START_TEST(nonsense_lengths_are_refused)
{
    void *bytes = &lock;
    ck_assert_int_eq(wiped_map(&bytes, 0), -ENOMEM);
    ck_assert_int_eq(wiped_map(&bytes, SIZE_MAX), -ENOMEM);
    ck_assert_int_eq(wiped_map(&bytes, SIZE_MAX - 4095), -ENOMEM);
    ck_assert_ptr_eq(bytes, &lock);
    wiped_unmap(NULL, 1);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("memory");
    Suite *suite = suite_create("memory");
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(tcase, HANG_S);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, a_ring_gives_what_it_got_in_order_for_many_rounds);
    tcase_add_test(tcase, a_ring_has_one_region_open_and_none_without_room);
    tcase_add_test(tcase, the_oldest_go_first_and_no_date_is_too_young);
    tcase_add_test(tcase, a_lock_lets_one_in_and_wakes_the_others);
    tcase_add_test(tcase, a_try_lock_is_held_by_one);
    tcase_add_test(tcase, waiting_on_a_word_ends_by_change_and_by_time_and_keeps_errno);
    tcase_add_loop_test(tcase, a_child_finds_zeros_and_its_parent_keeps_what_it_wrote, 0, 2);
    tcase_add_loop_test(tcase, the_pages_around_fault, 0, 2);
    tcase_add_test(tcase, the_kernel_has_the_wipe_and_the_core_dump_noted);
    tcase_add_test(tcase, nonsense_lengths_are_refused);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
