/* test_health.c - a generator that failed is noticed, wherever in an answer it failed, and a good one is not accused.
 *
 * TESTS_LONG=1 lets 10 GB of the kernel's bytes pass instead of 50 MB.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "../check_main.h"
#include "pool/health.h"

enum { BYTES_MOST = 70 * 1000, ALIGNMENTS = 8 };

static struct health health;
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

/* What is not remembered cannot be found to have come before, so each test tests its own answer only. */
static enum health_result tested(const uint8_t *bytes, size_t len_bytes)
{
    memset(&health, 0, sizeof health);
    return health_test(&health, bytes, len_bytes);
}

static void period(uint8_t *bytes, size_t len_bytes, size_t period_bytes)
{
    for (size_t i = period_bytes; i < len_bytes; i++)
        bytes[i] = bytes[i - period_bytes];
}

/* Each spoils len_bytes of good bytes as a generator that failed would. */

static void all_zero(uint8_t *bytes, size_t len_bytes)
{
    memset(bytes, 0, len_bytes);
}

static void all_ones(uint8_t *bytes, size_t len_bytes)
{
    memset(bytes, 0xff, len_bytes);
}

static void last_64_zero(uint8_t *bytes, size_t len_bytes)
{
    memset(bytes + len_bytes - 64, 0, 64);
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

/* As AMD's Zen 5: a draw of 8 bytes is zero now and then, with success. */
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
    {"the last 64 zero", last_64_zero, 64},
    {"a period of 8", period_of_8, 48},
    {"a period of 12", period_of_12, 80},
    {"a period of 16", period_of_16, 48},
    {"a period of 1000", period_of_1000, 2032},
    {"8 zeros in 80 bytes", zero_now_and_then, 1024},
    {"4 bits missing", four_bits_missing, 1024},
    {"a counter", counter_bytes, 288},
};

enum { FAILURES = sizeof failures / sizeof *failures };

TEST_EACH(a_generator_that_failed_is_noticed_at_every_size_and_alignment, 0, FAILURES)
{
    static const size_t sizes[] = {12,   16,   48,   64,   80,    300,  512,
                                   1000, 1024, 2048, 4096, 32768, 65536};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t alignment = 0; alignment < ALIGNMENTS; alignment++) {
            uint8_t *bytes = space + alignment;
            if (sizes[s] < failures[_i].least_bytes)
                continue;
            good_bytes(s, bytes, sizes[s]);
            failures[_i].spoil(bytes, sizes[s]);
            ck_assert_msg(tested(bytes, sizes[s]) != HEALTH_GOOD, "%s in %zu bytes",
                          failures[_i].name, sizes[s]);
        }
}

TEST_EACH(a_generator_that_fails_in_the_middle_of_an_answer_is_noticed, 0, FAILURES)
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
            ck_assert_msg(tested(space, len_bytes) != HEALTH_GOOD, "%s after %zu bytes",
                          failures[_i].name, before[b]);
        }
}

TEST(a_run_of_twelve_is_noticed_at_every_place_and_one_of_eight_is_chance)
{
    for (size_t len_bytes = 12; len_bytes <= 80; len_bytes++)
        for (size_t at = 0; at + 12 <= len_bytes; at++) {
            good_bytes(len_bytes, space, len_bytes);
            memset(space + at, 0x77, 8);
            ck_assert_int_eq(tested(space, len_bytes), HEALTH_GOOD);
            memset(space + at, 0x77, 12);
            ck_assert_int_eq(tested(space, len_bytes), HEALTH_STUCK);
        }
}

TEST(a_short_answer_of_one_value_is_noticed_from_nine_bytes_on)
{
    for (size_t len_bytes = 9; len_bytes <= 12; len_bytes++) {
        memset(space, 0, len_bytes);
        ck_assert_int_eq(tested(space, len_bytes), HEALTH_STUCK);
        space[len_bytes / 2] = 1;
        ck_assert_int_eq(tested(space, len_bytes), HEALTH_GOOD);
    }
    memset(space, 0, 8);
    ck_assert_int_eq(tested(space, 8), HEALTH_GOOD);
}

TEST(nothing_written_is_noticed_at_every_size)
{
    for (size_t len_bytes = 8; len_bytes <= 4096;
         len_bytes = len_bytes < 1025 ? len_bytes + 1 : len_bytes * 2) {
        health_prefill(space, len_bytes);
        ck_assert_int_eq(tested(space, len_bytes), HEALTH_UNWRITTEN);
    }
}

