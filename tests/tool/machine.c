/* machine.c - to be preloaded: another machine, as variables say.
 *
 * MACHINE: words. wipe: the kernel does not do that on fork; impatient: alarm() comes at once.
 * CPUINFO: what is read for /proc/cpuinfo.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static bool asked(const char *word)
{
    const char *words = getenv("MACHINE");
    return words != NULL && strstr(words, word) != NULL;
}

int madvise(void *at, size_t bytes, int advice)
{
    if (advice != MADV_WIPEONFORK || !asked("wipe"))
        return NEXT(madvise)(at, bytes, advice);
    errno = EINVAL;
    return -1;
}

/* Where the program is built for large files, so is this, and both mean fopen64(). */
FILE *fopen(const char *path, const char *mode)
{
    const char *instead = getenv("CPUINFO");

    if (instead != NULL && strcmp(path, "/proc/cpuinfo") == 0)
        path = instead;
    return NEXT(fopen)(path, mode);
}

unsigned alarm(unsigned seconds)
{
    return NEXT(alarm)(asked("impatient") ? 1 : seconds);
}
