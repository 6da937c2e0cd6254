/* verdict.c - the verdict on mechanisms and names: put together once, looked up on every call. */
#include "policy/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The bucket of a number, or the free one where it would go. */
static struct denied *denied_bucket(const struct policy *policy, uint64_t number)
{
    for (uint64_t at = number * 0x9e3779b97f4a7c15u >> 32;; at++) {
        struct denied *bucket = &policy->denied[at & policy->denied_mask];
        if (!bucket->is_taken || bucket->number == number)
            return bucket;
    }
}

/* A rule denies a mechanism; the first one that does is the one to show. */
static void deny(struct policy *policy, uint64_t number, uint8_t uses, rule_id rule)
{
    struct denied *bucket = denied_bucket(policy, number);

    policy->denied_count += !bucket->is_taken;
    bucket->is_taken = true;
    bucket->number = number;
    for (int use = 0; use < USES; use++) {
        if (!(uses >> use & 1))
            continue;
        earlier_rule(&bucket->rule[use], rule);
        if (number < STANDARD_NUMBERS)
            policy->standard[number] |= (uint8_t)(1u << use);
    }
}

/* The next rule in force under one of a row's names that is not about sizes; begin with *name NULL, *rule NO_RULE. */
static bool next_rule(const struct policy *policy, const char *names, const char **name,
                      size_t *len, rule_id *rule)
{
    if (*rule != NO_RULE)
        *rule = rule_at(policy, *rule)->next;
    for (;; *rule = rule_at(policy, *rule)->next) {
        while (*rule == NO_RULE) {
            if (!next_name(names, name, len))
                return false;
            *rule = names_group(policy->names, names_find(policy->names, *name, *len))->in_force;
        }
        if (!rule_at(policy, *rule)->has_sizes)
            return true;
    }
}

static rule_id first_rule(const struct policy *policy, const char *names)
{
    rule_id first = NO_RULE, rule = NO_RULE;
    const char *name = NULL;
    size_t len;

    while (next_rule(policy, names, &name, &len, &rule))
        earlier_rule(&first, rule);
    return first;
}

static void deny_row(struct policy *policy, const struct mechanism *row)
{
    rule_id rule = NO_RULE;
    const char *name = NULL;
    size_t len;

    if (row->more != MORE_NONE && row->number < STANDARD_NUMBERS)
        policy->standard[row->number] |= LOOKS_AT_PARAMETER;
    while (next_rule(policy, row->names, &name, &len, &rule))
        if (rule_at(policy, rule)->uses & row->uses)
            deny(policy, row->number, rule_at(policy, rule)->uses, rule);
}

int build_verdicts(struct policy *policy, struct report *report)
{
    uint64_t room = 1;

    while (room < 2 * (MECHANISMS + policy->rule_count))
        room *= 2;
    policy->denied = calloc(room, sizeof *policy->denied);
    policy->denied_mask = room - 1;
    if (policy->denied == NULL)
        return report_no_memory(report);
    for (size_t i = 0; i < MECHANISMS; i++)
        deny_row(policy, &mechanisms[i]);
    for (size_t i = 0; i < CURVES; i++)
        policy->curve[i] = first_rule(policy, curves[i].names);
    for (size_t i = 0; i < PARAMETER_SETS; i++)
        policy->parameter_set[i] = first_rule(policy, parameter_sets[i].name);
    /* Numbers that no row has. */
    for (rule_id id = 1; id <= policy->rule_count; id++) {
        const struct rule *rule = rule_at(policy, id);
        uint64_t number = policy->names->name[rule->group].number;
        if (number != NO_MECHANISM && rule->no_effect == NULL && !rule->has_sizes)
            deny(policy, number, rule->uses, id);
    }
    return 0;
}

bool policy_concerns(const struct policy *policy, uint64_t number)
{
    return number >= STANDARD_NUMBERS || policy->standard[number] != 0;
}

bool policy_is_audit(const struct policy *policy)
{
    return policy != NULL && policy->audit;
}

