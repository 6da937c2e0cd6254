/* test_memory.c - what a pool is made of: rings, and copies that wipe. */
#include <pthread.h>

#include "../check_main.h"
#include "base/copy.h"
#include "pool/ring.h"

enum { CAPACITY = 1000 };

static uint8_t bytes[CAPACITY];
static const uint8_t zeros[CAPACITY];
static struct ring_state state;
static const struct ring ring = {&state, bytes, CAPACITY};
static uint8_t written, expected; /* the next byte on either side; none is zero */

/* A region of which all but the last skipped bytes are kept; returns how many that were. */
static size_t put(size_t most, size_t skipped, int64_t fetched_ns)
{
    size_t len;
    uint8_t *region = ring_open(&ring, 1, most, &len);
    if (region == NULL)
        return 0;
    ck_assert(len <= most && region >= bytes && region + len <= bytes + CAPACITY);
    ck_assert_mem_eq(region, zeros, len);
    size_t kept = len > skipped ? len - skipped : 0;
    for (size_t i = 0; i < kept; i++)
        region[i] = (uint8_t)(written++ % 255 + 1);
    ring_close(&ring, kept, fetched_ns);
    return kept;
}

static void get(size_t len)
{
    uint8_t buf[CAPACITY];
    ring_move(&ring, buf, len);
    for (size_t i = 0; i < len; i++)
        if (buf[i] != expected++ % 255 + 1)
            ck_abort_msg("byte %zu of %zu is another", i, len);
}

TEST_EACH(a_ring_gives_what_it_got_in_order_for_many_rounds, 1, 6)
{
    size_t held = 0;
    srandom((unsigned)_i);
    for (int i = 0; i < 5000; i++) {
        held += put((size_t)random() % 300 + 1, (size_t)random() % 3, i);
        ck_assert_uint_eq(state.held_bytes, held);
        size_t some = (size_t)random() % (held + 1);
        get(some);
        held -= some;
    }
    get(held);
    ck_assert_mem_eq(bytes, zeros, CAPACITY);
}

TEST(the_oldest_go_first_and_no_time_is_too_young)
{
    ck_assert_ptr_null(ring_oldest(&ring));
    ck_assert_uint_eq(ring_drop_oldest(&ring), 0);
    /* More fetches than segments: those that share a segment share the oldest time. */
    for (int i = 0; i < 200; i++)
        ck_assert_uint_eq(put(1, 0, 100 + i), 1);
    for (int i = 0; i < 200; i++) {
        uint8_t byte;
        ck_assert_int_le(ring_oldest(&ring)->fetched_ns, 100 + i);
        ring_move(&ring, &byte, 1);
    }
    ck_assert_uint_eq(state.held_bytes, 0);
    put(10, 0, 5);
    put(20, 0, 7);
    ck_assert_uint_eq(ring_drop_oldest(&ring), 10);
    ck_assert_int_eq(ring_oldest(&ring)->fetched_ns, 7);
    ck_assert_uint_eq(ring_drop_oldest(&ring), 20);
    ck_assert_mem_eq(bytes, zeros, CAPACITY);
}

TEST(no_region_opens_over_bytes_that_are_still_taken)
{
    uint8_t buf[200];
    size_t len;
    put(CAPACITY, 0, 1);
    uint8_t *first = ring_take(&ring, 100);
    uint8_t *second = ring_take(&ring, CAPACITY - 100);
    ck_assert_uint_eq(state.held_bytes, 0);
    ck_assert_ptr_null(ring_open(&ring, 1, 1, &len));
    copy_and_wipe(buf, second, 200);
    ring_taken(&ring);
    ck_assert_ptr_null(ring_open(&ring, 1, 1, &len));
    copy_and_wipe(buf, first, 100);
    ring_taken(&ring);
    ck_assert_ptr_eq(ring_open(&ring, 1, CAPACITY, &len), bytes);
    ck_assert_uint_eq(len, CAPACITY);
}

/* At every alignment, and without a byte before or behind. */
TEST(a_copy_wipes_what_it_copied_and_nothing_else)
{
    uint8_t from[160], to[160], before[160];
    size_t wrong = 0;
    for (size_t len = 0; len <= 100; len++)
        for (size_t at = 0; at < 33; at++) {
            for (size_t i = 0; i < sizeof from; i++)
                from[i] = before[i] = (uint8_t)(i + 1);
            memset(to, 0xee, sizeof to);
            copy_and_wipe(to + 40 - at, from + at, len);
            for (size_t i = 0; i < sizeof from; i++) {
                bool moved = i >= at && i < at + len;
                bool filled = i >= 40 - at && i < 40 - at + len;
                wrong += from[i] != (moved ? 0 : before[i]);
                wrong += to[i] != (filled ? before[i - 40 + 2 * at] : 0xee);
            }
        }
    ck_assert_uint_eq(wrong, 0);
    wipe_bytes(before, sizeof before);
    ck_assert_mem_eq(before, zeros, sizeof before);
    wipe_bytes(NULL, 0);
}

TEST(a_mutex_of_zero_bytes_is_a_free_one)
{
    static const pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static const pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    ck_assert_mem_eq(&mutex, &(pthread_mutex_t){0}, sizeof mutex);
    ck_assert_mem_eq(&cond, &(pthread_cond_t){0}, sizeof cond);
}
