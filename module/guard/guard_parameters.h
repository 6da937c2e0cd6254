/* guard_parameters.h - the algorithms that a mechanism names beside itself. */
#ifndef P11_PROXY_GUARD_PARAMETERS_H
#define P11_PROXY_GUARD_PARAMETERS_H

#include "cryptoki.h"
#include "policy/policy.h"

/*
 * The rule that denies an algorithm named in the mechanism's parameter, such as the hash of RSA-PSS; NULL if
 * none does. Of the parameter it reads no more than ulParameterLen bytes, at any alignment. What is missing,
 * too short, or of a mechanism that is in no table names nothing: that is for the token to judge.
 * Structures that the parameter points to are read as the token would read them. Any thread.
 */
const struct policy_rule *parameters_denied(const struct policy *policy, enum mechanism_use use,
                                            const CK_MECHANISM *mechanism);

/* Whether the data of that mechanism may be a DigestInfo: it hides the digest from everybody else. */
bool mechanism_signs_digest_info(CK_MECHANISM_TYPE type);

/* Whether parameters_denied() may find anything in a parameter of that mechanism. */
bool mechanism_names_more(CK_MECHANISM_TYPE type);

#endif
