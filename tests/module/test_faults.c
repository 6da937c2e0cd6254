/* test_faults.c - the system refuses what the pool is made of: then the token answers, and every code is true.
 *
 * The C library's functions that the proxy calls are replaced by this program's own, which ask the system
 * unless a test says otherwise.
 */
#include "fixture.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

enum does { WORKS, FAILS, LIES }; /* LIES: says that it did what it did not do */

static enum does madvise_does, mprotect_does, pthread_create_does;

int madvise(void *address, size_t len, int advice)
{
    if (madvise_does == WORKS)
        return (int)syscall(SYS_madvise, address, len, advice);
    errno = EINVAL;
    return madvise_does == LIES ? 0 : -1;
}

int mprotect(void *address, size_t len, int protection)
{
    if (mprotect_does == WORKS)
        return (int)syscall(SYS_mprotect, address, len, protection);
    errno = ENOMEM;
    return -1;
}

static unsigned locks;

int mlock(const void *address, size_t len)
{
    locks++;
    return (int)syscall(SYS_mlock, address, len);
}

int mlock2(const void *address, size_t len, unsigned flags)
{
    locks++;
    return (int)syscall(SYS_mlock2, address, len, flags);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (pthread_create_does == FAILS)
        return EAGAIN;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attributes, run, argument);
}

/* A kernel whose bytes are known, unless it has none, has enough for one block, gives too few, or is interrupted. */
static enum { REAL, KNOWN, NONE, ONE_BLOCK, TOO_FEW, INTERRUPTED_ONCE } kernel;
static size_t kernel_bytes;         /* that it gave so far */
static uint64_t made_before_kernel; /* words that the token had made when it was first asked */

static uint8_t kernel_byte(size_t place)
{
    return (uint8_t)(place * 89 + place / 251 + 7);
}

ssize_t getrandom(void *buf, size_t len, unsigned flags)
{
    if (kernel == REAL || flags != 0)
        return syscall(SYS_getrandom, buf, len, flags);
    if (kernel == NONE || (kernel == ONE_BLOCK && kernel_bytes != 0)) {
        errno = ENOSYS;
        return -1;
    }
    if (kernel == INTERRUPTED_ONCE) {
        kernel = KNOWN;
        errno = EINTR;
        return -1;
    }
    if (kernel_bytes == 0)
        made_before_kernel = words_made();
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)buf)[i] = kernel_byte(kernel_bytes++);
    return (ssize_t)len - (kernel == TOO_FEW);
}

static void every_request_reaches_the_token(void)
{
    unsigned before = CALLS(C_GenerateRandom);
    draw(session, 16, 1600);
    ck_assert_uint_eq(CALLS(C_GenerateRandom), before + 100);
}

/* At C_Initialize, or when the pool is made, which is at its first request. */
TEST_EACH(where_wiping_on_fork_is_not_proven_there_is_no_pool, 0, 4)
{
    if (_i < 2)
        madvise_does = _i == 0 ? FAILS : LIES;
    begin("");
    madvise_does = _i % 2 == 0 ? FAILS : LIES;
    every_request_reaches_the_token();
    ck_assert_uint_eq(
        messages_with("no pool: this system does not prove that it wipes memory on fork"), _i < 2);
}

TEST_EACH(without_memory_there_is_no_pool, 0, 2)
{
    list_of(dlopen(target_path("scripted"), RTLD_NOW)); /* the target has its memory */
    mprotect_does = _i == 0 ? FAILS : WORKS;
    proxy_with("");
    mprotect_does = WORKS;
    begin_again();
    mprotect_does = _i == 1 ? FAILS : WORKS;
    every_request_reaches_the_token();
}

/* Some sandboxes kill a program that locks memory. */
TEST_EACH(a_pool_that_is_told_so_never_asks_for_locked_memory, 0, 2)
{
    begin(_i == 0 ? "x-pool-lock-memory: never" : "");
    draw(session, 16, 1600);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    ck_assert((locks == 0) == (_i == 0));
}

TEST(without_a_thread_callers_fill_the_pool)
{
    pthread_create_does = FAILS;
    begin("x-pool-max-age: 1min");
    small_draws_are_served_ahead(session);
    ck_assert_uint_eq(messages_with("no background thread"), 1);
    ck_assert_uint_eq(CALLS(C_GenerateRandom, .by = FILLER), 0);
}

/* From a stripe, from the ring, with no pool, and around it. */
static const struct {
    const char *settings;
    CK_ULONG len_bytes;
} ways[] = {{"x-pool-mix: kernel\nx-pool-max-age: 1min", 32},
            {"x-pool-mix: kernel\nx-pool-max-age: 1min", 1024},
            {"x-pool-mix: kernel\nx-pool: off", 32},
            {"x-pool-mix: kernel\nx-pool: off", 1000},
            {"x-pool-mix: kernel", 4096},
            {"x-pool-mix: kernel", 2 * 1024 * 1024}};

enum { WAYS = COUNT_OF(ways) };

static uint8_t buf[2 * 1024 * 1024];

/* Words are whole in what is left, if the kernel's bytes are taken off it; and were made before those. */
static void is_the_tokens_without_the_kernels(size_t len_bytes)
{
    struct word word;
    size_t good = 0;
    ck_assert_uint_eq(kernel_bytes, len_bytes);
    for (size_t i = 0; i < len_bytes; i++)
        buf[i] ^= kernel_byte(i);
    for (size_t at = 0; at + WORD_BYTES <= len_bytes; at += WORD_BYTES)
        good += word_read(buf + at, &word) && word.counter <= made_before_kernel;
    ck_assert_uint_eq(good, len_bytes / WORD_BYTES);
}

TEST_EACH(what_is_mixed_is_the_xor_of_the_two_and_the_kernels_came_later, 0, WAYS)
{
    begin(ways[_i].settings);
    for (int turn = 0; turn < 5; turn++) {
        kernel = turn == 0 ? INTERRUPTED_ONCE : KNOWN;
        kernel_bytes = 0;
        EXPECT(fn->C_GenerateRandom(session, buf, ways[_i].len_bytes), CKR_OK);
        is_the_tokens_without_the_kernels(ways[_i].len_bytes);
    }
}

TEST_EACH(without_the_kernels_bytes_a_call_fails_and_tells_nothing, 0, WAYS)
{
    begin(ways[_i].settings);
    EXPECT(fn->C_GenerateRandom(session, buf, ways[_i].len_bytes), CKR_OK);
    for (kernel = NONE; kernel <= TOO_FEW; kernel++) {
        kernel_bytes = 0;
        /* One block is all that a small request needs. */
        if (kernel == ONE_BLOCK && ways[_i].len_bytes <= 256)
            continue;
        errno = EDOM;
        memset(buf, 0x55, sizeof buf);
        EXPECT(fn->C_GenerateRandom(session, buf, ways[_i].len_bytes), CKR_FUNCTION_FAILED);
        ck_assert_int_eq(errno, EDOM);
        size_t told = 0;
        for (size_t i = 0; i < ways[_i].len_bytes; i++)
            told += buf[i] != 0;
        ck_assert_uint_eq(told, 0);
        if (ways[_i].len_bytes < sizeof buf)
            ck_assert_uint_eq(buf[ways[_i].len_bytes], 0x55);
    }
    kernel = REAL;
    EXPECT(fn->C_GenerateRandom(session, buf, ways[_i].len_bytes), CKR_OK);
}
