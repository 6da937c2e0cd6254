/* safeguard.c - which safeguard a library built for tests leaves out. Not part of an installed one. */
#include "base/safeguard.h"

#include <stdlib.h>
#include <string.h>

#ifdef SAFEGUARDS_CHOSEN_AT_RUN_TIME
enum safeguard safeguard_left_out = SAFEGUARDS;

__attribute__((constructor)) static void choose(void)
{
    static const char *const names[SAFEGUARDS] = {[SAFEGUARD_FORK] = "FORK",
                                                  [SAFEGUARD_DROPPABLE] = "DROPPABLE",
                                                  [SAFEGUARD_POST_COPY] = "POST_COPY",
                                                  [SAFEGUARD_WIPE] = "WIPE",
                                                  [SAFEGUARD_AGE] = "AGE",
                                                  [SAFEGUARD_SEED] = "SEED",
                                                  [SAFEGUARD_HEALTH] = "HEALTH",
                                                  [SAFEGUARD_LOCK] = "LOCK"};
    const char *name = secure_getenv("P11_PROXY_TEST_WITHOUT");
    for (unsigned i = 0; name != NULL && i < SAFEGUARDS; i++)
        if (strcmp(name, names[i]) == 0)
            safeguard_left_out = (enum safeguard)i;
}
#endif
