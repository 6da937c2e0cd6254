/* stream.c - the counting target's one counter; processes that name the same file in COUNTING_STREAM share it. */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "counting.h"

static atomic_uint_fast64_t own_counter;
static _Atomic(atomic_uint_fast64_t *) counter;

static atomic_uint_fast64_t *shared_counter(void)
{
    char path[PATH_MAX];
    knobs_path("COUNTING_STREAM", path);
    int fd = path[0] != '\0' ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return &own_counter;
    void *memory = MAP_FAILED;
    if (ftruncate(fd, sizeof(atomic_uint_fast64_t)) == 0)
        memory =
            mmap(NULL, sizeof(atomic_uint_fast64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return memory != MAP_FAILED ? memory : &own_counter;
}

uint64_t stream_take(uint64_t count)
{
    if (atomic_load(&counter) == NULL) {
        atomic_uint_fast64_t *none = NULL;
        atomic_compare_exchange_strong(&counter, &none, shared_counter());
    }
    return atomic_fetch_add(atomic_load(&counter), count) + 1;
}
