/* fork_gate.h - keeps the filler's thread out of the target while the application forks, and at exit.
 *
 * A fork while that thread is in the target would leave the target's own locks held in the child for ever. So the
 * thread passes this gate on its way in, and a fork waits until it is out: for a quarter of a second, and once for
 * each call, because a token that hangs must not hold up every fork.
 */
#ifndef P11_PROXY_FORK_GATE_H
#define P11_PROXY_FORK_GATE_H

#include <stdbool.h>

/* Registers the fork handlers, once. False if there is no memory for that. */
bool fork_gate_watch(void);

/* Enters. False, and nothing to leave, while a thread forks or the process exits. The filler's thread only. */
bool fork_gate_enter(void);
void fork_gate_leave(void);

/* At exit(): lets the thread in no more, and waits up to a second until it is out. */
void fork_gate_close(void);
bool fork_gate_is_closed(void);

#endif
