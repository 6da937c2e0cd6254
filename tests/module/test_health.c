/* test_health.c - a generator that is stuck or repeats itself is found out before anybody gets its bytes. */
#include "fixture.h"

#include <stdatomic.h>

/* What the target does for CKR_OK instead of writing its words. */
static const char *const faults[] = {"write 0", "write half", "stuck", "repeat"};
static const char *const settings[] = {"", "x-pool-threads: never"};
static const CK_ULONG sizes[] = {64, 1024};

enum {
    FAULTS = sizeof faults / sizeof *faults,
    SETTINGS = 2,
    SIZES = 2,
    LENGTH_MOST = 1024,
    FAILING = 64
};

/* Until draws of that size fail; so many may succeed before, with what was held. */
static void draw_until_it_fails(CK_ULONG len_bytes)
{
    unsigned draws = 0;
    while (draw_or_fail(session, len_bytes) == CKR_OK)
        ck_assert_uint_lt(draws++, 64 * 1024 / len_bytes + FAILING);
    EXPECT(draw_or_fail(session, len_bytes), CKR_DEVICE_ERROR);
}

TEST_EACH(bytes_that_are_bad_once_are_thrown_away_and_the_next_ones_served, 0, 3 * SIZES * SETTINGS)
{
    CK_ULONG size = sizes[_i / 3 % SIZES];
    script("C_GenerateRandom: %s once", faults[_i % 3]);
    begin(settings[_i / 3 / SIZES]);
    for (int i = 0; i < 100; i++)
        EXPECT(draw_or_fail(session, size), CKR_OK);
    served_once(100 * size / WORD_BYTES);
}

/* Far apart they prove nothing. */
TEST(alarms_that_are_not_in_a_row_do_not_add_up)
{
    begin("x-pool-threads: never");
    for (unsigned i = 1; i <= 4; i++) {
        unsigned calls = CALLS(C_GenerateRandom);
        script("C_GenerateRandom: %s once", faults[i % 3]);
        while (CALLS(C_GenerateRandom) < calls + 3)
            EXPECT(draw_or_fail(session, LENGTH_MOST), CKR_OK);
    }
    served_once(4 * 2 * LENGTH_MOST / WORD_BYTES);
}

static atomic_uint served_nothing;

static void *draw_until_failed(void *unused)
{
    static const CK_BYTE nothing[39];
    CK_BYTE bytes[sizeof nothing];
    CK_RV rv;
    do {
        memset(bytes, 0, sizeof bytes);
        rv = fn->C_GenerateRandom(session, bytes, sizeof bytes);
        if (rv == CKR_OK && memcmp(bytes, nothing, sizeof bytes) == 0)
            atomic_fetch_add(&served_nothing, 1);
    } while (rv == CKR_OK);
    return unused;
}

/* One of them is on its way to the token while another one is told that it has failed. */
TEST(threads_that_draw_when_the_generator_fails_get_no_empty_answer)
{
    enum { LIVES = 200 };
    proxy_with("x-pool-size: 4KiB");
    for (int life = 0; life < LIVES; life++) {
        script_anew("");
        begin_again();
        EXPECT(draw_or_fail(session, 39), CKR_OK);
        start_threads(THREADS_MOST, draw_until_failed, NULL);
        script("C_GenerateRandom: stuck");
        join_threads();
        EXPECT(fn->C_Finalize(NULL), CKR_OK);
    }
    ck_assert_uint_eq(served_nothing, 0);
}

/* The token is not asked again, because the cause of the failure is not known. */
TEST_EACH(bytes_that_are_bad_again_and_again_end_it_until_finalize, 0, FAULTS *SIZES *SETTINGS)
{
    begin(settings[_i / FAULTS / SIZES]);
    EXPECT(draw_or_fail(session, 64), CKR_OK);
    script("C_GenerateRandom over 0: %s", faults[_i % FAULTS]);
    draw_until_it_fails(sizes[_i / FAULTS % SIZES]);
    /* What the standard lets only the token answer. */
    EXPECT(fn->C_GenerateRandom(session, NULL, 0), CKR_OK);
    EXPECT(fn->C_GenerateRandom(session, NULL, 16), CKR_ARGUMENTS_BAD);
    EXPECT(fn->C_GenerateRandom(session + 1, (CK_BYTE_PTR) "", 1), CKR_SESSION_HANDLE_INVALID);
    script("C_GenerateRandom over 0: ok");
    let_filler_work();
    unsigned asked = CALLS(C_GenerateRandom);
    CK_SESSION_HANDLE first = session;
    session = open_session(0, 0);
    EXPECT(fn->C_CloseSession(first), CKR_OK);
    EXPECT(fn->C_SeedRandom(session, (CK_BYTE_PTR) "seed", 4), CKR_OK);
    for (CK_ULONG len_bytes = 1; len_bytes <= LENGTH_MOST; len_bytes += len_bytes < 40 ? 1 : 99)
        EXPECT(draw_or_fail(session, len_bytes), CKR_DEVICE_ERROR);
    ck_assert_uint_eq(CALLS(C_GenerateRandom), asked);
    ck_assert_uint_le(messages_with(""), 12);
    ck_assert_uint_ge(messages_with("C_Finalize"), 1);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    begin_again();
    for (int i = 0; i < 100; i++)
        EXPECT(draw_or_fail(session, 32), CKR_OK);
}

