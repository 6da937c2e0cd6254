/* verdict.c - what the policy in force says of one name that a person typed. */
#include "policy/verdict.h"

#include <string.h>

/* Numbers of key types. */
enum { EC = 0x03, EDWARDS = 0x40, MONTGOMERY = 0x41 };

/* Whether one of a row's names is the name, or a synonym of it. */
static bool stands_for(const struct names *names, const char *text, const char *row_names)
{
    return names_stand_for(names, names->name[names_find(names, text, strlen(text))].group,
                           row_names);
}

static const struct policy_rule *
rule_of_curve(const struct policy *policy, const struct names *names, const char *text, bool *found)
{
    const struct policy_rule *rule = NULL;

    for (size_t i = 0; i < CURVES && rule == NULL; i++) {
        const char *name = curves[i].names;
        if (!stands_for(names, text, name) && !has_name(curves[i].oids, text, strlen(text)))
            continue;
        uint64_t type = same_text(name, "Ed", 2)                               ? EDWARDS
                        : same_text(name, "X2", 2) || same_text(name, "X4", 2) ? MONTGOMERY
                                                                               : EC;
        struct key_info key = key_info_of(key_type_find(type));
        key.curve = &curves[i];
        key.has_params = true;
        key.bits = curve_bits(&curves[i]);
        rule = policy_key(policy, NO_MECHANISM, &key, NULL);
        *found = true;
    }
    return rule;
}

static const struct policy_rule *rule_of_set(const struct policy *policy, const char *text,
                                             bool *found)
{
    for (size_t i = 0; i < PARAMETER_SETS; i++) {
        if (!has_name(parameter_sets[i].name, text, strlen(text)))
            continue;
        struct key_info key = key_info_of(key_type_find(parameter_sets[i].key_type));
        key.set = parameter_sets[i].number;
        *found = true;
        return policy_key(policy, NO_MECHANISM, &key, NULL);
    }
    return NULL;
}

/* The mechanisms that a name stands for, looked at one by one. REFUSED if all of them are. */
struct tally {
    size_t mechanisms, refused;
};

static void look_at(struct verdict_of_name *out, struct tally *tally, const struct policy *policy,
                    uint64_t mechanism)
{
    unsigned denied = policy_denied_uses(policy, mechanism);
    uint64_t bits = policy_min_key_bits(policy, mechanism);
    const struct policy_rule *rule = NULL;

    out->min_key_bits = tally->mechanisms++ == 0 || bits == out->min_key_bits ? bits : 0;
    for (int use = 0; use < USES && rule == NULL; use++)
        rule = policy_mechanism(policy, mechanism, (enum mechanism_use)use);
    tally->refused += denied == FOR_ANY;
    if (rule == NULL || out->exceptions == EXCEPTIONS_MOST)
        return;
    out->exception[out->exceptions].mechanism = mechanism;
    out->exception[out->exceptions].uses = denied;
    out->exception[out->exceptions++].rule = rule;
}

/* The verdict on what a name stands for by itself; false if it stands for nothing in the tables. */
static bool find_rows(struct verdict_of_name *out, const struct policy *policy,
                      const struct names *names, const char *text)
{
    struct tally tally = {0, 0};
    bool found = false;
    uint64_t number;

    *out = (struct verdict_of_name){.verdict = VERDICT_PERMITTED};
    if (item_number(text, strlen(text), &number) == NUMBER_RIGHT)
        look_at(out, &tally, policy, number);
    for (size_t i = 0; i < MECHANISMS; i++)
        if (stands_for(names, text, mechanisms[i].names))
            look_at(out, &tally, policy, mechanisms[i].number);
    out->rule = rule_of_curve(policy, names, text, &found);
    if (out->rule == NULL)
        out->rule = rule_of_set(policy, text, &found);
    if (out->rule == NULL && tally.refused != 0 && tally.refused == tally.mechanisms)
        out->rule = out->exception[0].rule;
    if (out->rule != NULL) {
        out->verdict = VERDICT_REFUSED;
        out->exceptions = 0;
        out->min_key_bits = 0;
    }
    return found || tally.mechanisms != 0;
}

/* A combination that no mechanism is ("MD5withECDSA") is refused if one of its parts is. */
static void find_parts(struct verdict_of_name *out, const struct policy *policy,
                       const struct names *names, const char *text)
{
    struct name_parts parts = {text, text + strlen(text)};
    struct verdict_of_name of_part = {.verdict = VERDICT_PERMITTED};
    const char *at;
    char part[64];
    size_t len;

    while (of_part.verdict != VERDICT_REFUSED && next_part(&parts, &at, &len)) {
        snprintf(part, sizeof part, "%.*s", (int)len, at);
        find_rows(&of_part, policy, names, part);
    }
    if (of_part.verdict == VERDICT_REFUSED)
        *out = of_part;
}

void verdict_find(struct verdict_of_name *out, const struct policy *policy,
                  const struct names *names, const char *text)
{
    const struct policy_rule *listed = policy_listed(policy, text);
    bool found = find_rows(out, policy, names, text);

    if (!found && listed == NULL && !names_is_known(names, text, strlen(text))) {
        out->verdict = VERDICT_UNKNOWN;
        out->nearest = names_nearest(names, text);
        return;
    }
    if (!found && listed == NULL)
        find_parts(out, policy, names, text);
    if (out->verdict == VERDICT_PERMITTED && listed != NULL) {
        out->rule = listed;
        if (policy_no_effect(listed) != NULL)
            out->verdict = VERDICT_NO_EFFECT;
    }
}
