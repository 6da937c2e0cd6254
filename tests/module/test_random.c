/* test_random.c - what a caller of C_GenerateRandom sees is what the token would have answered, unless its generator is stuck
 * or repeats itself: that is found out before anybody gets its bytes. */
#include "fixture.h"

#include <errno.h>

enum { ANY_ERRNO = 4711, PIECES = 1024 / 64 };

/* A pool that has something to serve, and no thread that is at work. */
static void begin_warm(const char *settings)
{
    begin(settings);
    for (int i = 0; i < 128; i++)
        EXPECT(draw_or_fail(session, 32), CKR_OK);
    let_filler_work();
}

/* How many random requests have reached the token from this thread. */
static unsigned own_requests(void)
{
    return CALLS(C_GenerateRandom, .by = THIS_THREAD);
}

/* _i: the token has no generator; or the session is asynchronous, which the pool is not. */
TEST_EACH(what_the_pool_does_not_serve_reaches_the_token_as_it_is, 0, 2)
{
    script("%s", _i == 0 ? "no generator" : "");
    begin_warm("");
    session = open_session(0, _i == 0 ? 0 : CKF_ASYNC_SESSION);
    draw(session, 16, 800);
    ck_assert_uint_eq(CALLS(C_GenerateRandom, .bytes = 16, .session = session), 50);
    ck_assert(_i == 1 || CALLS(C_GenerateRandom, .by = FILLER) == 0);
}

TEST_EACH(odd_requests_are_the_tokens_to_answer, 0, 2)
{
    CK_BYTE bytes[8];
    begin_warm(_i == 0 ? "" : "x-pool-mix: kernel");
    unsigned before = own_requests();
    EXPECT(fn->C_GenerateRandom(session, NULL, 8), CKR_ARGUMENTS_BAD);
    EXPECT(fn->C_GenerateRandom(session, NULL, 0), CKR_OK);
    EXPECT(fn->C_GenerateRandom(session, bytes, 0), CKR_OK);
    EXPECT(fn->C_GenerateRandom(CK_INVALID_HANDLE, bytes, 8), CKR_SESSION_HANDLE_INVALID);
    EXPECT(fn->C_GenerateRandom(session + 1000, bytes, 8), CKR_SESSION_HANDLE_INVALID);
    ck_assert_uint_eq(own_requests(), before + 5);
    ck_assert_uint_eq(CALLS(C_GenerateRandom, .rv = 0x7), 1);
    ck_assert_uint_eq(CALLS(C_GenerateRandom, .rv = 0xb3), 2);
}

/* In pieces of 1 MiB, all or nothing. */
TEST(large_requests_reach_the_token_as_they_are)
{
    enum { MIB = 1048576, HUGE = 3 * MIB + 8 };
    static const CK_ULONG large[] = {1025, 65536, MIB, HUGE};
    begin_warm("");
    for (size_t i = 0; i < COUNT_OF(large); i++) {
        unsigned before = own_requests();
        EXPECT(draw_or_fail(session, large[i]), CKR_OK);
        ck_assert_uint_eq(own_requests(), before + (large[i] + MIB - 1) / MIB);
        ck_assert_uint_ge(CALLS(C_GenerateRandom, .bytes = large[i] <= MIB ? large[i] : 8), 1);
    }
    script("C_GenerateRandom over 1024: fail 0x30; C_GenerateRandom over 1024: ok twice");
    EXPECT(draw_or_fail(session, HUGE), CKR_DEVICE_ERROR);
}

TEST_EACH(a_failed_request_leaves_no_bytes_of_the_token, 0, PIECES)
{
    script("C_GenerateRandom over 64: fail 0x21");
    begin("x-pool-threads: never");
    draw(session, 512, 4096); /* what the token takes is known now, */
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_OK);
    /* and the next request fails on the way, at any piece of it */
    script("C_GenerateRandom: fail 0x30; C_GenerateRandom: ok %d times", _i);
    EXPECT(draw_or_fail(session, 1024), CKR_DEVICE_ERROR);
}

TEST(errno_is_kept)
{
    CK_BYTE bytes[2048];
    begin("");
    for (int i = 0; i < 2000; i++) {
        errno = ANY_ERRNO;
        EXPECT(fn->C_GenerateRandom(session, bytes, 16), CKR_OK);
        ck_assert_int_eq(errno, ANY_ERRNO);
    }
    errno = ANY_ERRNO;
    EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
    ck_assert_int_eq(errno, ANY_ERRNO);
    EXPECT(fn->C_SeedRandom(session, bytes, 8), CKR_OK);
    ck_assert_int_eq(errno, ANY_ERRNO);
}

/* What the target does for CKR_OK instead of writing its words. */
static const char *const faults[] = {"write 0", "write half", "stuck", "repeat"};
static const char *const settings[] = {"", "x-pool-threads: never"};
static const CK_ULONG sizes[] = {64, 1024};

enum { FAULTS = COUNT_OF(faults), SETTINGS = 2, SIZES = 2, LENGTH_MOST = 1024, FAILING = 64 };

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
    ck_assert_uint_ge(served_words(), 100 * size / WORD_BYTES);
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
    begin_filled();
    script("C_GenerateRandom by filler: %s", faults[_i]);
    WAIT_UNTIL(draw_or_fail(session, 64) != CKR_OK);
    EXPECT(draw_or_fail(session, 64), CKR_DEVICE_ERROR);
    EXPECT(draw_or_fail(session, LENGTH_MOST), CKR_DEVICE_ERROR);
}

enum { DRAWS = 200 };

/* Some from the pool, and some from the token while another thread fetches. The last bytes of each. */
static void *draw_of_all_sizes(void *unused)
{
    static const CK_ULONG lengths[] = {16, 24, 1024, 100, 512, 16};
    uint8_t buf[LENGTH_MOST];
    for (unsigned i = 0; i < DRAWS; i++) {
        CK_ULONG len_bytes = lengths[i % COUNT_OF(lengths)];
        if (fn->C_GenerateRandom(session, buf, len_bytes) == CKR_OK)
            drawn(buf + len_bytes - PIECE_BYTES);
    }
    return unused;
}

/* _i: the filler; and whether small fetches are well, which say nothing of the others. */
TEST_EACH(threads_are_never_served_the_same_bytes_by_a_token_that_repeats_itself, 0, 2 * SETTINGS)
{
    script("C_GenerateRandom: last 1ms; C_GenerateRandom%s: repeat",
           _i / SETTINGS == 0 ? "" : " over 100");
    begin(settings[_i % SETTINGS]);
    start_threads(THREADS_MOST, draw_of_all_sizes, NULL);
    join_threads();
    ck_assert_uint_lt(drawn_once(), THREADS_MOST * DRAWS / 2);
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
        for (size_t i = 0; i < COUNT_OF(lengths); i++) {
            EXPECT(fn->C_GenerateRandom(session, buf, lengths[i]), CKR_OK);
            ck_assert_uint_eq(CALLS(C_GenerateRandom, .bytes = lengths[i], .session = session),
                              (unsigned)round + 1);
        }
    script("C_GenerateRandom: fail 0x30");
    EXPECT(fn->C_GenerateRandom(session, buf, sizeof buf), CKR_DEVICE_ERROR);
    /* C_Initialize and C_OpenSession besides. */
    ck_assert_uint_eq(target_calls_in_all(), 3 * COUNT_OF(lengths) + 1 + 2);
}
