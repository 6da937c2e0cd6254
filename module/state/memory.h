/* memory.h - one mapping for what changes, which fork wipes; each file keeps a struct of its own in it.
 *
 * Zero bytes mean: not initialised, no session known, no slot, no thread, no lock held. That is what a forked
 * or cloned child finds, so it forwards every call until it calls C_Initialize, and no lock that a thread of its
 * parent held can stop it. What has to outlast a fork (the target, the settings) lies in ordinary memory.
 * The memory stays mapped as long as the module is loaded.
 */
#ifndef P11_PROXY_MEMORY_H
#define P11_PROXY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Points a variable of the file to so many elements of it, zeroed and on cache lines of their own, when the module is
 * loaded. */
#define IN_WIPED_MEMORY(pointer, count)                                                            \
    __attribute__((constructor)) static void prepare_##pointer(void)                               \
    {                                                                                              \
        (pointer) = memory_part((count) * sizeof *(pointer));                                      \
    }

void *memory_part(size_t len_bytes);

/* False if there was none: then no other function of state/ may be called. */
bool memory_is_mapped(void);

/* False where the system does not wipe memory on fork, or gave none: then a handler of ours does, and nothing may be
 * pooled. */
bool memory_is_wiped_on_fork(void);

/* Unmaps it, when the module is unloaded and no thread calls. */
void memory_unmap(void);

#endif
