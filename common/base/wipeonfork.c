/* wipeonfork.c - memory that the kernel zeroes in a forked child: guard pages, MADV_WIPEONFORK, MADV_DONTDUMP. */
#include "base/wipeonfork.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/keep_errno.h"
#include "base/safeguard.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum { BOGUS_ADVICE = -1 };

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t whole_pages(size_t len_bytes)
{
    return (len_bytes + page_bytes() - 1) & ~(page_bytes() - 1);
}

int wipeonfork_map(void **memory, size_t len_bytes)
{
    KEEP_ERRNO();
    size_t guard = page_bytes(), usable = whole_pages(len_bytes);
    char *all = mmap(NULL, usable + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return -ENOMEM;
    int rc = mprotect(all + guard, usable, PROT_READ | PROT_WRITE) == 0
                 ? wipeonfork_reassert(all + guard, usable)
                 : -ENOMEM;
    if (rc == 0)
        *memory = all + guard;
    else
        munmap(all, usable + 2 * guard);
    return rc;
}

int wipeonfork_reassert(void *memory, size_t len_bytes)
{
    KEEP_ERRNO();
    /* A kernel or an emulator that accepts nonsense proves nothing by accepting this advice. */
    if (madvise(memory, len_bytes, BOGUS_ADVICE) == 0 ||
        (SAFEGUARD(FORK) && madvise(memory, len_bytes, MADV_WIPEONFORK) != 0))
        return -ENOTSUP;
    madvise(memory, len_bytes, MADV_DONTDUMP);
    return 0;
}

bool wipeonfork_lock(void *memory, size_t len_bytes)
{
    KEEP_ERRNO();
    /* On fault: a large pool that is hardly used must not occupy all of its memory. */
    return mlock2(memory, len_bytes, MLOCK_ONFAULT) == 0 || mlock(memory, len_bytes) == 0;
}

void wipeonfork_unlock(void *memory, size_t len_bytes)
{
    KEEP_ERRNO();
    munlock(memory, len_bytes);
}

void wipeonfork_unmap(void *memory, size_t len_bytes)
{
    KEEP_ERRNO();
    size_t guard = page_bytes(), usable = whole_pages(len_bytes);
    if (memory == NULL)
        return;
    explicit_bzero(memory, usable);
    munmap((char *)memory - guard, usable + 2 * guard);
}
