/* test_pool_inside.c - what happens to a pool in the middle of a draw, and what its memory holds.
 *
 * It includes pool.c itself, to step in between the copy and the look after it, and to see memory that no
 * caller sees.
 */
enum moment { AFTER_THE_COPY, BETWEEN_TWO_LOOKS, BEFORE_THE_CLONE_IS_SEEN_TO };
static void step_in(enum moment moment);
#define POOL_TEST_HOOK(moment, pool) step_in(moment)
#include "pool/pool.c"

#include "../hang.h"

#include <check.h>
#include <stdlib.h>
#include <sys/wait.h>

/* The clocks stand still unless a test moves them; then nothing but the sentinels can stop a draw. */
static int64_t ahead_ns;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    (void)clock;
    int64_t ns = 1000 * NS_PER_S + ahead_ns;
    now->tv_sec = (time_t)(ns / NS_PER_S);
    now->tv_nsec = (long)(ns % NS_PER_S);
    return 0;
}

static const struct pool_settings settings = {.capacity_bytes = 64 * 1024,
                                              .max_age_ns = 10 * NS_PER_S};

static struct pool *pool;
static void (*stepping_in)(void); /* NULL: nobody does */
static enum moment stepping_in_at;
static uint64_t next_byte;

static void step_in(enum moment moment)
{
    if (moment != stepping_in_at)
        return;
    void (*once)(void) = stepping_in;
    stepping_in = NULL;
    if (once != NULL)
        once();
}

/* A stream that looks random, without zeros. */
static uint8_t byte_at(uint64_t place)
{
    uint64_t mixed = (place + 1) * 0x9E3779B97F4A7C15ULL;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ULL;
    return (uint8_t)((mixed ^ mixed >> 29) % 255 + 1);
}

static void fill(void)
{
    struct pool_fill f;
    enum health health;
    uint8_t own[8];
    ck_assert(pool_fill_begin(pool, 4096, sizeof own, &f));
    for (size_t i = 0; i < f.len_bytes; i++)
        f.bytes[i] = byte_at(next_byte++);
    ck_assert_uint_eq(pool_fill_end(pool, &f, f.len_bytes, own, sizeof own, &health), sizeof own);
    ck_assert_int_eq(health, HEALTH_GOOD);
}

static void set_up(void)
{
    ahead_ns = 0;
    next_byte = 0;
    stepping_in = NULL;
    stepping_in_at = AFTER_THE_COPY;
    ck_assert_int_eq(pool_create(&pool, &settings), 0);
    for (int i = 0; i < 4; i++)
        fill();
}

static void tear_down(void)
{
    pool_free(pool);
}

/* Small draws come out of a stripe, large ones out of the ring. */
static const size_t sizes[] = {16, 512};

enum { SIZES = sizeof sizes / sizeof *sizes };

static size_t non_zero_bytes(const uint8_t *bytes, size_t len_bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < len_bytes; i++)
        count += bytes[i] != 0;
    return count;
}

/* Bytes that are in the pool's memory, whether it knows of them or not. */
static size_t bytes_inside(void)
{
    size_t count = non_zero_bytes(pool->ring_bytes, pool->capacity_bytes);
    for (unsigned i = 0; i < pool->stripe_count; i++)
        count += non_zero_bytes(pool->stripes[i].bytes, STRIPE_BYTES);
    return count;
}

static size_t bytes_held(void)
{
    struct pool_counts counts;
    pool_count(pool, &counts);
    return counts.held_bytes;
}

static bool is_served(size_t len_bytes)
{
    uint8_t buf[POOL_TAKE_MAX] = {0};
    bool served = pool_take(pool, buf, len_bytes) != POOL_MISS;
    ck_assert_uint_eq(non_zero_bytes(buf, sizeof buf), served ? len_bytes : 0);
    return served;
}

START_TEST(what_is_served_is_gone_from_memory)
{
    while (is_served(sizes[_i]))
        ck_assert_uint_eq(bytes_inside(), bytes_held());
}
END_TEST

START_TEST(what_is_dropped_is_gone_from_memory)
{
    ck_assert(is_served(16));
    pool_drop(pool, POOL_DROP_SEED);
    ck_assert_uint_eq(bytes_inside(), 0);
}
END_TEST

