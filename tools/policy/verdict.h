/* verdict.h - what the policy in force says of one name that a person typed. */
#ifndef P11_PROXY_POLICY_VERDICT_H
#define P11_PROXY_POLICY_VERDICT_H

#include "policy/names.h"
#include "policy/policy.h"

enum verdict { VERDICT_PERMITTED, VERDICT_REFUSED, VERDICT_NO_EFFECT, VERDICT_UNKNOWN };

enum { EXCEPTIONS_MOST = 32 };

struct verdict_of_name {
    enum verdict verdict;

    /* REFUSED: the rule that refuses it. NO_EFFECT: the one that lists it and denies nothing. PERMITTED:
     * the one that denies some of its keys, or NULL. */
    const struct policy_rule *rule;

    /* Of a name that is permitted: its mechanisms that are refused all the same, and by what. */
    struct {
        uint64_t mechanism;
        unsigned uses; /* FOR_... that are refused */
        const struct policy_rule *rule;
    } exception[EXCEPTIONS_MOST];
    size_t exceptions;
    uint64_t min_key_bits; /* as policy_min_key_bits(), if it is so of all its mechanisms; else 0 */

    const struct name *nearest; /* of an unknown name; NULL if nothing is near */
};

/*
 * Asks about an algorithm's name, a mechanism's name or number, a parameter set, or a curve by name or
 * OID. names has every name of the tables. In audit the verdict is the one that enforce would give.
 */
void verdict_find(struct verdict_of_name *out, const struct policy *policy,
                  const struct names *names, const char *text);

#endif
