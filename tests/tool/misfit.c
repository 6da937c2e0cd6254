/* misfit.c - a module that does to its process what MISFIT says: crash, exit or hang. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) unsigned long C_GetFunctionList(void **list);

unsigned long C_GetFunctionList(void **list)
{
    const char *misfit = getenv("MISFIT");

    *list = NULL;
    if (misfit != NULL && strcmp(misfit, "crash") == 0)
        abort(); /* no fault, which sanitizers would make an exit of */
    if (misfit != NULL && strcmp(misfit, "exit") == 0)
        exit(0);
    while (misfit != NULL && strcmp(misfit, "hang") == 0)
        pause();
    return 0;
}
