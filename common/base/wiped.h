/* wiped.h - memory that a forked child finds zeroed. */
#ifndef P11_PROXY_WIPED_H
#define P11_PROXY_WIPED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Maps at least len_bytes of zeroed, private, page-aligned memory between two pages that fault when
 * touched. The kernel zeroes it in every copy of the address space (fork, _Fork, raw clone) and
 * leaves it out of core files where it can.
 * Any thread. Keeps errno. Returns 0 and the memory, which the caller gives back with
 * wiped_unmap(); -ENOMEM; or -ENOTSUP when wiping on fork cannot be proven (the kernel refuses the
 * advice, or accepts nonsense, as user-mode emulators do). *memory is untouched on failure.
 */
int wiped_map(void **memory, size_t len_bytes);

/* Tries to keep such memory out of swap, each page from its first use on, or lets it be swapped again. Keeps errno. True if it is kept out. */
bool wiped_lock(void *memory, size_t len_bytes, bool lock_memory);

/* Zeroes and gives back what wiped_map() gave for the same len_bytes. NULL is fine. Keeps errno. */
void wiped_unmap(void *memory, size_t len_bytes);

/* Asks the kernel once more to wipe such memory on fork: a checkpoint may have been restored by a program
 * that did not know. Keeps errno. Returns 0 or -ENOTSUP. */
int wiped_reassert(void *memory, size_t len_bytes);

/*
 * Maps a page that reads zero after a fork, after a restore from a checkpoint, and whenever the kernel
 * took it away for want of memory (MAP_DROPPABLE, Linux 6.11). NULL where there is no such thing. The
 * caller gives it back with droppable_unmap(). Keeps errno.
 */
_Atomic uint64_t *droppable_map(void);
void droppable_unmap(_Atomic uint64_t *page);

/* True if wiped_map() can work here: the same probe, on a page of its own. */
bool wiped_is_supported(void);

#endif
