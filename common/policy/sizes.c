/* sizes.c - rules about keys: sizes, curves, parameter sets. */
#include "policy/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_in(struct size_range range, uint64_t bits)
{
    return range.from <= bits && bits <= range.to;
}

/* A rule is about keys of a type or of a mechanism. False if there is no room for it. */
static bool add(struct policy *policy, const struct item *item, rule_id id,
                enum size_subject subject, uint64_t number, enum key_size_from size_from)
{
    for (size_t i = 0; i < item->denied_count; i++) {
        if (policy->size_count == SIZE_RULES_MAX)
            return false;
        policy->size[policy->size_count++] =
            (struct size_rule){subject, number, item->denied[i], id};
    }
    policy->keyed_sizes |= 1u << size_from;
    if (size_from == SIZE_ORDER || size_from == SIZE_CURVE)
        earlier_rule(&policy->any_curve, id);
    return true;
}

/* Spreads a rule over the key types that it names, or else over the mechanisms, and over the curves. */
static bool spread(struct policy *policy, rule_id id)
{
    const struct rule *rule = rule_at(policy, id);
    struct item item;
    bool ok = true;

    item_parse(&item, rule->shown.text);
    size_t before = policy->size_count;
    for (size_t i = 0; i < KEY_TYPES && ok; i++)
        if (names_stand_for(policy->names, rule->group, key_types[i].names))
            ok = add(policy, &item, id, OF_KEY_TYPE, key_types[i].number, key_types[i].size_from);
    bool names_keys = policy->size_count > before;
    for (size_t i = 0; i < MECHANISMS && ok && !names_keys; i++)
        if (names_stand_for(policy->names, rule->group, mechanisms[i].names))
            ok =
                add(policy, &item, id, OF_MECHANISM, mechanisms[i].number, mechanisms[i].size_from);
    uint64_t number = policy->names->name[rule->group].number;
    if (number != NO_MECHANISM && mechanism_find(number) == NULL)
        ok = add(policy, &item, id, OF_MECHANISM, number, SIZE_OTHER);
    for (size_t i = 0; i < CURVES; i++)
        for (size_t j = 0; j < item.denied_count; j++)
            if (is_in(item.denied[j], curve_bits(&curves[i])) &&
                names_stand_for(policy->names, rule->group, curves[i].names))
                earlier_rule(&policy->curve[i], id);
    return ok;
}

static int by_subject(const void *left, const void *right)
{
    const struct size_rule *l = left, *r = right;

    if (l->subject != r->subject)
        return l->subject < r->subject ? -1 : 1;
    if (l->number != r->number)
        return l->number < r->number ? -1 : 1;
    return l->rule < r->rule ? -1 : l->rule > r->rule;
}

