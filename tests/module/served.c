/* served.c - a bitmap of the words that were served, in memory that forked processes share. */
#include "fixture.h"

#include <stdatomic.h>
#include <sys/mman.h>

enum { WORDS_MOST = 1 << COUNTER_BITS };

static struct seen {
    atomic_ulong found;
    atomic_ulong twice;
    atomic_ulong zeros;
    atomic_uchar bits[WORDS_MOST / 8];
} * seen;

void served_begin(void)
{
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(seen, MAP_FAILED);
}

void served_word(uint64_t counter)
{
    unsigned char bit = (unsigned char)(1U << counter % 8);
    atomic_fetch_add_explicit(&seen->found, 1, memory_order_relaxed);
    if ((atomic_fetch_or_explicit(&seen->bits[counter / 8], bit, memory_order_relaxed) & bit) != 0)
        atomic_fetch_add(&seen->twice, 1);
}

void served(const uint8_t *bytes, size_t len_bytes)
{
    static const uint8_t zeros[WORD_BYTES];
    struct word word;
    for (size_t at = 0; at + WORD_BYTES <= len_bytes;) {
        if (memcmp(bytes + at, zeros, WORD_BYTES) == 0)
            atomic_fetch_add(&seen->zeros, 1);
        bool found = word_read(bytes + at, &word) && word.counter <= words_made();
        if (found)
            served_word(word.counter);
        at += found ? WORD_BYTES : 1;
    }
}

bool was_served(uint64_t counter)
{
    return counter < WORDS_MOST && (atomic_load(&seen->bits[counter / 8]) & 1U << counter % 8) != 0;
}

const char *served_wrong(void)
{
    return atomic_load(&seen->twice) != 0   ? "a word was served twice"
           : atomic_load(&seen->zeros) != 0 ? "zeros were served"
                                            : NULL;
}

void served_once(uint64_t least)
{
    ck_assert_msg(served_wrong() == NULL, "%s", served_wrong());
    ck_assert_uint_ge(atomic_load(&seen->found), least);
}

uint64_t draw(CK_SESSION_HANDLE on, size_t size_bytes, size_t len_bytes)
{
    uint8_t *bytes = malloc(len_bytes); /* some threads have a small stack */
    uint64_t lowest = UINT64_MAX;
    struct word word;
    ck_assert_ptr_nonnull(bytes);
    for (size_t at = 0; at < len_bytes; at += size_bytes)
        EXPECT(fn->C_GenerateRandom(on, bytes + at, size_bytes), CKR_OK);
    served(bytes, len_bytes);
    for (size_t at = 0; at + WORD_BYTES <= len_bytes; at++)
        if (word_read(bytes + at, &word) && word.counter < lowest)
            lowest = word.counter;
    free(bytes);
    return lowest;
}

struct word draw_word(CK_SESSION_HANDLE on)
{
    uint8_t bytes[WORD_BYTES];
    struct word word;
    EXPECT(fn->C_GenerateRandom(on, bytes, sizeof bytes), CKR_OK);
    ck_assert_msg(word_read(bytes, &word), "what was served is no whole word");
    served(bytes, sizeof bytes);
    return word;
}

CK_RV draw_or_fail(CK_SESSION_HANDLE on, size_t len_bytes)
{
    uint8_t *bytes = calloc(1, len_bytes + 1);
    ck_assert_ptr_nonnull(bytes);
    CK_RV rv = fn->C_GenerateRandom(on, bytes, len_bytes);
    for (size_t i = 0; rv != CKR_OK && i < len_bytes; i++)
        ck_assert_msg(bytes[i] == 0,
                      "%zu bytes were asked for, 0x%lx is the answer, and byte %zu is %02x",
                      len_bytes, rv, i, bytes[i]);
    ck_assert_uint_eq(bytes[len_bytes], 0);
    if (rv == CKR_OK)
        served(bytes, len_bytes);
    free(bytes);
    return rv;
}

uint64_t draw_until_held(CK_SESSION_HANDLE on)
{
    for (;;) {
        uint64_t made = words_made();
        draw(on, 16, 16);
        /* Something was fetched just now, which is more than one draw. */
        uint64_t made_now = words_made();
        if (made_now != made && draw(on, 16, 16) <= made_now)
            return made_now;
    }
}

void draw_until_filled(CK_SESSION_HANDLE on)
{
    DRAW_UNTIL(on, CALLS(C_GenerateRandom, .by = FILLER, .outcome = GOOD) != 0);
    let_filler_work();
    draw_until_held(on);
}

void small_draws_are_served_ahead(CK_SESSION_HANDLE on)
{
    draw(on, 16, 4096);
    let_filler_work();
    unsigned before = CALLS(C_GenerateRandom);
    draw(on, 16, 1600);
    ck_assert_uint_lt(CALLS(C_GenerateRandom), before + 50);
    served_once(300);
}
