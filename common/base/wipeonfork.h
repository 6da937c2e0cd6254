/* wipeonfork.h - memory that the kernel zeroes in every copy of the address space.
 * All functions keep errno, and any thread may call them. */
#ifndef P11_PROXY_WIPEONFORK_H
#define P11_PROXY_WIPEONFORK_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Maps at least len_bytes of zeroed, private, page-aligned memory between two pages that fault when touched.
 * The kernel zeroes it in the child of fork, _Fork and raw clone, and leaves it out of core files where it can.
 * Returns 0 and the memory, which ends with wipeonfork_unmap(); -ENOMEM; or -ENOTSUP if the kernel does not
 * prove that it wipes: it refuses the advice or, like user-mode emulators, accepts nonsense.
 */
int wipeonfork_map(void **memory, size_t len_bytes);

/* Zeroes and gives back what wipeonfork_map() gave for the same len_bytes. NULL is fine. */
void wipeonfork_unmap(void *memory, size_t len_bytes);

/* Tries to keep such memory out of swap, each page from its first use on. True if it is kept out. */
bool wipeonfork_lock(void *memory, size_t len_bytes);
void wipeonfork_unlock(void *memory, size_t len_bytes);

/* Asks the kernel once more to wipe such memory, because a program that restores checkpoints may have lost
 * that. Returns 0 or -ENOTSUP. */
int wipeonfork_reassert(void *memory, size_t len_bytes);

#endif
