/* test_unmet.c - what a user of a slow token would expect and does not get. Not part of the suite. */
#include "run.h"

#include "words_seen.h"

/* One small request, a long pause, and then fifty: all of them could have been fetched in the pause. */
START_TEST(a_pause_is_enough_for_fifty_requests_of_16_bytes)
{
    knob("DELAY_US", "50000");
    words_begin();
    proxy_before("counting", "x-pool-max-age: 1min");
    initialize();
    CK_SESSION_HANDLE session = open_session(0, 0);
    words_draw(session, 16, 16);
    wait_until_quiet();
    unsigned own = target_calls("C_GenerateRandom") - target_calls_by_others("C_GenerateRandom");
    words_draw(session, 16, 800);
    ck_assert_uint_eq(target_calls("C_GenerateRandom") - target_calls_by_others("C_GenerateRandom"), own);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_pause_is_enough_for_fifty_requests_of_16_bytes);
}

int main(void)
{
    return run_tests("unmet", add_tests);
}
