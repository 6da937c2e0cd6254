/* verdict.c - what is denied: noted of each mechanism, key type, curve and parameter set once, and looked up. */
#include "policy/internal.h"

#include <string.h>

struct row *rule_next_row(const struct names *names, const struct rule *rule, uint32_t *link)
{
    const struct name *group = &names->name[rule->group];
    struct row *row;
    bool has_sizes = rule->has_sizes;
    uint32_t first = 0;
    bool of_types = (row = next_row(names, group, &first)) != NULL && row->kind == A_KEY_TYPE;

    while ((row = next_row(names, group, link)) != NULL) {
        switch (row->kind) {
        case A_KEY_TYPE:
            if (has_sizes)
                return row;
            break;
        case A_MECHANISM: /* a rule about the size of a type's keys says nothing of its mechanisms */
            if (has_sizes ? !of_types : row->uses & rule->uses)
                return row;
            break;
        case A_CURVE:
            if (sizes_deny(&rule->sizes, curve_bits(&curves[row->number])))
                return row;
            break;
        default:
            if (!has_sizes)
                return row;
        }
    }
    return NULL;
}

static void deny(struct policy *policy, struct row *row, unsigned uses, const struct rule *rule)
{
    struct policy_counts *counts = &policy->counts;
    bool is_new = true;

    for (int use = 0; use < USES; use++) {
        is_new = is_new && row->rule[use] == NULL;
        if (uses >> use & 1 && row->rule[use] == NULL)
            row->rule[use] = &rule->shown;
    }
    *(row->kind == A_MECHANISM ? &counts->mechanisms
      : row->kind == A_CURVE   ? &counts->curves
                               : &counts->parameter_sets) += is_new;
    if (row->kind == A_MECHANISM && row->number < STANDARD_NUMBERS)
        policy->standard[row->number] |= (uint8_t)uses;
}

bool verdicts_add(struct policy *policy, const struct rule *rule)
{
    struct row *row;

    for (uint32_t link = 0; (row = rule_next_row(policy->names, rule, &link)) != NULL;) {
        bool is_mechanism = row->kind == A_MECHANISM;
        if (!rule->has_sizes || row->kind == A_CURVE) {
            deny(policy, row, is_mechanism ? rule->uses : FOR_ANY, rule);
        } else {
            if (policy->size_count == SIZE_RULES_MAX)
                return false;
            policy->size[++policy->size_count] = (struct size_rule){rule, row->last_size};
            row->last_size = policy->size_count;
        }
        if (is_mechanism && !rule->has_sizes)
            continue;
        policy->keyed_sizes |= 1u << row->size_from;
        if (row->size_from != SIZE_ORDER && row->size_from != SIZE_CURVE)
            continue;
        policy->keyed_sizes |= 1u << SIZE_ORDER | 1u << SIZE_CURVE;
        if (policy->any_curve == NULL)
            policy->any_curve = &rule->shown;
    }
    return true;
}

