/* pool_hook.c - where a test of the pool steps in, and which safeguard is left out. */
#include "pool_hook.h"

#include <stdlib.h>

#include "base/safeguard.h"

void (*pool_test_hook)(void);

const char *safeguard_left_out = "";

__attribute__((constructor)) static void choose(void)
{
    const char *name = secure_getenv("P11_PROXY_TEST_WITHOUT");
    if (name != NULL)
        safeguard_left_out = name;
}