/* The filler meets them, not a caller: what it fetched before is dropped as well. */
TEST_EACH(what_the_filler_finds_counts_for_all, 0, FAULTS)
{
    begin("x-pool-max-age: 1min");
    draw_until_filled(session);
    script("C_GenerateRandom by filler: %s", faults[_i]);
    WAIT_UNTIL(draw_or_fail(session, 64) != CKR_OK);
    EXPECT(draw_or_fail(session, 64), CKR_DEVICE_ERROR);
    EXPECT(draw_or_fail(session, LENGTH_MOST), CKR_DEVICE_ERROR);
}

enum { DRAWS = 200, PIECE = 16 };

static uint8_t drawn[THREADS_MOST * DRAWS][PIECE];
static atomic_uint drawn_count, failed_count;

/* Some from the pool, and some from the token while another thread fetches. The last bytes of each. */
static void *draw_of_all_sizes(void *unused)
{
    static const CK_ULONG lengths[] = {16, 24, 1024, 100, 512, 16};
    uint8_t buf[LENGTH_MOST];
    for (unsigned i = 0; i < DRAWS; i++) {
        CK_ULONG len_bytes = lengths[i % (sizeof lengths / sizeof *lengths)];
        if (fn->C_GenerateRandom(session, buf, len_bytes) != CKR_OK)
            atomic_fetch_add(&failed_count, 1);
        else
            memcpy(drawn[atomic_fetch_add(&drawn_count, 1)], buf + len_bytes - PIECE, PIECE);
    }
    return unused;
}

static int compare(const void *one, const void *other)
{
    return memcmp(one, other, PIECE);
}

/* _i: the filler; and whether small fetches are well, which say nothing of the others. */
TEST_EACH(threads_are_never_served_the_same_bytes_by_a_token_that_repeats_itself, 0, 2 * SETTINGS)
{
    script("C_GenerateRandom: last 1ms; C_GenerateRandom%s: repeat",
           _i / SETTINGS == 0 ? "" : " over 100");
    begin(settings[_i % SETTINGS]);
    start_threads(THREADS_MOST, draw_of_all_sizes, NULL);
    join_threads();
    qsort(drawn, drawn_count, PIECE, compare);
    for (unsigned i = 1; i < drawn_count; i++)
        ck_assert_msg(memcmp(drawn[i - 1], drawn[i], PIECE) != 0, "bytes were served twice");
    ck_assert_uint_gt(failed_count, THREADS_MOST * DRAWS / 2);
    EXPECT(draw_or_fail(session, 64), CKR_DEVICE_ERROR);
}

/* Without the pool, the application gets the token as it is. */
TEST_EACH(with_the_pool_off_nothing_is_tested_and_nothing_split, 0, FAULTS)
{
    static const CK_ULONG lengths[] = {1, 8, 16, 64, 1024, 1025, 65536, 1048576, 3 * 1048576};
    static uint8_t buf[3 * 1048576];
    script("C_GenerateRandom: %s", faults[_i]);
    begin("x-pool: off");
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            EXPECT(fn->C_GenerateRandom(session, buf, lengths[i]), CKR_OK);
            ck_assert_uint_eq(CALLS(C_GenerateRandom, .bytes = lengths[i], .session = session),
                              (unsigned)round + 1);
        }
    script("C_GenerateRandom: fail 0x30");
    EXPECT(fn->C_GenerateRandom(session, buf, sizeof buf), CKR_DEVICE_ERROR);
    /* C_Initialize and C_OpenSession besides. */
    ck_assert_uint_eq(target_calls_in_all(), 3 * sizeof lengths / sizeof *lengths + 1 + 2);
}
