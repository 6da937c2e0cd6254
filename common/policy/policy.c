/* policy.c - the questions that are asked on calls. */
#include "policy/policy.h"

#include <string.h>

#include "policy/policy_fold.h"
#include "policy/policy_internal.h"

bool policy_is_audit(const struct policy *policy)
{
    return policy && policy->audit;
}

size_t policy_rules_count(const struct policy *policy)
{
    return policy ? policy->rule_count : 0;
}

const struct policy_rule *policy_rule(const struct policy *policy, size_t index)
{
    return index < policy_rules_count(policy) ? &policy->rule[index].shown : NULL;
}

/* Only for what is denied, which need not be as fast. */
__attribute__((noinline)) static const struct policy_rule *denying_rule(const struct policy *policy,
                                                                        uint64_t number)
{
    size_t from = 0, to = policy->denied_count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (policy->denied[middle].number < number)
            from = middle + 1;
        else
            to = middle;
    }
    return shown(policy, policy->denied[from].rule);
}

static const struct policy_rule *other_mechanism(const struct policy *policy, uint64_t number)
{
    uint64_t at = (number * 0x9e3779b97f4a7c15u >> 32) & policy->other_mask;

    for (; policy->other[at].rule != NO_RULE; at = (at + 1) & policy->other_mask) {
        if (policy->other[at].number == number)
            return shown(policy, policy->other[at].rule);
    }
    return NULL;
}

const struct policy_rule *policy_mechanism(const struct policy *policy, uint64_t number)
{
    if (!policy)
        return NULL;
    if (number >= STANDARD_NUMBERS)
        return other_mechanism(policy, number);
    if (!(policy->standard[number / 64] >> number % 64 & 1))
        return NULL;
    return denying_rule(policy, number);
}

const struct policy_rule *policy_curve(const struct policy *policy, const uint8_t *params,
                                       size_t params_bytes)
{
    if (!policy || !policy->has_key_rules)
        return NULL;

    const struct curve *curve = curve_params_read(params, params_bytes).curve;
    return curve ? shown(policy, policy->curve[curve - curves]) : NULL;
}

const struct policy_rule *policy_parameter_set(const struct policy *policy, uint64_t key_type,
                                               uint64_t set)
{
    for (size_t i = 0; policy && i < parameter_sets_count; i++) {
        if (parameter_sets[i].key_type == key_type && parameter_sets[i].number == set)
            return shown(policy, policy->parameter_set[i]);
    }
    return NULL;
}

const struct policy_rule *policy_digest_info(const struct policy *policy, const uint8_t *data,
                                             size_t data_bytes)
{
    if (!policy || policy->denied_count == 0)
        return NULL;

    const struct digest *digest = digest_info_find(data, data_bytes);
    if (!digest)
        return NULL;
    const struct policy_rule *rule = policy_mechanism(policy, digest->mechanism);
    return rule ? rule : policy_mechanism(policy, digest->rsa_mechanism);
}

/*
 * Whether a name of less than eight bytes is surely one part: no '/', no 'n' behind 'i' or 'a', no
 * "wi". One that is unknown need not be looked through letter by letter then.
 */
static bool is_one_part(uint64_t start, size_t len)
{
    uint64_t i = fold_bytes_equal(start, 'i');
    uint64_t in_an = (i | fold_bytes_equal(start, 'a')) << 8 & fold_bytes_equal(start, 'n');
    uint64_t wi = fold_bytes_equal(start, 'w') << 8 & i;

    return len < FOLD_BYTES && (in_an | wi | fold_bytes_equal(start, '/')) == 0;
}

__attribute__((noinline)) static const struct policy_rule *by_parts(const struct policy *policy,
                                                                    const char *name, size_t len)
{
    struct name_parts parts = {name, len};
    const char *part;
    size_t part_len;
    uint64_t number;

    if (item_number(name, len, &number) == NUMBER_RIGHT)
        return policy_mechanism(policy, number);
    while (name_parts_next(&parts, &part, &part_len)) {
        name_id found = names_find(policy->names, part, part_len);
        if (found != NO_NAME && policy->names->entry[found].verdict != NO_RULE)
            return shown(policy, policy->names->entry[found].verdict);
    }
    return NULL;
}

const struct policy_rule *policy_name(const struct policy *policy, const char *name)
{
    if (!policy)
        return NULL;

    size_t len = strlen(name);
    uint64_t start = fold_start(name, len);
    name_id found = names_find_from(policy->names, start, name, len);
    if (found != NO_NAME)
        return shown(policy, policy->names->entry[found].verdict);
    if ((uint8_t)(name[0] - '0') > 9 && is_one_part(start, len))
        return NULL;
    return by_parts(policy, name, len);
}
