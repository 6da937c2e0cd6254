/* test_health.c - a generator that failed is noticed, wherever in an answer it failed, and a good one is not accused.
 *
 * TESTS_LONG=1 lets 10 GB of the kernel's bytes pass instead of 50 MB.
 */
#include <errno.h>

#include "../check_main.h"
#include "../targets/words.h"
#include "pool/health.h"

static struct health health;
static uint8_t space[70 * 1000];

/* Bytes that look random: a stream of words for each seed. */
static void good_bytes(uint64_t seed, uint8_t *bytes, size_t len_bytes)
{
    for (size_t i = 0; i < len_bytes; i++)
        bytes[i] = (uint8_t)(word_scramble(seed * 1000003 + i / 8 + 1) >> i % 8 * 8);
}

/* What is not remembered cannot be found to have come before, so each test tests its own answer only. */
static bool is_good(const uint8_t *bytes, size_t len_bytes)
{
    memset(&health, 0, sizeof health);
    return health_test(&health, bytes, len_bytes) == NULL;
}

/* How a generator fails. */
static const struct {
    const char *name;
    size_t period;       /* bytes come again after so many; 0: they do not */
    size_t every, zeros; /* of so many bytes so many are zero */
    uint8_t or, and;     /* bits of each byte that are always 1, and those that may be 1 */
    bool counts;         /* each byte is its predecessor plus 1 */
    size_t least_bytes;  /* of it, to be told from chance */
} failures[] = {
    {.name = "all 00", .least_bytes = 12},
    {.name = "all ff", .or = 0xff, .least_bytes = 12},
    {.name = "a period of 12", .and = 0xff, .period = 12, .least_bytes = 80},
    {.name = "a period of 16", .and = 0xff, .period = 16, .least_bytes = 48},
    {.name = "a period of 1000", .and = 0xff, .period = 1000, .least_bytes = 2032},
    /* As AMD's Zen 5: a draw of 8 bytes is zero now and then, with success. */
    {.name = "8 zeros in 80 bytes", .and = 0xff, .every = 80, .zeros = 8, .least_bytes = 1024},
    {.name = "4 bits missing", .and = 0x0f, .least_bytes = 1024},
    {.name = "a counter", .and = 0xff, .counts = true, .least_bytes = 288},
};

static void spoil(int failure, uint8_t *bytes, size_t len_bytes)
{
    __typeof__(failures[0]) *f = &failures[failure];
    for (size_t i = 0; i < len_bytes; i++) {
        if (f->period != 0 && i >= f->period)
            bytes[i] = bytes[i - f->period];
        if (f->counts)
            bytes[i] = (uint8_t)i;
        bytes[i] = (uint8_t)((bytes[i] & f->and) | f->or);
        if (f->every != 0 && i % f->every < f->zeros)
            bytes[i] = 0;
    }
}

TEST_EACH(a_generator_that_failed_is_noticed_wherever_in_an_answer, 0, COUNT_OF(failures))
{
    static const size_t before[] = {0, 1, 7, 16, 100, 511, 512, 513, 5000, 32000, 33000};
    size_t bad = failures[_i].least_bytes;
    for (size_t b = 0; b < COUNT_OF(before); b++)
        for (size_t behind = 0; behind <= 600; behind += 200) {
            size_t len_bytes = before[b] + bad + behind;
            /* The window that a block is looked for in ends in the middle. */
            if (before[b] < HEALTH_WINDOW_BYTES && len_bytes > HEALTH_WINDOW_BYTES)
                continue;
            good_bytes(b, space, len_bytes);
            ck_assert(is_good(space, len_bytes));
            spoil(_i, space + before[b], bad);
            ck_assert_msg(!is_good(space, len_bytes), "%s after %zu bytes", failures[_i].name,
                          before[b]);
        }
}

TEST(a_run_of_twelve_is_noticed_at_every_place_and_one_of_eight_is_chance)
{
    for (size_t len_bytes = 9; len_bytes <= 80; len_bytes++)
        for (size_t at = 0; at == 0 || at + 12 <= len_bytes; at++) {
            size_t run = len_bytes < 12 ? len_bytes : 12;
            good_bytes(len_bytes, space, len_bytes);
            memset(space + at, 0x77, 8);
            ck_assert(is_good(space, len_bytes));
            memset(space + at, 0x77, run); /* of all of a shorter answer */
            ck_assert(!is_good(space, len_bytes));
        }
}