START_TEST(what_is_too_old_is_gone_from_memory)
{
    ck_assert(is_served(16));
    ahead_ns = settings.max_age_ns + 1;
    pool_expire(pool);
    size_t inside = bytes_inside();
    ahead_ns = 0; /* Check reads the clock, too */
    ck_assert_uint_eq(inside, 0);
}
END_TEST

START_TEST(what_fails_the_health_test_is_gone_from_memory)
{
    struct pool_fill f;
    enum health health;
    uint8_t own[8] = {0};
    pool_drop(pool, POOL_DROP_SEED);
    ck_assert(pool_fill_begin(pool, 4096, sizeof own, &f));
    for (size_t i = 0; i < f.len_bytes; i++)
        f.bytes[i] = byte_at(i % 100);
    ck_assert_uint_eq(pool_fill_end(pool, &f, f.len_bytes, own, sizeof own, &health), 0);
    ck_assert_int_ne(health, HEALTH_GOOD);
    ck_assert_uint_eq(non_zero_bytes(own, sizeof own), 0);
    ck_assert_uint_eq(bytes_inside(), 0);
}
END_TEST

static void droppable_page_vanishes(void)
{
    atomic_store(pool->sentinel, 0);
}

/* As the kernel does it when memory is short, and a restore from a checkpoint. */
START_TEST(without_its_droppable_page_a_pool_serves_nothing_and_then_works_anew)
{
    ck_assert(is_served(16)); /* the stripe looked at the clock, and will not until it moves */
    droppable_page_vanishes();
    ck_assert(!is_served(sizes[_i]));
    ck_assert_uint_eq(pool->counts.drops[POOL_DROP_SENTINEL], 1);
    ck_assert_uint_eq(pool->ring.held_bytes, 0);
    fill();
    ck_assert(is_served(sizes[_i]));
    ck_assert_uint_eq(pool->counts.drops[POOL_DROP_SENTINEL], 1);
}
END_TEST

static void somebody_drops_it(void)
{
    /* Not pool_drop(): it would wait for the draw. */
    drop_locked(pool, POOL_DROP_SEED);
}

static void address_space_is_copied(void)
{
    atomic_store(&pool->epoch, 0);
}

static void (*const interruptions[])(void) = {droppable_page_vanishes, somebody_drops_it,
                                              address_space_is_copied};

enum { INTERRUPTIONS = sizeof interruptions / sizeof *interruptions };

START_TEST(what_happens_while_a_draw_copies_takes_the_bytes_back)
{
    size_t size = sizes[_i % SIZES];
    ck_assert(is_served(size));
    stepping_in = interruptions[_i / SIZES];
    ck_assert(!is_served(size));
    ck_assert_ptr_null(stepping_in);
    atomic_store(&pool->epoch, 5); /* for pool_free() */
}
END_TEST

static void the_machine_is_cloned(void)
{
    atomic_fetch_add(&pool->own_generation, 1);
}

/* On another processor, so that all is well again but for the epoch. */
static void somebody_else_sees_to_a_clone(void)
{
    the_machine_is_cloned();
    expire_locked(pool);
}

static void somebody_else_sees_to_a_vanished_page(void)
{
    droppable_page_vanishes();
    expire_locked(pool);
}

static void (*const seen_to[])(void) = {somebody_else_sees_to_a_clone,
                                        somebody_else_sees_to_a_vanished_page};

static void (*seen_to_next)(void);

static void it_comes_with_the_last_look(void)
{
    stepping_in_at = BETWEEN_TWO_LOOKS;
    stepping_in = seen_to_next;
}

START_TEST(what_is_seen_to_in_the_midst_of_the_last_look_takes_the_bytes_back)
{
    ck_assert(is_served(16)); /* of the stripe, whose lock is not the one that a drop wants */
    seen_to_next = seen_to[_i];
    stepping_in = it_comes_with_the_last_look;
    ck_assert(!is_served(16));
    ck_assert_ptr_null(stepping_in);
    fill();
    ck_assert(is_served(16));
}
END_TEST

static uint64_t epoch_before;
static bool was_intact;

