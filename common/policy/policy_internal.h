/* policy_internal.h - what a compiled policy is made of; for policy*.c only. */
#ifndef P11_PROXY_POLICY_INTERNAL_H
#define P11_PROXY_POLICY_INTERNAL_H

#include "policy/policy.h"
#include "policy/policy_names.h"
#include "policy/policy_parse.h"

/* Standard mechanism numbers end far below (0x403a in PKCS#11 3.2); others go through a hash. */
#define STANDARD_NUMBERS 0x8000u

enum effect {
    EFFECT_DENIES,       /* mechanisms, curves or parameter sets */
    EFFECT_SIZES,        /* keys of some sizes */
    EFFECT_WORD,         /* none: a word of TLS or of certificates */
    EFFECT_CERTIFICATES, /* none: its condition is about certificates */
    EFFECT_LATER,        /* none yet: its date is to come */
    EFFECT_NO_SIZE,      /* none: no size meets its conditions */
    EFFECT_NOTHING,      /* none: made of known names, but no mechanism is */
    EFFECT_UNKNOWN,      /* none: unknown name in a file */
    EFFECT_REPEATED,     /* none of its own: an earlier rule says it */
};

struct rule {
    struct policy_rule shown;
    enum effect effect;
    name_id name;        /* NO_NAME: a number that is in no table */
    uint64_t number;     /* then this one */
    uint32_t first_span; /* in policy->said, if it is about sizes */
    uint32_t span_count;
    uint32_t repeats; /* the earlier rule */
};

/* Rules are told by 1 + their index, 0 being none. */
typedef uint32_t rule_id;
#define NO_RULE 0u

struct rule_span {
    struct size_span bits;
    rule_id rule;
};

/*
 * What one name or number has of size rules: a stretch of policy->span, in order, apart from each
 * other.
 */
struct subject {
    uint32_t first, count;
};

/* A mechanism or key type, and a subject that speaks of it. */
struct subject_of {
    uint64_t number;
    uint32_t subject;
};

struct denied {
    uint64_t number;
    rule_id rule;
};

struct text_block;

struct policy {
    uint64_t standard[STANDARD_NUMBERS / 64]; /* a bit set: denied */

    struct denied *other; /* hash of the denied numbers beyond, NO_RULE: free place */
    uint64_t other_mask;

    struct denied *denied; /* all that are denied, sorted by number */
    size_t denied_count;

    struct names *names;
    struct rule *rule;
    size_t rule_count, rule_room;

    struct rule_span *said; /* the sizes as the rules have them, for printing */
    size_t said_count, said_room;
    struct rule_span *span;
    size_t span_count;
    struct subject *subject;
    size_t subject_count;
    struct subject_of *key_type; /* sorted by number, as is the next */
    size_t key_type_count;
    struct subject_of *mechanism;
    size_t mechanism_count;

    rule_id *curve;         /* a rule for each row of curves, or NO_RULE */
    rule_id *parameter_set; /* the same for parameter_sets */

    struct text_block *text;
    bool has_key_rules;
    bool audit;
};

/* What a name's group is denied by while a policy is compiled, beside names->entry. */
struct group_rules {
    rule_id named;  /* a rule has this name: what a name check asks */
    rule_id denies; /* the same, but without rules that mean TLS only: what mechanisms ask */
    bool warned;    /* of it as an unknown name */
};

static inline const struct policy_rule *shown(const struct policy *policy, rule_id rule)
{
    return rule == NO_RULE ? NULL : &policy->rule[rule - 1].shown;
}

/*
 * A copy of text with runs of white space made one blank and none at either end, with a final NUL.
 * Belongs to the policy. NULL if there is no memory.
 */
char *policy_text(struct policy *policy, const char *text, size_t len);

/* Builds from names and rules what is looked at later: verdicts, sizes, names. 0 or -ENOMEM. */
int policy_build_verdicts(struct policy *policy, const struct group_rules *group);
int policy_build_sizes(struct policy *policy);
void policy_build_names(struct policy *policy, const struct group_rules *group);

#endif
