/* told.c - what a test tells the scripted target, and what the target's log tells the test. */
#include "fixture.h"

#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
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
