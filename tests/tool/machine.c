/* machine.c - to be preloaded: the machine, and the course of things, as variables say.
 *
 * MACHINE: words, of what the kernel is not to do or to have: wipe, droppable, lock, generation; and
 * "clonable" for a generation ID that is there. CPUINFO: what is read for /proc/cpuinfo.
 * AT_DESCRIPTORS: a command that is run when a process's descriptors are first looked for.
 * LOOKS: a file into which goes how many links were read.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum { MAP_TYPES = 0x0f, MAP_TYPE_DROPPABLE = 0x08 };

static unsigned long links_read;

static bool asked(const char *word)
{
    const char *words = getenv("MACHINE");

    return words != NULL && strstr(words, word) != NULL;
}

/* Where the program is built for large files, so is this, and both mean mmap64() by mmap(). */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int refuse(int number)
{
    errno = number;
    return -1;
}

int madvise(void *at, size_t bytes, int advice)
{
    if (advice == MADV_WIPEONFORK && asked("wipe"))
        return refuse(EINVAL);
    return NEXT(madvise)(at, bytes, advice);
}

int mlock(const void *at, size_t bytes)
{
    return asked("lock") ? refuse(ENOMEM) : NEXT(mlock)(at, bytes);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if ((flags & MAP_TYPES) == MAP_TYPE_DROPPABLE && asked("droppable")) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    return NEXT(mmap)(at, bytes, protection, flags, fd, offset);
}

int glob(const char *pattern, int flags, int (*on_error)(const char *, int), glob_t *matches)
{
    bool of_machine = strncmp(pattern, "/sys/", 5) == 0 || strncmp(pattern, "/dev/", 5) == 0;

    if (of_machine && asked("clonable"))
        pattern = "/dev/null";
    else if (of_machine && asked("generation")) {
        *matches = (glob_t){0};
        return GLOB_NOMATCH;
    }
    return NEXT(glob)(pattern, flags, on_error, matches);
}

FILE *fopen(const char *path, const char *mode)
{
    const char *instead = getenv("CPUINFO");

    if (instead != NULL && strcmp(path, "/proc/cpuinfo") == 0)
        path = instead;
    return NEXT(fopen)(path, mode);
}

int openat(int directory, const char *path, int flags, ...)
{
    const char *command = getenv("AT_DESCRIPTORS");
    mode_t mode = 0;
    va_list rest;

    if ((flags & O_CREAT) != 0) {
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    if (command != NULL && strcmp(path, "fd") == 0) {
        char *once = strdup(command);
        unsetenv("AT_DESCRIPTORS");
        unsetenv("LD_PRELOAD");
        if (once == NULL || system(once) != 0)
            abort();
        free(once);
    }
    return NEXT(openat)(directory, path, flags, mode);
}

ssize_t readlinkat(int directory, const char *path, char *target, size_t bytes)
{
    links_read++;
    return NEXT(readlinkat)(directory, path, target, bytes);
}

static void __attribute__((destructor)) tell(void)
{
    const char *path = getenv("LOOKS");
    FILE *file = path != NULL ? NEXT(fopen)(path, "we") : NULL;

    if (file != NULL) {
        fprintf(file, "%lu\n", links_read);
        fclose(file);
    }
}