/* By a token that cuts a length short, or skips the first bytes. */
TEST(eight_bytes_that_were_not_written_are_noticed_at_either_end)
{
    static const size_t lengths[] = {16, 17, 23, 24, 64, 100, 1000, 1024, 4096, 65536};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (size_t missing = 8; missing <= lengths[l]; missing += 1 + lengths[l] / 50) {
            size_t written = lengths[l] - missing;
            health_prefill(space, lengths[l]);
            good_bytes(missing, space, written);
            ck_assert_int_eq(tested(space, lengths[l]), HEALTH_UNWRITTEN);
            health_prefill(space, lengths[l]);
            good_bytes(missing + 1, space + missing, written);
            ck_assert_int_eq(tested(space, lengths[l]), HEALTH_UNWRITTEN);
        }
}

TEST(a_gap_in_the_middle_is_noticed)
{
    uint8_t prefilled[1024];
    health_prefill(prefilled, sizeof prefilled);
    for (size_t at = 16; at + 64 <= sizeof prefilled; at++) {
        good_bytes(at, space, sizeof prefilled);
        memcpy(space + at, prefilled + at, 32);
        ck_assert_int_eq(tested(space, sizeof prefilled), HEALTH_UNWRITTEN);
    }
}

TEST(an_answer_that_begins_as_one_of_the_last_did_is_noticed)
{
    good_bytes(0, space, 4096);
    ck_assert_int_eq(health_test(&health, space, 4096), HEALTH_GOOD);
    for (uint64_t other = 1; other < HEALTH_RECENT; other++) {
        good_bytes(0, space, 4096);
        ck_assert_int_eq(health_test(&health, space, other % 2 == 0 ? 1024 : 4096),
                         HEALTH_REPEATED);
        good_bytes(other, space, 4096);
        ck_assert_int_eq(health_test(&health, space, 4096), HEALTH_GOOD);
    }
    good_bytes(0, space, 4096);
    ck_assert_int_eq(health_test(&health, space, 16), HEALTH_REPEATED);
    ck_assert_int_eq(health_test(&health, space, 15), HEALTH_GOOD); /* too short to tell */
}

/* Too long for one answer to show it, but not for the next ones. */
TEST(a_period_longer_than_an_answer_is_noticed_in_the_next_ones)
{
    good_bytes(0, space, 1000);
    enum health_result last = HEALTH_GOOD;
    for (int answer = 0; answer < HEALTH_RECENT && last == HEALTH_GOOD; answer++)
        last = health_test(&health, space + answer * 200 % 1000, 200);
    ck_assert_int_eq(last, HEALTH_REPEATED);
}

TEST(a_start_forgets_the_answers_before_it)
{
    good_bytes(0, space, 1024);
    ck_assert_int_eq(health_test(&health, space, 1024), HEALTH_GOOD);
    health_start(&health);
    ck_assert_int_eq(health_test(&health, space, 1024), HEALTH_GOOD);
    ck_assert_int_eq(health_test(&health, space, 1024), HEALTH_REPEATED);
}

TEST(without_a_key_nothing_is_remembered)
{
    memset(&health, 0, sizeof health);
    good_bytes(0, space, 1024);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(health_test(&health, space, 1024), HEALTH_GOOD);
}

TEST(what_is_remembered_does_not_show_the_answers)
{
    good_bytes(0, space, 1024);
    ck_assert_int_eq(health_test(&health, space, 1024), HEALTH_GOOD);
    for (size_t at = 0; at + 8 <= 1024; at++)
        ck_assert_ptr_null(memmem(&health, sizeof health, space + at, 8));
}

TEST(the_kernels_bytes_are_good)
{
    enum { MB = 1000 * 1000 };
    size_t left = getenv("TESTS_LONG") != NULL ? (size_t)10000 * MB : (size_t)50 * MB;
    for (unsigned turn = 0; left > 0; turn++) {
        size_t len_bytes = turn % 2 == 0 ? turn * 7919 % 65536 + 1 : turn % 1024 + 1;
        for (size_t done = 0; done < len_bytes;) {
            ssize_t got = getrandom(space + done, len_bytes - done, 0);
            ck_assert_int_gt(got, 0);
            done += (size_t)got;
        }
        ck_assert_int_eq(health_test(&health, space, len_bytes), HEALTH_GOOD);
        left -= len_bytes < left ? len_bytes : left;
    }
}

TEST(each_result_has_a_text)
{
    for (int result = HEALTH_GOOD; result <= HEALTH_REPEATED; result++)
        for (int other = HEALTH_GOOD; other < result; other++)
            ck_assert_str_ne(health_text((enum health_result)result),
                             health_text((enum health_result)other));
}

static void set_up(void)
{
    errno = EDOM;
    health_start(&health);
    ck_assert_int_eq(errno, EDOM);
    ck_assert(health.remembers);
}

int main(void)
{
    if (getenv("TESTS_LONG") != NULL)
        setenv("CK_TIMEOUT_MULTIPLIER", "10", 1);
    return test_main("health", set_up, NULL);
}
