/* words_seen.c - a bitmap of the words that were served, in memory that forked processes share. */
#include "words_seen.h"

#include <check.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORDS_MOST = 256 * 1024 * 1024, CHUNK_BYTES = 64 * 1024 };

struct seen {
    atomic_ulong found;
    atomic_ulong twice;
    atomic_ulong zeros;
    atomic_uchar bits[WORDS_MOST / 8];
};

static struct seen *seen;
static int stream_fd = -1;

void words_begin(void)
{
    char path[64];
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(seen, MAP_FAILED);
    stream_fd = memfd_create("stream", 0);
    ck_assert_int_ge(stream_fd, 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", stream_fd);
    setenv("COUNTING_STREAM", path, 1);
}

uint64_t words_made(void)
{
    uint64_t made = 0;
    return pread(stream_fd, &made, sizeof made, 0) == sizeof made ? made : 0;
}

static void note(uint64_t counter)
{
    unsigned char bit = (unsigned char)(1U << counter % 8);
    if (counter >= WORDS_MOST)
        return;
    atomic_fetch_add(&seen->found, 1);
    if ((atomic_fetch_or(&seen->bits[counter / 8], bit) & bit) != 0)
        atomic_fetch_add(&seen->twice, 1);
}

void words_note(const uint8_t *bytes, size_t len_bytes)
{
    static const uint8_t zeros[WORD_BYTES];
    struct word word;
    for (size_t at = 0; at + WORD_BYTES <= len_bytes;) {
        if (memcmp(bytes + at, zeros, WORD_BYTES) == 0)
            atomic_fetch_add(&seen->zeros, 1);
        bool found = word_read(bytes + at, &word);
        if (found)
            note(word.counter);
        at += found ? WORD_BYTES : 1;
    }
}

bool words_was_noted(uint64_t counter)
{
    return counter < WORDS_MOST && (atomic_load(&seen->bits[counter / 8]) & 1U << counter % 8) != 0;
}

void words_check(uint64_t least)
{
    ck_assert_msg(atomic_load(&seen->twice) == 0, "%lu of %lu words were served twice",
                  atomic_load(&seen->twice), atomic_load(&seen->found));
    ck_assert_msg(atomic_load(&seen->zeros) == 0, "zeros were served, %lu words of them",
                  atomic_load(&seen->zeros));
    ck_assert_uint_ge(atomic_load(&seen->found), least);
}

uint64_t words_draw(CK_SESSION_HANDLE session, size_t size_bytes, size_t len_bytes)
{
    static uint8_t bytes[CHUNK_BYTES];
    uint64_t lowest = UINT64_MAX;
    struct word word;
    ck_assert_uint_le(len_bytes, sizeof bytes);
    for (size_t at = 0; at < len_bytes; at += size_bytes)
        EXPECT(fn->C_GenerateRandom(session, bytes + at, size_bytes), CKR_OK);
    words_note(bytes, len_bytes);
    for (size_t at = 0; at + WORD_BYTES <= len_bytes; at++)
        if (word_read(bytes + at, &word) && word.counter < lowest)
            lowest = word.counter;
    return lowest;
}

void words_draw_until(CK_SESSION_HANDLE session, bool (*is_so)(void))
{
    while (!is_so()) {
        words_draw(session, 16, 256);
        usleep(1000);
    }
}

struct word word_draw(CK_SESSION_HANDLE session)
{
    uint8_t bytes[WORD_BYTES];
    struct word word;
    EXPECT(fn->C_GenerateRandom(session, bytes, sizeof bytes), CKR_OK);
    ck_assert_msg(word_read(bytes, &word), "what was served is no whole word");
    words_note(bytes, sizeof bytes);
    return word;
}
