/* clock.h - what time it is for this program, the proxy in it and the target behind that: as the test likes.
 *
 * A program that uses any of this has its own clock_gettime() and nanosleep(), which libraries call as well.
 */
#ifndef P11_PROXY_TEST_CLOCK_H
#define P11_PROXY_TEST_CLOCK_H

#include <stdint.h>

#define NS_PER_MS 1000000LL
#define NS_PER_S  1000000000LL

/* All clocks go ahead by that of the true time; the wall's clock besides. */
void clock_step(int64_t all_ns, int64_t wall_ns);

/* From now on time passes while a thread sleeps, and hardly otherwise, however long the machine is busy. */
void clock_stop(void);

/* The true time again: Check looks at the clock when a test ends. */
void clock_true(void);

#endif
