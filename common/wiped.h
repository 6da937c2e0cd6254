/* wiped.h - memory that a forked child finds zeroed. */
#ifndef P11_PROXY_WIPED_H
#define P11_PROXY_WIPED_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Maps at least len_bytes of zeroed, private, page-aligned memory between two pages that fault when
 * touched. The kernel zeroes it in every copy of the address space (fork, _Fork, raw clone) and
 * leaves it out of core files where it can.
 * lock_memory: try to keep it out of swap; a refusal is no error.
 * Any thread. Keeps errno. Returns 0 and the memory, which the caller gives back with
 * wiped_unmap(); -ENOMEM; or -ENOTSUP when wiping on fork cannot be proven (the kernel refuses the
 * advice, or accepts nonsense, as user-mode emulators do). *memory is untouched on failure.
 */
int wiped_map(void **memory, size_t len_bytes, bool lock_memory);

/* Tries to keep such memory out of swap, or lets it be swapped again. Keeps errno. */
void wiped_lock(void *memory, size_t len_bytes, bool lock_memory);

/* Zeroes and gives back what wiped_map() gave for the same len_bytes. NULL is fine. Keeps errno. */
void wiped_unmap(void *memory, size_t len_bytes);

/* True if wiped_map() can work here: the same probe, on a page of its own. */
bool wiped_is_supported(void);

#endif
