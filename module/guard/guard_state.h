/* guard_state.h - which saved operations came from here, so that C_SetOperationState brings back no other.
 *
 * A saved state does not say which mechanism it is of. So, where a policy is set, only a state is restored that
 * C_GetOperationState gave out through this proxy in the same life, under the same policy: its operation was
 * begun with a mechanism that is permitted.
 */
#ifndef P11_PROXY_GUARD_STATE_H
#define P11_PROXY_GUARD_STATE_H

#include <stdint.h>

#include "base/lock.h"

/* The last so many are known. */
enum { OPERATION_STATES = 1024 };

/* Part of struct state. */
struct operation_states {
    struct lock lock; /* guards what follows */
    unsigned next;
    uint64_t prints[OPERATION_STATES]; /* fingerprints; 0: none */
};

/* At the end of a life. */
void operation_states_forget(void);

#endif
