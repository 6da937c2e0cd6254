/* policy_verdict.h - what the policy in force says of one name that a person typed. */
#ifndef P11_PROXY_POLICY_VERDICT_H
#define P11_PROXY_POLICY_VERDICT_H

#include "policy/policy.h"
#include "policy/policy_names.h"

enum verdict { VERDICT_PERMITTED, VERDICT_REFUSED, VERDICT_UNKNOWN };

enum { EXCEPTIONS_MOST = 32 };

struct verdict_of_name {
    enum verdict verdict;
    const struct policy_rule *rule; /* that refuses it; NULL otherwise */

    /* Of a name that is permitted: its mechanisms that are refused all the same, and by what. */
    struct {
        uint64_t mechanism;
        const struct policy_rule *rule;
    } exception[EXCEPTIONS_MOST];
    size_t exceptions;
    uint64_t
        min_key_bits; /* as policy_min_key_bits() if it is the same for all its mechanisms; otherwise 0 */

    const struct name *nearest; /* of an unknown name; NULL if nothing is near */
};

/*
 * Asks about an algorithm's name, a mechanism's name or number, or a curve by name, alias or OID.
 * names has every known name. In audit the verdict is the one that enforce would give.
 */
void verdict_find(struct verdict_of_name *out, const struct policy *policy,
                  const struct names *names, const char *text);

#endif
