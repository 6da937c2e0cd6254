/* safeguard.h - names the pool's safeguards, so that a test can leave one out and see that a test fails.
 *
 *   FORK       memory is wiped on fork
 *   POST_COPY  the epoch is checked again after the copy
 *   WIPE       served bytes are wiped
 *   AGE        bytes older than max-age are not served
 *   SEED       C_SeedRandom drops what was fetched before
 *   HEALTH     what the token writes is tested
 *   LOCK       slices are locked
 *
 * A library that is installed has all of them, as constants. The one that is built for tests with
 * SAFEGUARDS_CHOSEN_AT_RUN_TIME leaves out the one that the variable P11_PROXY_TEST_WITHOUT names.
 */
#ifndef P11_PROXY_SAFEGUARD_H
#define P11_PROXY_SAFEGUARD_H

#ifdef SAFEGUARDS_CHOSEN_AT_RUN_TIME
#include <string.h>
extern const char *safeguard_left_out; /* "": none */
#define SAFEGUARD(name) (strcmp(safeguard_left_out, #name) != 0)
#else
#define SAFEGUARD(name) 1
#endif

#endif
