/* constructor.c - no target: a library that calls back while it is loaded, with the loader's lock held. */
#include <stdint.h>
#include <stdlib.h>

__attribute__((constructor)) static void call_back(void)
{
    const char *function = getenv("CONSTRUCTOR_CALLS");
    if (function != NULL)
        ((void (*)(void))(uintptr_t)strtoull(function, NULL, 16))();
}
