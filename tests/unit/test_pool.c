/* test_pool.c - a pool serves each byte once, young, within its budget, and nothing to a child. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../hang.h"
#include "base/clock.h"
#include "pool/pool.h"

/* What the clocks say on top of the true time: this program is linked with a clock of its own. */
static int64_t ahead_ns, wall_ahead_ns;

static const int64_t PAUSE_NS = NS_PER_S;
static unsigned looks_before_pause; /* at a clock; 0: no pause */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

/* It stands still, so that nothing expires while a test runs. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    if (looks_before_pause != 0 && --looks_before_pause == 0)
        ahead_ns += PAUSE_NS;
    int64_t ns = 1000 * NS_PER_S + ahead_ns;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        ns += wall_ahead_ns;
    now->tv_sec = (time_t)(ns / NS_PER_S);
    now->tv_nsec = (long)(ns % NS_PER_S);
    return 0;
}

static atomic_size_t *budget; /* in memory that a child does not share */
static struct pool_settings settings;
static struct pool *pool;
static uint8_t served[64 * 1024];

/* Small draws come out of the processor's own stripe, and what is left of another one's is not looked for. */
static void stay_on_this_processor(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
}

static void set_up(void)
{
    stay_on_this_processor();
    budget = mmap(NULL, sizeof *budget, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    atomic_store(budget, 64 * 1024);
    settings = (struct pool_settings){
        .capacity_bytes = 64 * 1024, .max_age_ns = 10 * NS_PER_S, .budget = budget};
    ahead_ns = wall_ahead_ns = 0;
    looks_before_pause = 0;
    ck_assert_int_eq(pool_create(&pool, &settings), 0);
}

static void tear_down(void)
{
    pool_free(pool);
}

static struct pool_counts counts(struct pool *of)
{
    struct pool_counts now;
    pool_count(of, &now);
    return now;
}

/* A stream that looks random, without zeros. */
static uint8_t byte_at(uint64_t place)
{
    uint64_t mixed = (place + 1) * 0x9E3779B97F4A7C15ULL;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebULL;
    return (uint8_t)((mixed ^ mixed >> 31) % 255 + 1);
}

/* Ends a fill whose bytes are well. */
static size_t end_fill(struct pool *of, struct pool_fill *f, size_t written_bytes, uint8_t *own,
                       size_t own_bytes)
{
    enum health health;
    size_t got = pool_fill_end(of, f, written_bytes, own, own_bytes, &health);
    ck_assert_int_eq(health, HEALTH_GOOD);
    return got;
}

/* One fill. Returns how many bytes it put in for others. */
static size_t fill(struct pool *into, size_t own_bytes)
{
    static uint64_t next;
    struct pool_fill f;
    uint8_t own[POOL_TAKE_MAX];
    if (!pool_fill_begin(into, 1024 * 1024, own_bytes, &f))
        return 0;
    for (size_t i = 0; i < f.len_bytes; i++)
        f.bytes[i] = byte_at(next++);
    ck_assert_uint_eq(end_fill(into, &f, f.len_bytes, own, own_bytes), own_bytes);
    return f.len_bytes - own_bytes;
}

/* Takes pieces until none is left. Returns how many bytes came; none may be zero. */
static size_t drink(struct pool *from, size_t piece_bytes)
{
    size_t got = 0;
    while (got + piece_bytes <= sizeof served &&
           pool_take(from, served + got, piece_bytes) != POOL_MISS)
        got += piece_bytes;
    ck_assert_ptr_null(memchr(served, 0, got));
    return got;
}

START_TEST(a_new_pool_holds_nothing_and_grows_by_what_it_missed)
{
    uint8_t byte;
    ck_assert_int_eq(pool_take(pool, &byte, 1), POOL_MISS);
    ck_assert(!pool_is_low(pool));
    struct pool_fill none;
    ck_assert(!pool_fill_begin(pool, 1024, /* own_bytes= */ 0, &none));
    for (size_t level = POOL_LEVEL_MIN; level <= settings.capacity_bytes; level *= 2) {
        fill(pool, 16);
        ck_assert_uint_eq(counts(pool).level_bytes, level);
    }
    fill(pool, 16);
    ck_assert_uint_eq(counts(pool).level_bytes, settings.capacity_bytes);
}
END_TEST

START_TEST(what_went_in_comes_out_once)
{
    size_t in = fill(pool, 16);
    in += fill(pool, 16);
    ck_assert_uint_eq(counts(pool).held_bytes, in);
    ck_assert_uint_eq(drink(pool, (size_t)_i), in - in % (size_t)_i);
    ck_assert_uint_lt(counts(pool).held_bytes, (size_t)_i);
}
END_TEST

START_TEST(the_order_is_kept_and_the_fills_own_bytes_are_not_held)
{
    struct pool_fill f;
    uint8_t own[8];
    uint8_t next[512];
    ck_assert(pool_fill_begin(pool, 520, sizeof own, &f));
    ck_assert_uint_eq(f.len_bytes, 520);
    for (size_t i = 0; i < f.len_bytes; i++)
        f.bytes[i] = byte_at(i);
    ck_assert_uint_eq(end_fill(pool, &f, f.len_bytes, own, sizeof own), sizeof own);
    ck_assert_int_ne(pool_take(pool, next, sizeof next), POOL_MISS);
    for (size_t i = 0; i < sizeof own; i++)
        ck_assert_uint_eq(own[i], byte_at(i));
    for (size_t i = 0; i < sizeof next; i++)
        ck_assert_uint_eq(next[i], byte_at(i + sizeof own));
}
END_TEST

START_TEST(only_good_bytes_are_held)
{
    struct pool_fill f;
    uint8_t own[8];
    ck_assert(pool_fill_begin(pool, 1024, sizeof own, &f));
    for (size_t i = 0; i < f.len_bytes; i++)
        f.bytes[i] = byte_at(i);
    ck_assert_uint_eq(end_fill(pool, &f, 100, own, sizeof own), sizeof own);
    ck_assert_uint_eq(counts(pool).held_bytes, 92);
    ck_assert(pool_fill_begin(pool, 1024, sizeof own, &f));
    ck_assert_uint_eq(end_fill(pool, &f, /* good_bytes= */ 0, own, sizeof own), 0);
    ck_assert_uint_eq(counts(pool).held_bytes, 92);
}
END_TEST

START_TEST(one_fill_at_a_time)
{
    struct pool_fill first;
    struct pool_fill second;
    ck_assert(pool_fill_begin(pool, 512, 8, &first));
    ck_assert(!pool_fill_begin(pool, 512, 8, &second));
    end_fill(pool, &first, 0, served, 0);
    ck_assert(pool_fill_begin(pool, 512, 8, &second));
    end_fill(pool, &second, 0, served, 0);
}
END_TEST

START_TEST(too_old_is_not_served_and_the_pool_shrinks)
{
    for (int i = 0; i < 4; i++)
        fill(pool, 16);
    ck_assert_int_ne(pool_take(pool, served, 16), POOL_MISS); /* one stripe is full, too */
    size_t level = counts(pool).level_bytes;
    ahead_ns += settings.max_age_ns;
    ck_assert_int_ne(pool_take(pool, served, 16), POOL_MISS);
    ahead_ns += 1;
    ck_assert_int_eq(pool_take(pool, served, 16), POOL_MISS);
    ck_assert_int_eq(pool_take(pool, served, 300), POOL_MISS);
    ck_assert_int_eq(pool_expire(pool), -1);
    ck_assert_uint_eq(counts(pool).held_bytes, 0);
    ck_assert_uint_eq(counts(pool).level_bytes, level / 2);
}
END_TEST

START_TEST(expire_says_when_the_next_bytes_are_due)
{
    ck_assert_int_eq(pool_expire(pool), -1);
    fill(pool, 16);
    int64_t due_ns = pool_expire(pool);
    ck_assert_int_eq(due_ns, 1000 * NS_PER_S + settings.max_age_ns + 1);
    ahead_ns += settings.max_age_ns + 1;
    ck_assert_int_eq(pool_expire(pool), -1);
    ck_assert_uint_gt(counts(pool).expired_bytes, 0);
}
END_TEST

START_TEST(age_begins_before_the_token_is_asked)
{
    struct pool_fill f;
    ck_assert(pool_fill_begin(pool, 1024, 8, &f));
    for (size_t i = 0; i < f.len_bytes; i++)
        f.bytes[i] = byte_at(i);
    ahead_ns += settings.max_age_ns + 1;
    end_fill(pool, &f, f.len_bytes, served, 8);
    ck_assert_int_eq(pool_take(pool, served, 8), POOL_MISS);
}
END_TEST

START_TEST(a_clock_that_goes_back_makes_all_too_old)
{
    fill(pool, 16);
    ahead_ns = -1;
    enum pool_answer answer = pool_take(pool, served, 16);
    ahead_ns = 0; /* Check reads the clock, too */
    ck_assert_int_eq(answer, POOL_MISS);
}
END_TEST

/* Though what is held is older than that. */
START_TEST(a_clock_that_goes_back_a_little_makes_all_too_old)
{
    fill(pool, 16);
    ahead_ns = 5 * NS_PER_S;
    enum pool_answer before = pool_take(pool, served, 16);
    ahead_ns -= 1;
    enum pool_answer small = pool_take(pool, served, 16);
    enum pool_answer large = pool_take(pool, served, 300);
    ahead_ns = 0;
    ck_assert_int_ne(before, POOL_MISS);
    ck_assert_int_eq(small, POOL_MISS);
    ck_assert_int_eq(large, POOL_MISS);
    ck_assert_uint_eq(counts(pool).drops[POOL_DROP_CLOCK], 1);
}
END_TEST

/* The machine slept, or was restored: wall time went on and time since boot did not. */
START_TEST(a_step_of_the_wall_clock_drops_everything)
{
    fill(pool, 16);
    wall_ahead_ns = _i * 101 * NS_PER_MS;
    ahead_ns += 4 * NS_PER_MS; /* the next tick */
    ck_assert_int_eq(pool_take(pool, served, 16), POOL_MISS);
    ck_assert_int_eq(pool_take(pool, served, 300), POOL_MISS);
    ck_assert_uint_eq(counts(pool).drops[POOL_DROP_CLOCK], 1);
}
END_TEST

/* The machine lets the process wait, before any of the looks that it takes at the clocks: that is no step. */
START_TEST(a_pause_of_the_process_drops_nothing)
{
    fill(pool, 16);
    ahead_ns += 4 * NS_PER_MS; /* the next tick */
    looks_before_pause = (unsigned)_i;
    enum pool_answer small = pool_take(pool, served, 16);
    enum pool_answer large = pool_take(pool, served, 300);
    looks_before_pause = 0; /* Check reads the clock, too */
    ck_assert_int_ne(small, POOL_MISS);
    ck_assert_int_ne(large, POOL_MISS);
    ck_assert_uint_eq(counts(pool).drops[POOL_DROP_CLOCK], 0);
}
END_TEST

/* A page of the kernel's, where there is one; here a number of ours. */
START_TEST(another_generation_of_the_machine_drops_everything)
{
    static _Atomic uint32_t generation = 7;
    struct pool *cloned;
    settings.generation = &generation;
    ck_assert_int_eq(pool_create(&cloned, &settings), 0);
    fill(cloned, 16);
    ck_assert_int_ne(pool_take(cloned, served, 16), POOL_MISS);
    atomic_fetch_add(&generation, 1);
    ck_assert_int_eq(pool_take(cloned, served, 16), POOL_MISS);
    ck_assert_int_eq(pool_take(cloned, served, 300), POOL_MISS);
    ck_assert_uint_eq(counts(cloned).drops[POOL_DROP_CLONE], 1);
    fill(cloned, 16);
    ck_assert_int_ne(pool_take(cloned, served, 16), POOL_MISS);
    pool_free(cloned);
}
END_TEST

START_TEST(a_drop_leaves_nothing_and_throws_the_open_fill_away)
{
    struct pool_fill f;
    fill(pool, 16);
    ck_assert_int_ne(pool_take(pool, served, 16), POOL_MISS);
    ck_assert(pool_fill_begin(pool, 1024, 8, &f));
    for (size_t i = 0; i < f.len_bytes; i++)
        f.bytes[i] = byte_at(1000000 + i);
    pool_drop(pool, POOL_DROP_SEED);
    ck_assert_int_eq(pool_take(pool, served, 1), POOL_MISS);
    /* Its caller asked before the drop, and is answered; nobody else is. */
    ck_assert_uint_eq(end_fill(pool, &f, f.len_bytes, served, 8), 8);
    ck_assert_uint_eq(counts(pool).held_bytes, 0);
    ck_assert_int_eq(pool_take(pool, served, 1), POOL_MISS);
    ck_assert_uint_eq(counts(pool).drops[POOL_DROP_SEED], 1);
    ck_assert_uint_gt(fill(pool, 8), 0);
    ck_assert_int_ne(pool_take(pool, served, 8), POOL_MISS);
}
END_TEST

START_TEST(two_pools_share_one_budget)
{
    struct pool *other;
    ck_assert_int_eq(pool_create(&other, &settings), 0);
    for (int i = 0; i < 12; i++) {
        fill(pool, 16);
        fill(other, 16);
        size_t both = counts(pool).level_bytes + counts(other).level_bytes;
        ck_assert_uint_eq(both + atomic_load(budget), 64 * 1024);
    }
    ck_assert_uint_eq(atomic_load(budget), 0);
    pool_free(other);
    ck_assert_uint_gt(atomic_load(budget), 0);
    for (int i = 0; i < 12; i++)
        fill(pool, 16);
    ck_assert_uint_eq(counts(pool).level_bytes, 64 * 1024);
    pool_rest(pool);
    ck_assert_uint_eq(atomic_load(budget), 64 * 1024);
}
END_TEST

START_TEST(a_resting_pool_is_empty_and_works_again)
{
    fill(pool, 16);
    pool_rest(pool);
    ck_assert_int_eq(pool_take(pool, served, 8), POOL_MISS);
    ck_assert_uint_eq(counts(pool).level_bytes, 0);
    struct pool_settings larger = settings;
    larger.capacity_bytes *= 2;
    ck_assert(!pool_reuse(pool, &larger));
    ck_assert(pool_reuse(pool, &settings));
    fill(pool, 16);
    ck_assert_int_ne(pool_take(pool, served, 8), POOL_MISS);
}
END_TEST

START_TEST(a_child_finds_no_bytes_and_no_room)
{
    struct pool_fill open;
    int status = 0;
    fill(pool, 16);
    ck_assert_int_ne(pool_take(pool, served, 8), POOL_MISS);
    ck_assert(pool_fill_begin(pool, 64, 8, &open));
    pid_t child = fork();
    if (child == 0) {
        struct pool_fill f;
        enum health health;
        if (pool_take(pool, served, 8) != POOL_MISS || pool_take(pool, served, 1024) != POOL_MISS)
            _exit(1);
        if (pool_fill_begin(pool, 1024, 8, &f))
            _exit(2);
        for (size_t i = 0; i < open.len_bytes; i++)
            open.bytes[i] = byte_at(i);
        if (pool_fill_end(pool, &open, open.len_bytes, served, 8, &health) != 0)
            _exit(3);
        _exit(served[0] == 0 ? 0 : 4);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    end_fill(pool, &open, 0, served, 0);
    ck_assert_int_ne(pool_take(pool, served, 8), POOL_MISS);
}
END_TEST

START_TEST(a_capacity_out_of_range_is_refused)
{
    struct pool *none = NULL;
    settings.capacity_bytes = POOL_CAPACITY_MIN - 1;
    ck_assert_int_eq(pool_create(&none, &settings), -EINVAL);
    settings.capacity_bytes = POOL_CAPACITY_MAX + 1;
    ck_assert_int_eq(pool_create(&none, &settings), -EINVAL);
    ck_assert_ptr_null(none);
    pool_free(NULL);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("pool");
    Suite *suite = suite_create("pool");
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(tcase, HANG_S);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_new_pool_holds_nothing_and_grows_by_what_it_missed);
    tcase_add_loop_test(tcase, what_went_in_comes_out_once, 1, 40);
    tcase_add_test(tcase, the_order_is_kept_and_the_fills_own_bytes_are_not_held);
    tcase_add_test(tcase, only_good_bytes_are_held);
    tcase_add_test(tcase, one_fill_at_a_time);
    tcase_add_test(tcase, too_old_is_not_served_and_the_pool_shrinks);
    tcase_add_test(tcase, expire_says_when_the_next_bytes_are_due);
    tcase_add_test(tcase, age_begins_before_the_token_is_asked);
    tcase_add_test(tcase, a_clock_that_goes_back_makes_all_too_old);
    tcase_add_test(tcase, a_clock_that_goes_back_a_little_makes_all_too_old);
    tcase_add_loop_test(tcase, a_step_of_the_wall_clock_drops_everything, 1, 2);
    tcase_add_loop_test(tcase, a_step_of_the_wall_clock_drops_everything, -1, 0);
    tcase_add_loop_test(tcase, a_pause_of_the_process_drops_nothing, 1, 10);
    tcase_add_test(tcase, another_generation_of_the_machine_drops_everything);
    tcase_add_test(tcase, a_drop_leaves_nothing_and_throws_the_open_fill_away);
    tcase_add_test(tcase, two_pools_share_one_budget);
    tcase_add_test(tcase, a_resting_pool_is_empty_and_works_again);
    tcase_add_test(tcase, a_child_finds_no_bytes_and_no_room);
    tcase_add_test(tcase, a_capacity_out_of_range_is_refused);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
