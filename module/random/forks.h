/* forks.h - keeps the prefetch's thread out of the target while the application forks.
 *
 * A fork in the middle of a call leaves the child with whatever lock of the target's that call held, and
 * nobody to give it back. An application with one thread never sees that with the bare target. So fork()
 * waits, for a moment and with nothing locked, until the one call that the thread may be in is over, and
 * the thread begins none meanwhile. A token that hangs longer than that delays no fork: then the child
 * takes the chance that any child of a program with threads takes. _Fork() and raw clone() do not wait.
 */
#ifndef P11_PROXY_FORKS_H
#define P11_PROXY_FORKS_H

#include <stdbool.h>

/* From now on fork() waits, until we are unloaded. After lifeboat_make(), by the thread that called that. */
void forks_watch(void);

/* Around what the prefetch's thread does in the target. Its thread only. False, and it is not in, while
 * somebody forks: it must not wait for that, since who forks may wait for one who waits for the thread. */
bool forks_enter_target(void);
void forks_leave_target(void);

#endif
