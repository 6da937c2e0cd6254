/* memory.c - maps and divides the memory for what changes. */
#include "state/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/wipeonfork.h"

/* Of which only the pages that are touched take memory. */
enum { MAPPED_BYTES = 3 * 1024 * 1024, CACHE_LINE = 64 };

static char *memory;
static size_t used_bytes;
static bool wiped_by_kernel;

static void wipe_in_child(void)
{
    if (memory != NULL)
        memset(memory, 0, used_bytes);
}

/* Only once, so that a part is never missing while another is there. */
static void map_memory(void)
{
    void *mapped = MAP_FAILED;
    wiped_by_kernel = wipeonfork_map(&mapped, MAPPED_BYTES) == 0;
    if (!wiped_by_kernel && pthread_atfork(NULL, NULL, wipe_in_child) == 0)
        mapped = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      /* fd= */ -1, 0);
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
