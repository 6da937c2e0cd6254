/* internal.h - what a compiled policy is made of; for the files of this folder only. */
#ifndef P11_PROXY_POLICY_INTERNAL_H
#define P11_PROXY_POLICY_INTERNAL_H

#include "policy/item.h"
#include "policy/list.h"
#include "policy/names.h"
#include "policy/policy.h"

/* Standard mechanism numbers end far below (0x403a in PKCS#11 3.2); others have no bit. */
#define STANDARD_NUMBERS 0x8000u

/* What else may be asked about a mechanism, beside FOR_...: some rule is about its keys; its parameter names more. */
enum { LOOKS_AT_KEYS = 1 << USES, LOOKS_AT_PARAMETER = 2 << USES };

/* Rules are told by 1 + their index, 0 being none. */
typedef uint32_t rule_id;
#define NO_RULE 0u

struct rule {
    struct policy_rule shown; /* stands first, so that one can be had from the other */
    const char *no_effect;    /* NULL: in force */
    name_id group;            /* of its name */
    uint8_t uses;             /* FOR_...: what it is limited to */
    bool has_sizes;           /* about keys of some sizes, not about mechanisms as such */
    rule_id next;             /* in force under the same name */
};

struct denied {
    uint64_t number;
    bool is_taken;
    rule_id rule[USES];
};

/* That keys of one type, or of one mechanism, are denied if their size is in a range. */
enum { SIZE_RULES_MAX = 4096 };
enum size_subject { OF_KEY_TYPE, OF_MECHANISM };
struct size_rule {
    enum size_subject subject;
    uint64_t number;
    struct size_range bits;
    rule_id rule;
};

struct policy {
    uint8_t standard[STANDARD_NUMBERS]; /* FOR_... that are denied, LOOKS_AT_... */

    struct denied *denied; /* hash of all that are denied */
    uint64_t denied_mask;
    size_t denied_count;

    struct names *names;
    struct lists lists;
    struct rule *rule;
    size_t rule_count;

    struct size_rule size[SIZE_RULES_MAX]; /* sorted by subject, number and rule */
    size_t size_count;

    rule_id curve[CURVES];
    rule_id spelled_out[CURVES]; /* explicit parameters with the order of that curve */
    rule_id any_curve;           /* the first rule about curves or their sizes */
    rule_id parameter_set[PARAMETER_SETS];

    unsigned keyed_sizes; /* bits of enum key_size_from: some rule looks at such keys */
    bool audit;
};

static inline const struct rule *rule_at(const struct policy *policy, rule_id id)
{
    return &policy->rule[id - 1];
}

static inline const struct policy_rule *shown(const struct policy *policy, rule_id id)
{
    return id == NO_RULE ? NULL : &rule_at(policy, id)->shown;
}

static inline void earlier_rule(rule_id *rule, rule_id other)
{
    if (*rule == NO_RULE || (other != NO_RULE && other < *rule))
        *rule = other;
}

/* Build from the rules what is looked at later. 0 or a negative errno value, with a message. */
int build_verdicts(struct policy *policy, struct report *report);
int build_key_rules(struct policy *policy, struct report *report);

#endif
