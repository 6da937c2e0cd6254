/* test_pool_draws.c - what may happen in the middle of a draw: between the copy and the check after it. */
#include "pool_fixture.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static uint8_t piece[POOL_TAKE_MAX];
static const uint8_t zeros[POOL_TAKE_MAX];

enum { FROM_SLICE, FROM_RING, SOURCES };
static size_t size;

static void prepare(int source)
{
    size = source == FROM_SLICE ? 16 : KIB;
    raise_target(8 * KIB);
    ck_assert_int_ne(take(0, piece, 8), POOL_MISS);
    memset(piece, 0, sizeof piece);
}

/* Steps in once. */
static void (*event)(void);

static void step_in(void)
{
    pool_test_hook = NULL;
    event();
}

static enum pool_answer take_during(void (*what)(void))
{
    event = what;
    pool_test_hook = step_in;
    enum pool_answer answer = take(0, piece, size);
    ck_assert_ptr_null(pool_test_hook);
    return answer;
}

static _Atomic bool dropped;

static void *drop(void *unused)
{
    pool_drop(pool, POOL_DROP_SEED);
    dropped = true;
    return unused;
}

static pthread_t dropper;

/* Until the other thread has dropped all but this draw's slice, which it waits for. */
static void drop_in_another_thread(void)
{
    ck_assert_int_eq(pthread_create(&dropper, NULL, drop, NULL), 0);
    while (!yielded && !dropped)
        usleep(100);
}

TEST(bytes_that_are_dropped_during_a_draw_are_not_served)
{
    prepare(FROM_SLICE);
    uint64_t held = held_bytes();
    ck_assert_int_eq(take_during(drop_in_another_thread), POOL_MISS);
    ck_assert_int_eq(pthread_join(dropper, NULL), 0);
    ck_assert_mem_eq(piece, zeros, size);
    ck_assert_uint_eq(counts().dropped_bytes, held);
    ck_assert_uint_eq(drawn_bytes(), 8);
}

static void lose_the_droppable_page(void)
{
    atomic_store(droppable_page, 0);
}

TEST_EACH(bytes_of_a_restored_memory_image_are_not_served, 0, SOURCES)
{
    SKIP_IF(!kernel_has_droppable(), "this kernel has no MAP_DROPPABLE");
    prepare(_i);
    ck_assert(counts().droppable);
    uint64_t held = held_bytes();
    ck_assert_int_eq(take_during(lose_the_droppable_page), POOL_MISS);
    ck_assert_mem_eq(piece, zeros, size);
    ck_assert_int_eq(take(0, piece, 8), POOL_MISS);
    ck_assert_int_eq(take(0, piece, KIB), POOL_MISS);
    ck_assert_uint_eq(counts().drops[POOL_DROP_MEMORY], 1);
    ck_assert_uint_eq(counts().dropped_bytes, held);
    ck_assert_uint_eq(words_in_memory(), 0);
    ck_assert_uint_ne(fetch(8), 0);
    ck_assert_int_ne(take(0, piece, 8), POOL_MISS);
}

/* A restored image may have lost the advice to wipe. If the kernel refuses it now, nothing is held any more. */
TEST_EACH(without_new_proof_of_wiping_a_restored_pool_stays_empty, 0, 2)
{
    struct pool_fetch f;
    SKIP_IF(!kernel_has_droppable(), "this kernel has no MAP_DROPPABLE");
    prepare(FROM_SLICE);
    lose_the_droppable_page();
    madvise_answer = _i == 0 ? 1 : -1;
    enum pool_answer answer = take(0, piece, size);
    madvise_answer = 0;
    ck_assert_int_eq(answer, POOL_MISS);
    ck_assert(!pool_fetch_begin(pool, KIB, 8, &f));
    ck_assert_uint_eq(words_in_memory(), 0);
}

TEST(without_a_droppable_page_a_pool_works_too)
{
    struct pool *other;
    struct pool_counts now;
    droppable_fails = true;
    ck_assert_int_eq(pool_create(&other, CAPACITY, NULL), 0);
    pool_start(other, MAX_AGE_NS, false);
    pool_count(other, &now);
    ck_assert(!now.droppable);
    ck_assert_uint_ne(fetch_most(other, KIB, 8), 0);
    ck_assert_int_ne(pool_take(other, /* slice= */ 0, clock_ticks_ns(), piece, 16), POOL_MISS);
    pool_free(other);
}

static pid_t copy;
static int way;

static void copy_this_process(void)
{
    copy = copy_process(way);
}

TEST_EACH(a_process_copied_during_a_draw_serves_nothing, 0, SOURCES *WAYS_TO_FORK)
{
    prepare(_i / WAYS_TO_FORK);
    way = _i % WAYS_TO_FORK;
    enum pool_answer answer = take_during(copy_this_process);
    if (copy == 0)
        _exit(answer != POOL_MISS || memcmp(piece, zeros, size) != 0 ||
              take(0, piece, 1) != POOL_MISS);
    expect_success(copy);
    ck_assert_int_ne(answer, POOL_MISS);
    ck_assert_uint_eq(serve_words(piece, size), 0);
}

/* It goes to the ring instead, so no two draws read one place of a slice. */
static void draw_from_the_same_slice(void)
{
    uint8_t other[16];
    ck_assert_int_ne(take(0, other, sizeof other), POOL_MISS);
    ck_assert_uint_eq(serve_words(other, sizeof other), 0);
}

TEST(a_slice_serves_one_draw_at_a_time)
{
    prepare(FROM_SLICE);
    ck_assert_int_ne(take_during(draw_from_the_same_slice), POOL_MISS);
    ck_assert_uint_eq(serve_words(piece, size), 0);
    ck_assert_uint_eq(draws_of_ring(), 1);
    ck_assert_uint_eq(draws_of_slices(), 2);
}

int main(void)
{
    return test_main("pool_draws", set_up, tear_down);
}
