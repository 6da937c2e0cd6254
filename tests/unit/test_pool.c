/* test_pool.c - a pool serves each byte once, in whole, to its own process, and keeps no copy. */
#include "pool_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../targets/words.h"

static uint8_t piece[POOL_TAKE_MAX];
static const uint8_t zeros[POOL_TAKE_MAX];

/* Takes pieces from slice 0 until too little is left. */
static void take_all(size_t piece_bytes)
{
    while (take(0, piece, piece_bytes) != POOL_MISS) {
        if (piece_bytes % WORD_BYTES == 0)
            ck_assert_uint_eq(serve_words(piece, piece_bytes), 0);
    }
}

/* What a draw gets is what the token wrote next, whatever the size of draws and however slices and ring take turns. */
TEST_EACH(what_went_in_comes_out_once_and_in_order, 1, 65)
{
    size_t size = (size_t)_i;
    raise_target(16 * KIB);
    take_all(8);
    size_t position = token_made();
    while (fetch(0) != 0)
        ;
    uint64_t left = held_bytes();
    size_t wrong = 0;
    for (; take(0, piece, size) != POOL_MISS; left -= size)
        for (size_t i = 0; i < size; i++)
            wrong += piece[i] != stream_byte(position++);
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_lt(left, size);
    ck_assert_uint_eq(held_bytes(), left);
}

/* What a test sees of a fetch that it makes step by step. */
static struct pool_fetch in_flight;

static void begin_fetch(size_t most_bytes, size_t caller_bytes)
{
    ck_assert(pool_fetch_begin(pool, most_bytes, caller_bytes, false, &in_flight));
    token_writes(in_flight.bytes, in_flight.len_bytes);
}

TEST(only_bytes_that_are_good_are_held_and_the_caller_comes_first)
{
    static const struct {
        size_t most, caller, good, served, held_then;
    } cases[] = {{KIB, 8, 96, 8, 88}, {KIB, 8, 0, 0, 88}, {16, 64, 16, 16, 88}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin_fetch(cases[i].most, cases[i].caller);
        size_t served = pool_fetch_end(pool, &in_flight, cases[i].good, piece, cases[i].caller);
        ck_assert_uint_eq(served, cases[i].served);
        ck_assert_uint_eq(serve_words(piece, served), 0);
        ck_assert_uint_eq(held_bytes(), cases[i].held_then);
        ck_assert_uint_eq(words_in_memory(), cases[i].held_then / WORD_BYTES);
        memset(piece, 0, sizeof piece);
    }
}

/* Bytes in a slice, in the ring, and on their way. */
static void hold_everywhere(void)
{
    raise_target(4 * KIB);
    ck_assert_int_ne(take(0, piece, 8), POOL_MISS);
    ck_assert_int_ne(take(0, piece, KIB), POOL_MISS);
    begin_fetch(2 * KIB, 8);
}

TEST_EACH(a_stopped_pool_is_empty_and_can_be_started_again, 0, 2)
{
    hold_everywhere();
    pool_stop(pool);
    ck_assert_int_eq(take(0, piece, 1), POOL_MISS);
    ck_assert_uint_eq(held_bytes(), 0);
    struct pool_fetch f;
    if (_i == 0)
        pool_fetch_end(pool, &in_flight, in_flight.len_bytes, piece, 8);
    ck_assert(!pool_fetch_begin(pool, KIB, 8, false, &f));
    pool_start(pool, MAX_AGE_NS, false);
    ck_assert_uint_eq(held_bytes(), 0);
    if (_i == 1)
        pool_fetch_end(pool, &in_flight, in_flight.len_bytes, piece, 8);
    ck_assert_uint_eq(words_in_memory(), 0);
    ck_assert_uint_ne(fetch(8), 0);
    ck_assert_int_ne(take(0, piece, 8), POOL_MISS);
}

/* Whatever happened to it, a word is in the pool's memory as long as it is held, and not a moment longer. */
TEST(memory_has_the_words_that_are_held_and_no_other)
{
    raise_target(8 * KIB);
    for (size_t size = 8; size <= POOL_TAKE_MAX; size *= 2) {
        ck_assert_int_ne(take(0, piece, size), POOL_MISS);
        ck_assert_uint_eq(words_in_memory(), held_bytes() / WORD_BYTES);
        memset(piece, 0, sizeof piece);
    }
    pool_limit(pool, 2 * KIB);
    ck_assert_uint_eq(words_in_memory(), held_bytes() / WORD_BYTES);
    now_ns += MAX_AGE_NS;
    ck_assert_int_eq(take(0, piece, 8), POOL_MISS);
    ck_assert_int_eq(take(0, piece, KIB), POOL_MISS);
    ck_assert_uint_eq(words_in_memory(), 0);
}

/* Copies the process by fork (0), _Fork (1) or raw clone (2). The copy ends itself if it hangs. An assertion of Check's
 * takes locks, which another thread may have held in the parent: the copy makes none. */
enum { WAYS_TO_FORK = 3 };

static pid_t copy_process(int way)
{
    pid_t copy = way == 0   ? fork()
                 : way == 1 ? _Fork()
                            : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (copy == 0) {
        signal(SIGALRM, SIG_DFL); /* Check's handler ends the test */
        alarm(CHILD_HANGS_S);
    } else {
        ck_assert_int_gt(copy, 0);
    }
    return copy;
}

