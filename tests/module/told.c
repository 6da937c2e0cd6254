/* told.c - what a test tells the scripted target, what the target's log tells the test, and which of its words were served.
 */
#include "fixture.h"

#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct target_shared *shared;

/* One thread at a time: a test's own. */
static void say(unsigned end, const char *text)
{
    size_t at = end % SCRIPT_BYTES;
    size_t len = strlen(text);
    ck_assert_msg(at + len + 2 < SCRIPT_BYTES, "the script is too long");
    memcpy(shared->script + at, text, len);
    shared->script[at + len] = '\n';
    atomic_store_explicit(&shared->script_end, (unsigned)(end + len + 1), memory_order_release);
}

void script(const char *format, ...)
{
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    say(atomic_load(&shared->script_end), text);
}

void script_anew(const char *text)
{
    unsigned lives = atomic_load(&shared->script_end) / SCRIPT_BYTES;
    for (unsigned i = 0; i < STATEMENTS_MOST; i++)
        atomic_store(&shared->hits[i], 0);
    atomic_store(&shared->released, 0);
    say((lives + 1) * SCRIPT_BYTES, text);
}

void script_release_first(unsigned statements)
{
    atomic_store(&shared->released, statements);
    syscall(SYS_futex, &shared->released, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void script_release(void)
{
    script_release_first(STATEMENTS_MOST);
}

unsigned script_held(void)
{
    return atomic_load(&shared->held);
}

void script_calls_back(void (*function)(void))
{
    atomic_store(&shared->calls_back, function);
}

/* Without the log, which has an end. */
static unsigned count_fast(struct which which)
{
    unsigned count = 0;
    for (int by_filler = 0; by_filler < 2; by_filler++) {
        struct target_counts *counts = &shared->counts[which.function][by_filler];
        if (which.by == (by_filler ? CALLERS : FILLER))
            continue;
        count += which.outcome != FAILED ? atomic_load(&counts->good) : 0;
        count += which.outcome != GOOD ? atomic_load(&counts->failed) : 0;
    }
    return count;
}

static bool fits(const struct target_call *call, struct which which)
{
    if (!atomic_load_explicit(&call->is_written, memory_order_acquire) ||
        call->function != which.function)
        return false;
    if ((which.by == FILLER && !call->by_filler) || (which.by == CALLERS && call->by_filler) ||
        (which.by == THIS_THREAD && call->tid != syscall(SYS_gettid)))
        return false;
    if (which.outcome != ANY_OUTCOME && (which.outcome == GOOD) != (call->rv == CKR_OK))
        return false;
    return (which.bytes == 0 || call->bytes == which.bytes) &&
           (which.session == 0 || call->session == which.session) &&
           (which.rv == 0 || call->rv == which.rv);
}

static unsigned log_lines(void)
{
    unsigned count = atomic_load_explicit(&shared->log_count, memory_order_acquire);
    ck_assert_msg(count <= LOG_MOST, "the target's log is full");
    return count;
}

unsigned target_calls(struct which which)
{
    unsigned count = 0;
    if (which.bytes == 0 && which.session == 0 && which.rv == 0 && which.by != THIS_THREAD)
        return count_fast(which);
    for (unsigned i = 0; i < log_lines(); i++)
        count += fits(&shared->log[i], which);
    return count;
}

const struct target_call *target_last_call(struct which which)
{
    for (unsigned i = log_lines(); i-- > 0;)
        if (fits(&shared->log[i], which))
            return &shared->log[i];
    ck_abort_msg("there was no such call");
}

unsigned target_calls_in_all(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < FUNCTIONS; i++)
        count += count_fast((struct which){.function = i});
    return count;
}

CK_ULONG target_longest_request(void)
{
    CK_ULONG longest = 0;
    for (unsigned i = 0; i < log_lines(); i++)
        if (shared->log[i].function == FUNCTION_C_GenerateRandom && shared->log[i].bytes > longest)
            longest = shared->log[i].bytes;
    return longest;
}

uint64_t words_made(void)
{
    return atomic_load(&shared->words);
}

/* A bitmap, in memory that forked processes share. */

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

uint64_t served(const uint8_t *bytes, size_t len_bytes)
{
    static const uint8_t zeros[WORD_BYTES];
    uint64_t lowest = UINT64_MAX;
    struct word word;
    for (size_t at = 0; at + WORD_BYTES <= len_bytes;) {
        if (memcmp(bytes + at, zeros, WORD_BYTES) == 0)
            atomic_fetch_add(&seen->zeros, 1);
        bool found = word_read(bytes + at, &word) && word.counter <= words_made();
        if (found)
            served_word(word.counter);
        if (found && word.counter < lowest)
            lowest = word.counter;
        at += found ? WORD_BYTES : 1;
    }
    return lowest;
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

uint64_t served_words(void)
{
    return atomic_load(&seen->found);
}

uint64_t draw(CK_SESSION_HANDLE on, size_t size_bytes, size_t len_bytes)
{
    uint8_t *bytes = malloc(len_bytes); /* some threads have a small stack */
    ck_assert_ptr_nonnull(bytes);
    for (size_t at = 0; at < len_bytes; at += size_bytes)
        EXPECT(fn->C_GenerateRandom(on, bytes + at, size_bytes), CKR_OK);
    uint64_t lowest = served(bytes, len_bytes);
    ck_assert_msg(lowest != UINT64_MAX, "what is served is not the token's");
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
    size_t left = rv == CKR_OK ? len_bytes : 0; /* that may be left there */
    while (left <= len_bytes && bytes[left] == 0)
        left++;
    ck_assert_msg(left > len_bytes, "of %zu bytes, for which 0x%lx is the answer, %zu is %02x",
                  len_bytes, rv, left, bytes[left]);
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

void begin_filled(void)
{
    begin("x-pool-max-age: 1min");
    draw_until_filled(session);
}

void small_draws_are_served_ahead(CK_SESSION_HANDLE on)
{
    draw(on, 16, 4096);
    let_filler_work();
    unsigned before = CALLS(C_GenerateRandom);
    draw(on, 16, 1600);
    ck_assert_uint_lt(CALLS(C_GenerateRandom), before + 50);
}

static uint8_t pieces[64 * 1024][PIECE_BYTES]; /* the first is zeros */
static atomic_size_t pieces_count;

void drawn(const uint8_t *piece)
{
    size_t number = atomic_fetch_add(&pieces_count, 1) + 1;
    ck_assert_uint_lt(number, COUNT_OF(pieces));
    memcpy(pieces[number], piece, PIECE_BYTES);
}

static int compare(const void *one, const void *other)
{
    return memcmp(one, other, PIECE_BYTES);
}

size_t drawn_once(void)
{
    qsort(pieces, pieces_count + 1, PIECE_BYTES, compare);
    for (size_t i = 1; i <= pieces_count; i++)
        ck_assert_msg(compare(pieces[i - 1], pieces[i]) != 0, "bytes were drawn twice, or zeros");
    return pieces_count;
}
