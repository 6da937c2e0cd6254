/* test_health.c - what no generator means is caught, wherever it lies, and what one means is not.
 *
 * TESTS_LONG=1 lets 10 GB of the kernel's bytes pass instead of 10 MB.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "../hang.h"
#include "pool/health.h"

enum {
    BYTES_MOST = 70 * 1000,
    ALIGNMENTS = 8,
    SMALL_MOST = 1024, /* the largest chunk that is tested without a memory */
    LONG_S = 1200
};

static struct health_memory memory;
static uint8_t space[BYTES_MOST + ALIGNMENTS];

/* Bytes that look random: SplitMix64, a stream for each seed. */
static void good_bytes(uint64_t seed, uint8_t *bytes, size_t len_bytes)
{
    for (size_t i = 0; i < len_bytes; i++) {
        uint64_t mixed = (seed * 1000003 + i / 8 + 1) * 0x9E3779B97F4A7C15ULL;
        mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ULL;
        mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebULL;
        bytes[i] = (uint8_t)((mixed ^ mixed >> 31) >> i % 8 * 8);
    }
}

static void set_up(void)
{
    memset(&memory, 0, sizeof memory);
    health_remember(&memory);
    ck_assert(memory.remembers);
}

/* With a memory, and without where that is possible. */
static void must_be_caught(const char *what, const uint8_t *bytes, size_t len_bytes)
{
    ck_assert_msg(health_test(&memory, bytes, len_bytes) != HEALTH_GOOD, "%s in %zu bytes", what,
                  len_bytes);
    ck_assert_msg(len_bytes > SMALL_MOST || health_test(NULL, bytes, len_bytes) != HEALTH_GOOD,
                  "%s in %zu bytes without a memory", what, len_bytes);
}

/* How a token may fail: len_bytes of output from a failed generator, and what it takes to tell. */

static void all_zero(uint8_t *bytes, size_t len_bytes)
{
    memset(bytes, 0, len_bytes);
}

static void all_ones(uint8_t *bytes, size_t len_bytes)
{
    memset(bytes, 0xff, len_bytes);
}

static void period(uint8_t *bytes, size_t len_bytes, size_t period_bytes)
{
    for (size_t i = period_bytes; i < len_bytes; i++)
        bytes[i] = bytes[i - period_bytes];
}

static void period_of_8(uint8_t *bytes, size_t len_bytes)
{
    period(bytes, len_bytes, 8);
}

static void period_of_12(uint8_t *bytes, size_t len_bytes)
{
    period(bytes, len_bytes, 12);
}

static void period_of_16(uint8_t *bytes, size_t len_bytes)
{
    period(bytes, len_bytes, 16);
}

static void period_of_1000(uint8_t *bytes, size_t len_bytes)
{
    period(bytes, len_bytes, 1000);
}

/* AMD's Zen 5: a draw of 8 bytes is zero now and then, with success. */
static void zero_now_and_then(uint8_t *bytes, size_t len_bytes)
{
    for (size_t i = 0; i + 8 <= len_bytes; i += 80)
        memset(bytes + i, 0, 8);
}

static void four_bits_missing(uint8_t *bytes, size_t len_bytes)
{
    for (size_t i = 0; i < len_bytes; i++)
        bytes[i] &= 0x0f;
}

static void counter_bytes(uint8_t *bytes, size_t len_bytes)
{
    for (size_t i = 0; i < len_bytes; i++)
        bytes[i] = (uint8_t)i;
}

static const struct {
    const char *name;
    void (*spoil)(uint8_t *bytes, size_t len_bytes);
    size_t least_bytes; /* of it, to be told from chance */
} failures[] = {
    {"all 00", all_zero, 12},
    {"all ff", all_ones, 12},
    {"a period of 8", period_of_8, 48},
    {"a period of 12", period_of_12, 80},
    {"a period of 16", period_of_16, 48},
    {"a period of 1000", period_of_1000, 2032},
    {"8 zeros in 80 bytes", zero_now_and_then, 1024},
    {"4 bits missing", four_bits_missing, 1024},
    {"a counter", counter_bytes, 288},
};

enum { FAILURES = sizeof failures / sizeof *failures };

static const size_t sizes[] = {12, 16, 48, 64, 80, 300, 512, 1000, 1024, 2048, 4096, 32768, 65536};