static void somebody_else_looks(void)
{
    was_intact = is_intact(pool, pool->sentinel, epoch_before);
}

START_TEST(a_clone_is_seen_to_before_it_is_said_so)
{
    epoch_before = atomic_load(&pool->epoch);
    was_intact = true;
    the_machine_is_cloned();
    stepping_in_at = BEFORE_THE_CLONE_IS_SEEN_TO;
    stepping_in = somebody_else_looks;
    ck_assert(!is_served(16));
    ck_assert(!was_intact);
    ck_assert(!is_intact(pool, pool->sentinel, epoch_before));
}
END_TEST

static uint8_t first[16], second[16];

static void somebody_else_draws(void)
{
    ck_assert_int_ne(pool_take(pool, second, sizeof second), POOL_MISS);
}

/* Another thread on the same processor, come in at the worst moment. */
START_TEST(two_draws_from_one_stripe_at_once_get_different_bytes)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    stepping_in = somebody_else_draws;
    size_t held = bytes_held();
    ck_assert_int_ne(pool_take(pool, first, sizeof first), POOL_MISS);
    ck_assert_ptr_null(stepping_in);
    ck_assert_uint_eq(non_zero_bytes(first, sizeof first), sizeof first);
    ck_assert_uint_eq(non_zero_bytes(second, sizeof second), sizeof second);
    ck_assert_int_ne(memcmp(first, second, sizeof first), 0);
    ck_assert_uint_eq(bytes_held(), held - sizeof first - sizeof second);
}
END_TEST

/* What a forked child sees at any moment of a draw: all of it zero. */
static void memory_is_wiped(void)
{
    memset(pool, 0, pool->mapped_bytes);
}

START_TEST(a_pool_wiped_in_the_middle_of_a_draw_serves_nothing_ever_after)
{
    uint8_t buf[512] = {0};
    ck_assert(is_served(sizes[_i]));
    size_t mapped = pool->mapped_bytes;
    stepping_in = memory_is_wiped;
    ck_assert_int_eq(pool_take(pool, buf, sizes[_i]), POOL_MISS);
    ck_assert_uint_eq(non_zero_bytes(buf, sizeof buf), 0);
    for (size_t size = 1; size <= POOL_TAKE_MAX; size++)
        ck_assert(!is_served(size));
    struct pool_fill f;
    ck_assert(!pool_fill_begin(pool, 4096, 8, &f));
    wiped_unmap(pool, mapped);
    pool = NULL;
}
END_TEST

/* Fifty years of ticks: the epoch's way round is not waited for, but passing 0 is tested. */
START_TEST(an_epoch_is_never_zero)
{
    atomic_store(&pool->epoch, UINT64_MAX);
    pool_drop(pool, POOL_DROP_SEED);
    ck_assert_uint_ne(atomic_load(&pool->epoch), 0);
    fill();
    ck_assert(is_served(16));
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("pool inside");
    Suite *suite = suite_create("pool inside");
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(tcase, HANG_S);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, what_is_served_is_gone_from_memory, 0, SIZES);
    tcase_add_test(tcase, what_is_dropped_is_gone_from_memory);
    tcase_add_test(tcase, what_is_too_old_is_gone_from_memory);
    tcase_add_test(tcase, what_fails_the_health_test_is_gone_from_memory);
    tcase_add_loop_test(tcase, without_its_droppable_page_a_pool_serves_nothing_and_then_works_anew,
                        0, SIZES);
    tcase_add_loop_test(tcase, what_happens_while_a_draw_copies_takes_the_bytes_back, 0,
                        SIZES * INTERRUPTIONS);
    tcase_add_loop_test(tcase, what_is_seen_to_in_the_midst_of_the_last_look_takes_the_bytes_back,
                        0, sizeof seen_to / sizeof *seen_to);
    tcase_add_test(tcase, a_clone_is_seen_to_before_it_is_said_so);
    tcase_add_test(tcase, two_draws_from_one_stripe_at_once_get_different_bytes);
    tcase_add_loop_test(tcase, a_pool_wiped_in_the_middle_of_a_draw_serves_nothing_ever_after, 0,
                        SIZES);
    tcase_add_test(tcase, an_epoch_is_never_zero);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