const struct policy_rule *policy_mechanism(const struct policy *policy, uint64_t number,
                                           enum mechanism_use use)
{
    if (policy == NULL || (number < STANDARD_NUMBERS && !(policy->standard[number] >> use & 1)))
        return NULL;
    return shown(policy, denied_bucket(policy, number)->rule[use]);
}

unsigned policy_denied_uses(const struct policy *policy, uint64_t number)
{
    const struct mechanism *row = policy != NULL ? mechanism_find(number) : NULL;
    unsigned denied = 0;

    for (int use = 0; use < USES; use++)
        if (policy_mechanism(policy, number, (enum mechanism_use)use) != NULL)
            denied |= 1u << use;
    return row != NULL && (row->uses & ~denied) == 0 ? FOR_ANY : denied;
}

const struct policy_rule *policy_digest_info(const struct policy *policy, const uint8_t *data,
                                             size_t data_bytes)
{
    const struct digest *digest =
        policy != NULL && policy->denied_count > 0 ? digest_info_find(data, data_bytes) : NULL;

    if (digest == NULL)
        return NULL;
    const struct policy_rule *rule = policy_mechanism(policy, digest->mechanism, USE_SIGN);
    return rule != NULL || digest->rsa == 0 ? rule
                                            : policy_mechanism(policy, digest->rsa, USE_SIGN);
}

/* What a whole name decides; *number is the mechanism that it is the own name of. */
static const struct policy_rule *rule_of_name(const struct policy *policy, const char *text,
                                              size_t len, uint64_t *number)
{
    name_id name = names_find(policy->names, text, len);

    *number = policy->names->name[name].number;
    return shown(policy, names_group(policy->names, name)->listed);
}

const struct policy_rule *policy_name(const struct policy *policy, const char *name)
{
    size_t len = strlen(name), part_len;
    struct name_parts parts = {name, name + len};
    const char *part;
    uint64_t number, ignored;

    if (policy == NULL)
        return NULL;
    const struct policy_rule *rule = rule_of_name(policy, name, len, &number);
    if (number == NO_MECHANISM && name[0] >= '0' && name[0] <= '9')
        (void)item_number(name, len, &number);
    for (int use = 0; use < USES && rule == NULL && number != NO_MECHANISM; use++)
        rule = policy_mechanism(policy, number, (enum mechanism_use)use);
    while (rule == NULL && next_part(&parts, &part, &part_len) && part_len < len)
        rule = rule_of_name(policy, part, part_len, &ignored);
    return rule;
}

const struct policy_rule *policy_listed(const struct policy *policy, const char *name)
{
    name_id id = policy != NULL ? names_find(policy->names, name, strlen(name)) : NO_NAME;

    for (size_t i = 0; id != NO_NAME && i < policy->rule_count; i++)
        if (policy->rule[i].group == policy->names->name[id].group)
            return &policy->rule[i].shown;
    return NULL;
}

const struct policy_rule *policy_rule(const struct policy *policy, size_t index)
{
    return policy != NULL && index < policy->rule_count ? &policy->rule[index].shown : NULL;
}

const char *policy_no_effect(const struct policy_rule *rule)
{
    return ((const struct rule *)rule)->no_effect;
}

void policy_count(const struct policy *policy, struct policy_counts *counts)
{
    *counts = (struct policy_counts){0};
    if (policy == NULL)
        return;
    counts->items = policy->rule_count;
    counts->mechanisms = policy->denied_count;
    for (size_t i = 0; i < CURVES; i++)
        counts->curves += policy->curve[i] != NO_RULE;
    for (size_t i = 0; i < PARAMETER_SETS; i++)
        counts->parameter_sets += policy->parameter_set[i] != NO_RULE;
    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct rule *rule = &policy->rule[i];
        counts->no_effect += rule->no_effect != NULL;
        counts->size_rules += rule->no_effect == NULL && rule->has_sizes;
    }
}
