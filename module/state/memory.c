/* memory.c - maps and divides the memory for what changes. */
#include "state/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/wipeonfork.h"

/* Of which only the pages that are touched take memory. */
enum { MAPPED_BYTES = 3 * 1024 * 1024, CACHE_LINE = 64 };

static char *memory;
static size_t used_bytes;
static bool wiped_by_kernel;

/* New pages, at that address or anywhere. */
static void *map(void *at, int flags)
{
    return mmap(at, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags,
                /* fd= */ -1, 0);
}

static void wipe_in_child(void)
{
    if (memory != NULL)
        map(memory, MAP_FIXED);
}

/* Only once, so that a part is never missing while another is there. */
static void map_memory(void)
{
    void *mapped;
    wiped_by_kernel = wipeonfork_map(&mapped, MAPPED_BYTES) == 0;
    if (!wiped_by_kernel)
        mapped = pthread_atfork(NULL, NULL, wipe_in_child) == 0 ? map(NULL, 0) : MAP_FAILED;
    memory = mapped != MAP_FAILED ? mapped : NULL;
}

void *memory_part(size_t len_bytes)
{
    if (used_bytes == 0)
        map_memory();
    char *part = memory != NULL ? memory + used_bytes : NULL;
    used_bytes += (len_bytes + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
    if (used_bytes > MAPPED_BYTES)
        abort(); /* a struct has grown: MAPPED_BYTES has to grow with it */
    return part;
}

bool memory_is_mapped(void)
{
    return memory != NULL;
}

bool memory_is_wiped_on_fork(void)
{
    return wiped_by_kernel;
}

void memory_unmap(void)
{
    if (wiped_by_kernel)
        wipeonfork_unmap(memory, MAPPED_BYTES);
    else if (memory != NULL)
        munmap(memory, MAPPED_BYTES);
    memory = NULL;
}
