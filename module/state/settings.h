/* settings.h - the configuration and the policy in force. */
#ifndef P11_PROXY_SETTINGS_H
#define P11_PROXY_SETTINGS_H

#include <stdatomic.h>

#include "config/config.h"
#include "policy/policy.h"

/* Read them by settings() and policy_in_force(). They lie in ordinary memory: a forked child goes on under the same. */
extern _Atomic(struct config *) current_config;
extern _Atomic(struct policy *) current_policy;

/* Never NULL; all defaults before the first settings_load(). Stays valid until the second next settings_load(). */
static inline const struct config *settings(void)
{
    return atomic_load_explicit(&current_config, memory_order_acquire);
}

/*
 * The policy; NULL if nothing is disabled. It does not change, stays valid as long as the settings() that were read
 * with it, and stays in force in a forked child.
 */
static inline const struct policy *policy_in_force(void)
{
    return atomic_load_explicit(&current_policy, memory_order_acquire);
}

/* The same, NULL also if it only audits: then nothing is hidden. */
static inline const struct policy *policy_enforced(void)
{
    const struct policy *policy = policy_in_force();
    return policy_is_audit(policy) ? NULL : policy;
}

/*
 * Reads the configuration and the lists of algorithms anew and puts them in force. On failure false, with the
 * message, and the former ones stay, except that the log follows a configuration whose lists are wrong. Returns
 * true, and the former ones stay as well, if a file that they came from cannot be read any more and no other has
 * taken its place: then the process gave up its rights, or changed its root.
 * heard: warnings about the lists are logged. The caller serialises calls.
 */
bool settings_load(struct message *message, bool heard);

/* Frees both, when the module is unloaded and no thread calls. */
void settings_free(void);

#endif
