/* ops_random.c - draws of random bytes, as a module answers them. */
#include <stdlib.h>

#include "bench.h"

enum {
    DRAW_MOST_BYTES = 1024 * 1024,
    LONG_DRAWS = 20000, /* fits one of 16 MiB many times */
    BURST_DRAWS = 1000, /* fits a pool of the default size, with draws of 32 bytes */
    WARM_DRAWS = 100000,
    ODD_BYTES = 32 /* of a draw that fails for another reason than its length */
};

static const CK_FLAGS GENERATOR = CKF_RNG | CKF_TOKEN_INITIALIZED;
static const int64_t REFILL_NS = 10 * 1000 * 1000; /* SoftHSM fills such a pool in less */
static const int64_t LONG_REFILL_NS = 100 * 1000 * 1000;
static const int64_t STEADY_NS = 1000 * 1000 * 1000;

static CK_BYTE bytes[DRAW_MOST_BYTES];

static void prepare(struct subject *s)
{
    s->fn = load_module(s->module);
    initialize(s->fn);
    s->session = open_session(s->fn, find_slot(s->fn, GENERATOR, 0));
}

static void draw(struct subject *s, long times)
{
    CK_RV rv = CKR_OK;
    CK_ULONG len_bytes = (CK_ULONG)s->argument;
    for (long i = 0; i < times && rv == CKR_OK; i++)
        rv = s->fn->C_GenerateRandom(s->session, bytes, len_bytes);
    must("C_GenerateRandom", rv);
}

static void draw_null(struct subject *s, long times)
{
    for (long i = 0; i < times; i++)
        s->fn->C_GenerateRandom(s->session, NULL, ODD_BYTES);
}

static void draw_without_session(struct subject *s, long times)
{
    for (long i = 0; i < times; i++)
        s->fn->C_GenerateRandom(s->session + 1, bytes, ODD_BYTES);
}

/* A seed empties the pool; only the draw after it is timed. */
static double draw_after_seed(struct subject *s, long times)
{
    CK_BYTE seed = 0;
    int64_t sum_ns = 0;
    for (long i = 0; i < times; i++) {
        s->fn->C_SeedRandom(s->session, &seed, sizeof seed);
        sum_ns -= now_ns();
        draw(s, 1);
        sum_ns += now_ns();
    }
    return (double)sum_ns / (double)times;
}

/* Draws of 32 bytes at so many bytes a second. Returns how many in a million waited for the token. */
static double draw_steadily(struct subject *s, long times)
{
    struct subject one = *s;
    one.argument = ODD_BYTES;
    double interval_ns = 1e9 * ODD_BYTES / (double)s->argument;
    struct target_counts before = target_counts();
    int64_t begin_ns = now_ns();
    long draws = 0;
    for (; now_ns() - begin_ns < STEADY_NS * times; draws++) {
        while ((double)(now_ns() - begin_ns) < (double)draws * interval_ns)
            ;
        draw(&one, 1);
    }
    return 1e6 * (double)(target_counts().main_calls - before.main_calls) / (double)draws;
}

static void prepare_slots(struct subject *s)
{
    s->fn = load_module(s->module);
    initialize(s->fn);
    s->count = s->argument;
    s->sessions = calloc((size_t)s->count, sizeof *s->sessions);
    for (long i = 0; i < s->count; i++)
        s->sessions[i] = open_session(s->fn, find_slot(s->fn, GENERATOR, i));
}

static void prepare_sessions(struct subject *s)
{
    prepare(s);
    open_sessions(s, find_slot(s->fn, GENERATOR, 0), s->argument);
}

/* A prime's step, so that no two neighbours follow each other. */
static void draw_around(struct subject *s, long times)
{
    CK_RV rv = CKR_OK;
    for (long i = 0, at = 0; i < times && rv == CKR_OK; i++) {
        rv = s->fn->C_GenerateRandom(s->sessions[at], bytes, ODD_BYTES);
        at = (at + 7919) % s->count;
    }
    must("C_GenerateRandom", rv);
}

const struct op ops_random[] = {
    {"draw", "draws of N bytes without a pause", prepare, draw, NULL, 0, 0, WARM_DRAWS},
    {"warm", "20,000 draws of N bytes from a large pool that had time to fill", prepare, draw, NULL,
     LONG_DRAWS, LONG_REFILL_NS, 10 * WARM_DRAWS},
    {"burst", "1000 draws of N bytes from a pool that had time to fill", prepare, draw, NULL,
     BURST_DRAWS, REFILL_NS, WARM_DRAWS},
    {"large", "draws of N bytes, more than a pool answers", prepare, draw, NULL, 0, 0, 0},
    {"null", "draws of 32 bytes to nowhere", prepare, draw_null, NULL, 0, 0, 0},
    {"no-session", "draws of 32 bytes with a wrong handle", prepare, draw_without_session, NULL, 0,
     0, 0},
    {"empty", "a draw of N bytes when the pool was just emptied", prepare, NULL, draw_after_seed, 0,
     0, 0},
    {"steady", "draws of 32 bytes at N bytes/s for a second: those that waited, of a million",
     prepare, NULL, draw_steadily, 1, 0, 1},
    {"slots", "draws of 32 bytes from N slots in turn", prepare_slots, draw_around, NULL,
     BURST_DRAWS, REFILL_NS, WARM_DRAWS},
    {"sessions", "draws of 32 bytes in N sessions in turn", prepare_sessions, draw_around, NULL,
     BURST_DRAWS, REFILL_NS, WARM_DRAWS},
    {0}};