START_TEST(a_generator_that_failed_is_caught)
{
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t alignment = 0; alignment < ALIGNMENTS; alignment++) {
            uint8_t *bytes = space + alignment;
            if (sizes[s] < failures[_i].least_bytes)
                continue;
            good_bytes(s, bytes, sizes[s]);
            failures[_i].spoil(bytes, sizes[s]);
            must_be_caught(failures[_i].name, bytes, sizes[s]);
        }
}
END_TEST

/* Whatever good bytes come before it and behind it. */
START_TEST(a_generator_that_fails_on_the_way_is_caught)
{
    static const size_t before[] = {1, 7, 16, 100, 511, 512, 513, 5000, 32000, 33000};
    size_t bad = failures[_i].least_bytes;
    for (size_t b = 0; b < sizeof before / sizeof *before; b++)
        for (size_t behind = 0; behind <= 600; behind += 200) {
            size_t len_bytes = before[b] + bad + behind;
            /* The window that a block is looked for in ends in the middle. */
            if (before[b] < HEALTH_WINDOW_BYTES && len_bytes > HEALTH_WINDOW_BYTES)
                continue;
            good_bytes(b, space, len_bytes);
            failures[_i].spoil(space + before[b], bad);
            must_be_caught(failures[_i].name, space, len_bytes);
        }
}
END_TEST

START_TEST(a_run_of_twelve_is_caught_at_every_place_and_one_of_eight_is_not)
{
    for (size_t len_bytes = 12; len_bytes <= 80; len_bytes++)
        for (size_t at = 0; at + 12 <= len_bytes; at++) {
            good_bytes(len_bytes, space, len_bytes);
            memset(space + at, 0x77, 8);
            ck_assert_int_eq(health_test(NULL, space, len_bytes), HEALTH_GOOD);
            memset(space + at, 0x77, 12);
            ck_assert_int_eq(health_test(NULL, space, len_bytes), HEALTH_STUCK);
        }
}
END_TEST

START_TEST(a_short_answer_of_one_value_is_caught_from_nine_bytes_on)
{
    for (size_t len_bytes = 9; len_bytes <= 12; len_bytes++) {
        memset(space, 0, len_bytes);
        ck_assert_int_eq(health_test(NULL, space, len_bytes), HEALTH_STUCK);
        space[len_bytes / 2] = 1;
        ck_assert_int_eq(health_test(NULL, space, len_bytes), HEALTH_GOOD);
    }
    memset(space, 0, 8);
    ck_assert_int_eq(health_test(NULL, space, 8), HEALTH_GOOD);
}
END_TEST

START_TEST(nothing_written_is_caught_at_every_size)
{
    for (size_t len_bytes = 8; len_bytes <= 4096;
         len_bytes = len_bytes < 1025 ? len_bytes + 1 : len_bytes * 2) {
        health_prefill(space, len_bytes);
        ck_assert_int_eq(health_test(&memory, space, len_bytes), HEALTH_UNWRITTEN);
    }
}
END_TEST

/* By a token that cuts a length short, or skips the first bytes. */
START_TEST(too_little_written_is_caught)
{
    static const size_t lengths[] = {16, 17, 23, 24, 64, 100, 1000, 1024, 4096, 65536};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (size_t missing = 8; missing <= lengths[l]; missing += 1 + lengths[l] / 50) {
            size_t written = lengths[l] - missing;
            health_prefill(space, lengths[l]);
            good_bytes(missing, space, written);
            ck_assert_int_eq(health_test(&memory, space, lengths[l]), HEALTH_UNWRITTEN);
            health_prefill(space, lengths[l]);
            good_bytes(missing + 1, space + missing, written);
            ck_assert_int_eq(health_test(&memory, space, lengths[l]), HEALTH_UNWRITTEN);
        }
}
END_TEST

START_TEST(a_gap_in_the_middle_is_caught)
{
    for (size_t at = 16; at + 64 <= 1024; at++) {
        good_bytes(at, space, 1024);
        uint8_t pattern[1024];
        health_prefill(pattern, sizeof pattern);
        memcpy(space + at, pattern + at, 32);
        ck_assert_int_eq(health_test(&memory, space, 1024), HEALTH_UNWRITTEN);
    }
}
END_TEST

/* One that begins anew with each call gives the same chunk, a longer or a shorter one. */
START_TEST(what_begins_as_one_of_the_last_chunks_did_is_caught)
{
    good_bytes(0, space, 4096);
    ck_assert_int_eq(health_test(&memory, space, 4096), HEALTH_GOOD);
    for (uint64_t other = 1; other < HEALTH_RECENT; other++) {
        good_bytes(0, space, 4096);
        ck_assert_int_eq(health_test(&memory, space, other % 2 == 0 ? 1024 : 4096),
                         HEALTH_REPEATED);
        good_bytes(other, space, 4096);
        ck_assert_int_eq(health_test(&memory, space, 4096), HEALTH_GOOD);
    }
    good_bytes(0, space, 4096);
    ck_assert_int_eq(health_test(&memory, space, 4096), HEALTH_REPEATED);
}
END_TEST

