/* memory.c - maps and divides the memory for what changes. */
#include "state/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/wipeonfork.h"

/* Of which only the pages that are touched take memory. */
enum { MAPPED_BYTES = 512 * 1024, CACHE_LINE = 64 };

static char *memory;
static size_t used_bytes;
static bool wiped_by_kernel;

static void wipe_in_child(void)
{
    if (memory != NULL)
        memset(memory, 0, MAPPED_BYTES);
}

int memory_map(void)
{
    void *mapped;
    int rc = wipeonfork_map(&mapped, MAPPED_BYTES);
    wiped_by_kernel = rc == 0;
    if (rc != 0) {
        mapped = aligned_alloc(CACHE_LINE, MAPPED_BYTES);
        rc = mapped != NULL && pthread_atfork(NULL, NULL, wipe_in_child) == 0 ? 0 : -ENOMEM;
        if (rc == 0)
            memset(mapped, 0, MAPPED_BYTES);
    }
    if (rc != 0)
        return rc;
    memory = mapped;
    used_bytes = 0;
    return 0;
}

void *memory_part(size_t len_bytes)
{
    char *part = memory + used_bytes;
    used_bytes += (len_bytes + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
    if (used_bytes > MAPPED_BYTES)
        abort(); /* a struct has grown: MAPPED_BYTES has to grow with it */
    return part;
}

bool memory_is_wiped_on_fork(void)
{
    return wiped_by_kernel;
}

void memory_unmap(void)
{
    if (wiped_by_kernel)
        wipeonfork_unmap(memory, MAPPED_BYTES);
    else
        free(memory);
    memory = NULL;
}
