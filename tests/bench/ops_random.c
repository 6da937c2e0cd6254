/* ops_random.c - draws of random bytes, as a module answers them. */
#include <stdlib.h>

#include "bench.h"

enum {
    DRAW_MOST_BYTES = 64 * 1024,
    BURST_DRAWS = 1000, /* fits a pool of the default size, with draws of 32 bytes */
    WARM_DRAWS = 100000
};

static const CK_FLAGS GENERATOR = CKF_RNG | CKF_TOKEN_INITIALIZED;
static const int64_t REFILL_NS =
    10 * 1000 * 1000; /* longer than SoftHSM needs to fill such a pool */

static void prepare(struct subject *s)
{
    s->fn = load_module(s->module);
    initialize(s->fn);
    s->session = open_session(s->fn, find_slot(s->fn, GENERATOR, 0));
}

static void draw(struct subject *s, long times)
{
    CK_BYTE bytes[DRAW_MOST_BYTES];
    CK_RV rv = CKR_OK;
    CK_ULONG len_bytes = (CK_ULONG)s->argument;
    for (long i = 0; i < times && rv == CKR_OK; i++)
        rv = s->fn->C_GenerateRandom(s->session, bytes, len_bytes);
    must("C_GenerateRandom", rv);
}

const struct op ops_random[] = {
    {"draw", "draws of N bytes without a pause", prepare, draw, NULL, 0, 0, WARM_DRAWS},
    {"burst", "1000 draws of N bytes from a pool that had time to fill", prepare, draw, NULL,
     BURST_DRAWS, REFILL_NS, WARM_DRAWS},
    {0}};
