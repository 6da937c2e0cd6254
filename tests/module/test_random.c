/* test_random.c - what a caller of C_GenerateRandom sees is what the token would have answered. */
#include "fixture.h"

#include <errno.h>
#include <string.h>

enum { ANY_ERRNO = 4711, PIECES = 1024 / 64 };

/* A pool that has something to serve, and no thread that is at work. */
static void begin_filled(const char *settings)
{
    begin(settings);
    draw(session, 32, 4096);
    let_filler_work();
}

/* How many random requests have reached the token from this thread. */
static unsigned own_requests(void)
{
    return CALLS(C_GenerateRandom, .by = THIS_THREAD);
}

TEST(without_a_generator_each_request_reaches_the_token_as_it_is)
{
    script("no generator");
    begin("");
    draw(session, 16, 800);
    ck_assert_uint_eq(CALLS(C_GenerateRandom, .bytes = 16), 50);
    ck_assert_uint_eq(CALLS(C_GenerateRandom, .by = FILLER), 0);
}

TEST_EACH(odd_requests_are_the_tokens_to_answer, 0, 2)
{
    CK_BYTE bytes[8];
    begin_filled(_i == 0 ? "" : "x-pool-mix: kernel");
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
    static CK_BYTE bytes[HUGE];
    static CK_BYTE nothing[HUGE];
    static const CK_ULONG large[] = {1025, 65536, MIB, HUGE};
    begin_filled("");
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        unsigned before = own_requests();
        EXPECT(fn->C_GenerateRandom(session, bytes, large[i]), CKR_OK);
        served(bytes, large[i]);
        ck_assert_uint_eq(own_requests(), before + (large[i] + MIB - 1) / MIB);
        ck_assert_uint_ge(CALLS(C_GenerateRandom, .bytes = large[i] <= MIB ? large[i] : 8), 1);
    }
    served_once((MIB + HUGE) / WORD_BYTES);
    script("C_GenerateRandom over 1024: fail 0x30; C_GenerateRandom over 1024: ok twice");
    memset(bytes, 0, HUGE);
    EXPECT(fn->C_GenerateRandom(session, bytes, HUGE), CKR_DEVICE_ERROR);
    ck_assert_mem_eq(bytes, nothing, HUGE);
}

TEST_EACH(a_failed_request_leaves_no_bytes_of_the_token, 0, PIECES)
{
    CK_BYTE bytes[1024] = {0};
    CK_BYTE nothing[1024] = {0};
    script("C_GenerateRandom over 64: fail 0x21");
    begin("x-pool-threads: never");
    draw(session, 512, 4096); /* what the token takes is known now, */
    EXPECT(fn->C_Login(session, CKU_USER, (CK_BYTE_PTR) "1234", 4), CKR_OK);
    /* and the next request fails on the way, at any piece of it */
    script("C_GenerateRandom: fail 0x30; C_GenerateRandom: ok %d times", _i);
    EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_DEVICE_ERROR);
    ck_assert_mem_eq(bytes, nothing, sizeof bytes);
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

TEST(an_asynchronous_session_is_the_tokens_alone)
{
    begin_filled("");
    CK_SESSION_HANDLE asynchronous = open_session(0, CKF_ASYNC_SESSION);
    unsigned before = own_requests();
    draw(asynchronous, 16, 320);
    ck_assert_uint_eq(own_requests(), before + 20);
}