void verdicts_end(struct policy *policy)
{
    for (const struct mechanism *row = mechanisms; row < mechanisms + mechanism_count; row++) {
        bool any_key = (row->size_from == SIZE_NONE || row->size_from == SIZE_OTHER) &&
                       row->uses != FOR_DIGEST;
        if (row->number >= STANDARD_NUMBERS)
            continue;
        if (row->more != MORE_NONE)
            policy->standard[row->number] |= LOOKS_AT_PARAMETER;
        if (policy->keyed_sizes != 0 && (any_key || policy->keyed_sizes >> row->size_from & 1))
            policy->standard[row->number] |= LOOKS_AT_KEYS;
    }
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
    return names_row(policy->names, A_MECHANISM, number)->rule[use];
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

bool policy_looks_at_keys_of(const struct policy *policy, uint64_t mechanism)
{
    return mechanism < STANDARD_NUMBERS ? (policy->standard[mechanism] & LOOKS_AT_KEYS) != 0
                                        : policy->keyed_sizes != 0;
}

/* The first rule that denies keys of that many bits and of a type (NULL: of any) to a mechanism. */
static const struct rule *rule_of_size(const struct policy *policy, uint64_t mechanism,
                                       const struct key_type *type, uint64_t bits)
{
    uint64_t type_number = type != NULL ? type->number : UINT64_MAX;
    const struct row *rows[] = {names_row(policy->names, A_KEY_TYPE, type_number),
                                names_row(policy->names, A_MECHANISM, mechanism)};
    const struct rule *first = NULL;

    for (int i = 0; i < 2 && first == NULL; i++)
        for (uint32_t at = rows[i]->last_size; at != 0; at = policy->size[at].before)
            if (bits == 0 || sizes_deny(&policy->size[at].rule->sizes, bits))
                first = policy->size[at].rule;
    return first;
}

/* The first rule that denies the key's curve, or a curve that is not known. */
static const struct policy_rule *rule_of_curve(const struct policy *policy,
                                               const struct key_info *key)
{
    const struct policy_rule *first = NULL;

    if (!key->has_params || key->type == NULL ||
        (key->type->size_from != SIZE_ORDER && key->type->size_from != SIZE_CURVE))
        return NULL;
    if (key->curve == NULL)
        return policy->any_curve;
    for (size_t i = 0; i < curve_count; i++) {
        /* Spelled out, a curve cannot be told from its twin of the same order. */
        if (&curves[i] != key->curve &&
            !(key->spelled_out && strcmp(curves[i].order, key->curve->order) == 0))
            continue;
        const struct policy_rule *rule = names_row(policy->names, A_CURVE, i)->rule[0];
        if (rule != NULL && (first == NULL || rule < first))
            first = rule;
    }
    return first;
}

const struct policy_rule *policy_key(const struct policy *policy, uint64_t mechanism,
                                     const struct key_info *key, bool *is_curve)
{
    bool is_asked = policy != NULL && policy->keyed_sizes != 0;
    const struct policy_rule *rule = is_asked ? rule_of_curve(policy, key) : NULL;
    const struct rule *of_size = NULL;

    if (is_curve != NULL)
        *is_curve = rule != NULL;
    if (rule != NULL || !is_asked)
        return rule;
    uint64_t bits = key->type != NULL && key->type->bits != 0 ? key->type->bits : key->bits;
    if (bits != BITS_UNKNOWN)
        of_size = rule_of_size(policy, mechanism, key->type, bits);
    if (of_size != NULL)
        return &of_size->shown;
    if (key->type == NULL || key->set > UINT32_MAX)
        return NULL;
    return names_row(policy->names, A_PARAMETER_SET, key->type->number << 32 | key->set)->rule[0];
}

/* The smallest size that is left to the mechanism with keys of one type, or with any (NULL). */
static uint64_t smallest(const struct policy *policy, uint64_t mechanism,
                         const struct key_type *type)
{
    const struct rule *rule;
    uint64_t bits = 1;

    if (type != NULL && type->bits != 0) /* no key is smaller or larger */
        return rule_of_size(policy, mechanism, type, type->bits) != NULL ? BITS_UNKNOWN : 1;
    while (bits != BITS_UNKNOWN && (rule = rule_of_size(policy, mechanism, type, bits)) != NULL)
        bits = rule->sizes.but > bits && rule->sizes.but < rule->sizes.end ? rule->sizes.but
                                                                           : rule->sizes.end;
    return bits;
}

/* Whether keys of a type are those that a mechanism uses. */
static bool uses_type(const struct mechanism *row, const struct key_type *type)
{
    const char *name = NULL;
    size_t len;

    while (type->size_from == row->size_from && next_name(type->names, &name, &len))
        if (has_name(row->names, name, len))
            return true;
    return false;
}

uint64_t policy_min_key_bits(const struct policy *policy, uint64_t mechanism)
{
    const struct mechanism *row = mechanism_find(mechanism);
    uint64_t min = BITS_UNKNOWN;
    bool any = false;

    if (policy == NULL || policy->size_count == 0)
        return 0;
    for (size_t i = 0; row != NULL && i < key_type_count; i++) {
        if (!uses_type(row, &key_types[i]))
            continue;
        uint64_t bits = smallest(policy, mechanism, &key_types[i]);
        min = bits < min ? bits : min;
        any = true;
    }
    if (!any)
        min = smallest(policy, mechanism, NULL);
    return min == 1 ? 0 : min;
}