static void expect_success(pid_t copy)
{
    int status = 0;
    ck_assert_int_eq(waitpid(copy, &status, 0), copy);
    ck_assert_msg(status == 0, "the copy of the process ended with status 0x%x", (unsigned)status);
}

static bool finds_nothing_and_starts_afresh(void)
{
    struct pool_fetch f;
    memset(piece, 0, sizeof piece);
    if (take(0, piece, 8) != POOL_MISS || take(0, piece, KIB) != POOL_MISS ||
        pool_fetch_begin(pool, KIB, 8, false, &f) ||
        pool_fetch_end(pool, &in_flight, in_flight.len_bytes, piece, 8) != 0 ||
        memcmp(piece, zeros, sizeof piece) != 0 || words_in_memory() != 0)
        return false;
    pool_start(pool, MAX_AGE_NS, false);
    return take(0, piece, 8) == POOL_MISS && fetch(8) != 0 && take(0, piece, 8) != POOL_MISS;
}

TEST_EACH(a_child_finds_nothing_and_can_start_afresh, 0, WAYS_TO_FORK)
{
    hold_everywhere();
    size_t held = words_in_memory();
    pid_t copy = copy_process(_i);
    if (copy == 0)
        _exit(finds_nothing_and_starts_afresh() ? 0 : 1);
    expect_success(copy);
    ck_assert_uint_eq(words_in_memory(), held);
    pool_fetch_end(pool, &in_flight, in_flight.len_bytes, piece, 8);
    ck_assert_int_ne(take(0, piece, 8), POOL_MISS);
}

/* What may happen in the middle of a draw: between the copy and the check after it. */
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
    ck_assert_uint_eq(counts.dropped_bytes, held);
    ck_assert_uint_eq(drawn_bytes(), 8);
}

/* A restored image may have lost the advice to wipe. If the kernel refuses it now, nothing is held any more. */
TEST_EACH(without_new_proof_of_wiping_a_restored_pool_stays_empty, 0, 2)
{
    struct pool_fetch f;
    prepare(FROM_SLICE);
    wall_ahead_ns += NS_PER_S;
    now_ns += TICK_NS;
    madvise_answer = _i == 0 ? 1 : -1;
    enum pool_answer answer = take(0, piece, size);
    madvise_answer = 0;
    ck_assert_int_eq(answer, POOL_MISS);
    ck_assert(!pool_fetch_begin(pool, KIB, 8, false, &f));
    ck_assert_uint_eq(words_in_memory(), 0);
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
    ck_assert_uint_eq(counts.lines[POOL_SLICES].draws, 1);
    ck_assert_uint_eq(counts.lines[0].draws, 2);
}

/* Many threads at once. */
enum { DRAWERS_MOST = 8, WORDS_EACH = 40 * 1000, SLICES_USED = 3 };

static atomic_uint drawing; /* threads that still draw */
static _Atomic size_t bad_words, served_words;

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* A request as the module makes it: what the pool does not have is fetched. */
static void draw(unsigned slice, uint32_t *seed)
{
    uint8_t buf[POOL_TAKE_MAX];
    struct pool_fetch f;
    size_t words =
        next_random(seed) % 8 == 0 ? next_random(seed) % 128 + 1 : next_random(seed) % 8 + 1;
    size_t len_bytes = words * WORD_BYTES;
    bool served = take(slice, buf, len_bytes) != POOL_MISS;
    if (!served && pool_fetch_begin(pool, 4 * KIB, len_bytes, false, &f)) {
        token_writes(f.bytes, f.len_bytes);
        served = pool_fetch_end(pool, &f, f.len_bytes / WORD_BYTES * WORD_BYTES, buf, len_bytes) ==
                 len_bytes;
    }
    if (served) {
        bad_words += serve_words(buf, len_bytes);
        served_words += words;
    }
}

static void *draw_much(void *number)
{
    uint32_t seed = (uint32_t)(uintptr_t)number;
    while (served_words < WORDS_EACH * DRAWERS_MOST)
        draw(next_random(&seed) % SLICES_USED, &seed);
    drawing--;
    return NULL;
}

/* 1, 2, 4 and 8 threads; then 8 while the pool is dropped, limited and counted, and time passes. */
TEST_EACH(no_word_is_served_twice_to_threads, 0, 5)
{
    pthread_t threads[DRAWERS_MOST];
    bool is_disturbed = _i == 4;
    unsigned count = is_disturbed ? DRAWERS_MOST : 1U << _i;
    drawing = count;
    for (unsigned i = 0; i < count; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, draw_much, (void *)(uintptr_t)(i + 1)),
                         0);
    for (unsigned turn = 0; drawing != 0; turn++) {
        fetch(0);
        if (!is_disturbed)
            continue;
        pool_drop(pool, (enum pool_drop)(turn % POOL_DROP_CAUSES));
        pool_limit(pool, turn % 2 == 0 ? 2 * KIB : CAPACITY);
        now_ns += turn % 16 == 0 ? MAX_AGE_NS : TICK_NS;
    }
    for (unsigned i = 0; i < count; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_uint_eq(bad_words, 0);
    ck_assert_uint_ge(served_words, WORDS_EACH * DRAWERS_MOST);
    /* Draws that a fetch met are in no line. */
    ck_assert_uint_eq(held_bytes(), words_in_memory() * WORD_BYTES);
    pool_drop(pool, POOL_DROP_TOKEN);
    ck_assert_uint_eq(words_in_memory(), 0);
    ck_assert_uint_eq(held_bytes(), 0);
}
