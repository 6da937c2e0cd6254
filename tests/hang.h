/* hang.h - how long a test may take. Check's own answer, four seconds, is too short for a busy machine. */
#ifndef P11_PROXY_TEST_HANG_H
#define P11_PROXY_TEST_HANG_H

/* One that takes longer hangs; the sanitizers and a loaded machine are slow. */
enum { HANG_S = 120 };

/* What it forks ends itself earlier, so that the test can tell. */
enum { CHILD_HANGS_S = 60 };

#endif