/* By a token that cuts a length short, skips the first bytes, or leaves a gap. */
TEST(eight_bytes_at_either_end_that_were_not_written_are_noticed_and_twelve_anywhere)
{
    static const size_t lengths[] = {8, 16, 17, 23, 24, 64, 100, 1000, 1024, 4096, 65536};
    for (size_t l = 0; l < COUNT_OF(lengths); l++)
        for (size_t missing = 8; missing <= lengths[l]; missing += 1 + lengths[l] / 50) {
            size_t written = lengths[l] - missing;
            health_prefill(space, lengths[l]);
            good_bytes(missing, space, written);
            ck_assert(!is_good(space, lengths[l]));
            health_prefill(space, lengths[l]);
            good_bytes(missing + 1, space + missing, written);
            ck_assert(!is_good(space, lengths[l]));
            if (missing < 12)
                continue;
            good_bytes(missing, space, lengths[l]);
            health_prefill(space + written / 2, missing);
            ck_assert(!is_good(space, lengths[l]));
        }
}

TEST(an_answer_that_begins_as_one_of_the_last_did_is_noticed)
{
    good_bytes(0, space, 4096);
    ck_assert_ptr_null(health_test(&health, space, 4096));
    for (uint64_t other = 1; other < HEALTH_LARGE; other++) {
        good_bytes(0, space, 4096);
        ck_assert_ptr_nonnull(health_test(&health, space, other % 2 == 0 ? 1024 : 4096));
        good_bytes(other, space, 4096);
        ck_assert_ptr_null(health_test(&health, space, 4096));
    }
    good_bytes(0, space, 4096);
    ck_assert_ptr_nonnull(health_test(&health, space, 16));
    ck_assert_ptr_null(health_test(&health, space, 15)); /* too short to tell */
    for (uint64_t small = 100; small < 100 + 2 * HEALTH_RECENT; small++) {
        good_bytes(small, space, 32);
        ck_assert_ptr_null(health_test(&health, space, 32));
    }
    good_bytes(0, space, 1024);
    ck_assert_ptr_nonnull(health_test(&health, space, 1024));
    health_start(&health);
    ck_assert_ptr_null(health_test(&health, space, 1024));
    ck_assert_ptr_nonnull(health_test(&health, space, 1024));
    /* Without a key nothing is remembered. */
    memset(&health, 0, sizeof health);
    for (int i = 0; i < 2; i++)
        ck_assert_ptr_null(health_test(&health, space, 1024));
}

TEST(what_is_remembered_does_not_show_the_answers)
{
    good_bytes(0, space, 1024);
    ck_assert_ptr_null(health_test(&health, space, 1024));
    for (size_t at = 0; at + 8 <= 1024; at++)
        ck_assert_ptr_null(memmem(&health, sizeof health, space + at, 8));
}

TEST(the_kernels_bytes_are_good)
{
    enum { MB = 1000 * 1000 };
    FILE *kernel = fopen("/dev/urandom", "re");
    size_t left = getenv("TESTS_LONG") != NULL ? (size_t)10000 * MB : (size_t)50 * MB;
    for (unsigned turn = 0; left > 0; turn++) {
        size_t len_bytes = turn % 2 == 0 ? turn * 7919 % 65536 + 1 : turn % 1024 + 1;
        ck_assert_uint_eq(fread(space, 1, len_bytes, kernel), len_bytes);
        ck_assert_ptr_null(health_test(&health, space, len_bytes));
        left -= len_bytes < left ? len_bytes : left;
    }
    fclose(kernel);
}

void set_up(void)
{
    errno = EDOM;
    health_start(&health);
    ck_assert_int_eq(errno, EDOM);
    ck_assert(health.remembers);
}

void before_all(void)
{
    if (getenv("TESTS_LONG") != NULL)
        setenv("CK_TIMEOUT_MULTIPLIER", "10", 1);
}
