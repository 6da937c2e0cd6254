/* clones.h - what the system says when the machine under us was cloned from a snapshot.
 *
 * Two signals, both optional: a device whose page holds a generation, of kernels that were patched for it,
 * seen at once; and the kernel's event for a changed VM generation ID, which comes some time after the clone
 * has begun to run, and not into every container. x-pool-mix: kernel is what closes the gap.
 */
#ifndef P11_PROXY_CLONES_H
#define P11_PROXY_CLONES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The machine's generation, in memory that the kernel changes; NULL where there is none. Any thread; lasts
 * until clones_forget(); keeps errno. */
const _Atomic uint32_t *clones_generation(void);

/* Gives that memory back, when we are unloaded. */
void clones_forget(void);

/* Begins and ends listening for the event. The prefetch's thread only, while it is there. */
void clones_listen(void);
void clones_unlisten(void);

/* True if the event came since the last call. Never waits. The prefetch's thread only. */
bool clones_heard(void);

/* True if an event of the kernel (strings, each with its NUL) tells of a new VM generation ID. */
bool clones_is_new_generation(const char *event, unsigned long len_bytes);

#endif
