/* test_clock.c - whatever the clocks do, no byte that was fetched longer ago than x-pool-max-age is served.
 *
 * The proxy and its thread call this program's clock_gettime(), not the C library's.
 */
#include "served.h"

#include "clock.h"

enum { MAX_AGE_S = 60, HOUR_S = 3600 };

static const struct step {
    const char *name;
    int64_t ahead_ns;
    int64_t wall_ahead_ns;
} steps[] = {
    {"the age passes", MAX_AGE_S *NS_PER_S + NS_PER_MS, 0},
    {"time since boot goes back a second", -NS_PER_S, NS_PER_S},
    {"all clocks go back a second", -NS_PER_S, 0},
    {"all clocks go back far", -100 * NS_PER_S, 0},
    {"the machine sleeps for a moment", 0, 200 * NS_PER_MS},
    {"the machine sleeps for an hour", 0, HOUR_S *NS_PER_S},
    {"the wall clock is set back", 0, -200 * NS_PER_MS},
};

enum { STEPS = sizeof steps / sizeof *steps };

static CK_SESSION_HANDLE session;

/* Something is held, for five seconds already. */
static uint64_t begin_held(CK_C_INITIALIZE_ARGS *args)
{
    proxy_with("x-pool-max-age: 1min");
    EXPECT(fn->C_Initialize(args), CKR_OK);
    session = open_session(0, 0);
    draw(session, 16, 8192);
    let_filler_work();
    draw_until_held(session); /* on a busy machine all that was fetched may have been drawn */
    clock_step(5 * NS_PER_S, 0);
    uint64_t made = words_made();
    ck_assert_uint_le(draw(session, 16, 64), made);
    return words_made();
}

/* And a tick, by which what the serve path reads moves on. */
static void happen(const struct step *step)
{
    clock_step(step->ahead_ns + 20 * NS_PER_MS, step->wall_ahead_ns);
}

static void nothing_is_served_from_before(const char *step, uint64_t made)
{
    for (int round = 0; round < 2; round++) {
        uint64_t lowest = draw(session, 16, 16384);
        ck_assert_msg(lowest > made, "%s: word %lu is served, of %lu made before", step,
                      (unsigned long)lowest, (unsigned long)made);
        let_filler_work();
    }
    served_once(1024);
}

static CK_C_INITIALIZE_ARGS *const ways[] = {&os_locking, &no_threads};

/* Clocks are slewed all the time. */
TEST_EACH(what_is_young_is_served_though_the_clocks_drift, 0, 2)
{
    uint64_t made = begin_held(ways[_i]);
    happen(&(struct step){"they drift", 20 * NS_PER_S, 50 * NS_PER_MS});
    ck_assert_uint_le(draw(session, 16, 64), made);
    served_once(1024);
    clock_true();
}

/* Not while the token fails, nor when it is back. */
TEST_EACH(a_failed_refill_makes_no_old_bytes_fresh, 0, 2 * STEPS)
{
    CK_BYTE buf[16];
    const struct step *step = &steps[_i % STEPS];
    uint64_t made = begin_held(ways[_i / STEPS]);
    script("C_GenerateRandom: fail 0x6"); /* CKR_FUNCTION_FAILED, which drops nothing */
    happen(step);
    for (int i = 0; i < 100; i++)
        EXPECT(fn->C_GenerateRandom(session, buf, sizeof buf), CKR_FUNCTION_FAILED);
    script("C_GenerateRandom: ok");
    nothing_is_served_from_before(step->name, made);
    clock_true();
}

int main(void)
{
    return test_main("clock", set_up, tear_down);
}