/* The rule about a subject that denies this many bits; NULL if none does. 0 bits: any rule about the subject. */
static const struct size_rule *size_rule(const struct policy *policy, enum size_subject subject,
                                         uint64_t number, uint64_t bits)
{
    const struct size_rule wanted = {subject, number, {0, 0}, NO_RULE};
    size_t from = 0, to = policy->size_count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (by_subject(&policy->size[middle], &wanted) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    for (; from < policy->size_count; from++) {
        const struct size_rule *size = &policy->size[from];
        if (size->subject != subject || size->number != number)
            break;
        if (bits == 0 || is_in(size->bits, bits))
            return size;
    }
    return NULL;
}

static const struct size_rule *size_rule_of_key(const struct policy *policy, uint64_t mechanism,
                                                const struct key_type *type, uint64_t bits)
{
    const struct size_rule *rule =
        type != NULL ? size_rule(policy, OF_KEY_TYPE, type->number, bits) : NULL;
    return rule != NULL ? rule : size_rule(policy, OF_MECHANISM, mechanism, bits);
}

/* Marks the mechanisms of the standard whose keys have to be looked at. */
static void mark_keyed(struct policy *policy)
{
    for (size_t i = 0; i < MECHANISMS; i++) {
        const struct mechanism *row = &mechanisms[i];
        bool any_key = (row->size_from == SIZE_NONE || row->size_from == SIZE_OTHER) &&
                       row->uses != FOR_DIGEST;
        if (row->number < STANDARD_NUMBERS && policy->keyed_sizes != 0 &&
            (any_key || policy->keyed_sizes >> row->size_from & 1))
            policy->standard[row->number] |= LOOKS_AT_KEYS;
    }
}

int build_key_rules(struct policy *policy, struct report *report)
{
    for (rule_id id = 1; id <= policy->rule_count; id++)
        if (rule_at(policy, id)->has_sizes && rule_at(policy, id)->no_effect == NULL &&
            !spread(policy, id))
            return report_error(report, shown(policy, id), -EINVAL,
                                "is one key-size rule more than can be held");
    qsort(policy->size, policy->size_count, sizeof *policy->size, by_subject);

    for (size_t i = 0; i < CURVES; i++) {
        earlier_rule(&policy->any_curve, policy->curve[i]);
        for (size_t j = 0; j < CURVES; j++)
            if (strcmp(curves[i].order, curves[j].order) == 0)
                earlier_rule(&policy->spelled_out[i], policy->curve[j]);
    }
    if (policy->any_curve != NO_RULE)
        policy->keyed_sizes |= 1u << SIZE_ORDER | 1u << SIZE_CURVE;
    for (size_t i = 0; i < PARAMETER_SETS; i++)
        if (policy->parameter_set[i] != NO_RULE)
            policy->keyed_sizes |= 1u << SIZE_SET;
    mark_keyed(policy);
    return 0;
}

bool policy_has_key_rules(const struct policy *policy)
{
    return policy != NULL && policy->keyed_sizes != 0;
}

bool policy_looks_at_keys_of(const struct policy *policy, uint64_t mechanism)
{
    return mechanism < STANDARD_NUMBERS ? (policy->standard[mechanism] & LOOKS_AT_KEYS) != 0
                                        : policy->keyed_sizes != 0;
}

/* The rule that denies the key's curve, or a curve that is not known. */
static rule_id rule_of_curve(const struct policy *policy, const struct key_info *key)
{
    if (!key->has_params || key->type == NULL ||
        (key->type->size_from != SIZE_ORDER && key->type->size_from != SIZE_CURVE))
        return NO_RULE;
    if (key->curve == NULL)
        return policy->any_curve;
    return (key->spelled_out ? policy->spelled_out : policy->curve)[key->curve - curves];
}

static rule_id rule_of_set(const struct policy *policy, const struct key_info *key)
{
    for (size_t i = 0; i < PARAMETER_SETS && key->set != SET_UNKNOWN && key->type != NULL; i++)
        if (parameter_sets[i].key_type == key->type->number && parameter_sets[i].number == key->set)
            return policy->parameter_set[i];
    return NO_RULE;
}

const struct policy_rule *policy_key(const struct policy *policy, uint64_t mechanism,
                                     const struct key_info *key, bool *is_curve)
{
    rule_id rule = policy_has_key_rules(policy) ? rule_of_curve(policy, key) : NO_RULE;

    if (is_curve != NULL)
        *is_curve = rule != NO_RULE;
    if (!policy_has_key_rules(policy))
        return NULL;
    uint64_t bits = key->type != NULL && key->type->bits != 0 ? key->type->bits : key->bits;
    const struct size_rule *size = rule == NO_RULE && bits != BITS_UNKNOWN
                                       ? size_rule_of_key(policy, mechanism, key->type, bits)
                                       : NULL;
    if (size != NULL)
        rule = size->rule;
    return shown(policy, rule != NO_RULE ? rule : rule_of_set(policy, key));
}

/* The smallest size that is left to the mechanism with keys of one type, or with any (NULL). */
static uint64_t smallest(const struct policy *policy, uint64_t mechanism,
                         const struct key_type *type)
{
    const struct size_rule *size;
    uint64_t bits = 1;

    if (type != NULL && type->bits != 0) /* no key is smaller or larger */
        return size_rule_of_key(policy, mechanism, type, type->bits) != NULL ? BITS_UNKNOWN : 1;
    while (bits <= LARGEST_SIZE && (size = size_rule_of_key(policy, mechanism, type, bits)) != NULL)
        bits = size->bits.to + 1;
    return bits;
}

uint64_t policy_min_key_bits(const struct policy *policy, uint64_t mechanism)
{
    const struct mechanism *row = mechanism_find(mechanism);
    uint64_t min = BITS_UNKNOWN;
    bool any = false;

    if (policy == NULL || policy->size_count == 0)
        return 0;
    for (size_t i = 0; row != NULL && i < KEY_TYPES; i++) {
        const char *name = NULL;
        size_t len;
        bool same = false;
        while (key_types[i].size_from == row->size_from &&
               next_name(key_types[i].names, &name, &len))
            same = same || has_name(row->names, name, len);
        if (!same)
            continue;
        uint64_t bits = smallest(policy, mechanism, &key_types[i]);
        min = bits < min ? bits : min;
        any = true;
    }
    if (!any)
        min = smallest(policy, mechanism, NULL);
    return min == 1 ? 0 : min;
}
