/* safeguard.h - names the pool's safeguards, so that a test can leave one out and see that a test fails.
 *
 * A library that is installed has all of them, as constants. The one that is built for tests with
 * SAFEGUARDS_CHOSEN_AT_RUN_TIME leaves out the one that the variable P11_PROXY_TEST_WITHOUT names.
 */
#ifndef P11_PROXY_SAFEGUARD_H
#define P11_PROXY_SAFEGUARD_H

enum safeguard {
    SAFEGUARD_FORK,      /* memory is wiped on fork */
    SAFEGUARD_DROPPABLE, /* the droppable sentinel is checked */
    SAFEGUARD_POST_COPY, /* the epoch is checked again after the copy */
    SAFEGUARD_WIPE,      /* served bytes are wiped */
    SAFEGUARD_AGE,       /* bytes older than max-age are not served */
    SAFEGUARD_SEED,      /* C_SeedRandom drops what was fetched before */
    SAFEGUARD_HEALTH,    /* what the token writes is tested */
    SAFEGUARD_LOCK,      /* slices are locked */
    SAFEGUARDS
};

#ifdef SAFEGUARDS_CHOSEN_AT_RUN_TIME
extern enum safeguard safeguard_left_out; /* SAFEGUARDS: none */
#define SAFEGUARD(name) (safeguard_left_out != SAFEGUARD_##name)
#else
#define SAFEGUARD(name) 1
#endif

#endif
