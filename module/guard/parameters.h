/* parameters.h - what a mechanism's parameter names beside the mechanism: further algorithms, and keys to make. */
#ifndef P11_PROXY_PARAMETERS_H
#define P11_PROXY_PARAMETERS_H

#include "guard/purpose.h"
#include "policy/policy.h"

/*
 * The rule that denies something that the mechanism's parameter names, such as the hash of RSA-PSS, or the size of a
 * key that a derivation makes besides; NULL if none does. *code is then what the caller is told.
 * Of the parameter it reads no more than ulParameterLen bytes, at any alignment. What is missing, too short, or of a
 * mechanism that is in no table names nothing: that is for the token to judge. Structures that the parameter points to
 * are read as the token would read them. Any thread.
 */
const struct policy_rule *parameters_denied(const struct policy *policy, enum mechanism_use use,
                                            const CK_MECHANISM *mechanism,
                                            const struct key_use *keys, CK_RV *code);

#endif