/* Too long for one chunk to show it, but not for the next ones. */
START_TEST(a_period_longer_than_a_chunk_is_caught_by_the_next_ones)
{
    good_bytes(0, space, 1000);
    enum health last = HEALTH_GOOD;
    for (int chunk = 0; chunk < HEALTH_RECENT && last == HEALTH_GOOD; chunk++)
        last = health_test(&memory, space + chunk * 200 % 1000, 200);
    ck_assert_int_eq(last, HEALTH_REPEATED);
}
END_TEST

START_TEST(without_a_key_nothing_is_remembered)
{
    memset(&memory, 0, sizeof memory);
    good_bytes(0, space, 1024);
    ck_assert_int_eq(health_test(&memory, space, 1024), HEALTH_GOOD);
    ck_assert_int_eq(health_test(&memory, space, 1024), HEALTH_GOOD);
    struct health_memory nothing = {0};
    ck_assert_mem_eq(memory.recent, nothing.recent, sizeof nothing.recent);
}
END_TEST

/* The digest of bytes 00 to 1f under the key 00 to 0f, as OpenSSL computes SipHash-2-4. */
START_TEST(what_is_remembered_is_siphash)
{
    memory.key[0] = 0x0706050403020100;
    memory.key[1] = 0x0f0e0d0c0b0a0908;
    for (int i = 0; i < 32; i++)
        space[i] = (uint8_t)i;
    ck_assert_int_eq(health_test(&memory, space, 32), HEALTH_GOOD);
    ck_assert_uint_eq(memory.recent[0], 0x7127512f72f27cce);
}
END_TEST

START_TEST(the_kernels_bytes_raise_no_alarm)
{
    const char *wants_long = getenv("TESTS_LONG");
    size_t left = wants_long != NULL ? (size_t)10 * 1000 * 1000 * 1000 : (size_t)10 * 1000 * 1000;
    for (unsigned turn = 0; left > 0; turn++) {
        size_t len_bytes = turn % 2 == 0 ? turn * 7919 % 65536 + 1 : turn % SMALL_MOST + 1;
        for (size_t done = 0; done < len_bytes;) {
            ssize_t got = getrandom(space + done, len_bytes - done, 0);
            ck_assert_int_gt(got, 0);
            done += (size_t)got;
        }
        ck_assert_int_eq(health_test(&memory, space, len_bytes), HEALTH_GOOD);
        if (len_bytes <= SMALL_MOST)
            ck_assert_int_eq(health_test(NULL, space, len_bytes), HEALTH_GOOD);
        left -= len_bytes < left ? len_bytes : left;
    }
}
END_TEST

START_TEST(each_finding_has_words)
{
    for (int finding = HEALTH_GOOD; finding <= HEALTH_REPEATED; finding++)
        for (int other = HEALTH_GOOD; other < finding; other++)
            ck_assert_str_ne(health_words((enum health)finding), health_words((enum health)other));
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("health");
    Suite *suite = suite_create("health");
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(tcase, getenv("TESTS_LONG") != NULL ? LONG_S : HANG_S);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_loop_test(tcase, a_generator_that_failed_is_caught, 0, FAILURES);
    tcase_add_loop_test(tcase, a_generator_that_fails_on_the_way_is_caught, 0, FAILURES);
    tcase_add_test(tcase, a_run_of_twelve_is_caught_at_every_place_and_one_of_eight_is_not);
    tcase_add_test(tcase, a_short_answer_of_one_value_is_caught_from_nine_bytes_on);
    tcase_add_test(tcase, nothing_written_is_caught_at_every_size);
    tcase_add_test(tcase, too_little_written_is_caught);
    tcase_add_test(tcase, a_gap_in_the_middle_is_caught);
    tcase_add_test(tcase, what_begins_as_one_of_the_last_chunks_did_is_caught);
    tcase_add_test(tcase, a_period_longer_than_a_chunk_is_caught_by_the_next_ones);
    tcase_add_test(tcase, without_a_key_nothing_is_remembered);
    tcase_add_test(tcase, what_is_remembered_is_siphash);
    tcase_add_test(tcase, the_kernels_bytes_raise_no_alarm);
    tcase_add_test(tcase, each_finding_has_words);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
