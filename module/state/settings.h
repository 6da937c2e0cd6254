/* settings.h - the configuration and the policy in force. */
#ifndef P11_PROXY_SETTINGS_H
#define P11_PROXY_SETTINGS_H

#include <stdatomic.h>

#include "config/config.h"
#include "policy/policy.h"

/* Never NULL; all defaults before the first settings_load(). Stays valid until the second next
 * settings_load(). It lies in ordinary memory: a forked child goes on under the same settings. */
const struct config *settings(void);

/* Read it by policy_in_force(). */
extern _Atomic(struct policy *) current_policy;

/*
 * What the owner disabled; NULL if nothing, which is all that a call has to ask then. It does not change,
 * stays valid as long as settings() of the same time, and a forked child goes on under it.
 */
static inline const struct policy *policy_in_force(void)
{
    return atomic_load_explicit(&current_policy, memory_order_acquire);
}

/*
 * Reads the configuration and the lists of algorithms anew and puts them in force. On failure false, with the
 * message, and the former ones stay, except that the log follows a configuration whose lists are wrong. They
 * stay, too, and true is the answer, if a file that they came from cannot be read any more and no other has taken
 * its place: then the process gave up its rights, or changed its root.
 * heard: warnings about the lists are logged. A heard reading after one that was not uses what that one read, if it
 * is less than a second old and gave no warning. One thread at a time: the caller sees to it.
 */
bool settings_load(struct message *message, bool heard);

/* Frees both, when the module is unloaded and no thread calls. */
void settings_free(void);

#endif
