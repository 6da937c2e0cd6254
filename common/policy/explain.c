/* explain.c - a policy for people: what it says of a name, and the whole of it as text. */
#include "policy/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 64 };

/* The rule that denies a mechanism to any use, a curve or a parameter set; NULL if none does. */
static const struct policy_rule *rule_of_row(const struct policy *policy, const struct row *row)
{
    enum { EC = 0x03, EDWARDS = 0x40, MONTGOMERY = 0x41 };
    const struct policy_rule *rule = NULL;

    for (int use = 0; use < USES && rule == NULL; use++)
        rule = row->rule[use];
    if (rule != NULL || row->kind != A_CURVE)
        return rule;
    const struct curve *curve = &curves[row->number];
    bool is_edwards = same_text(curve->names, "Ed", 2);
    bool is_montgomery = same_text(curve->names, "X25519", 6) || same_text(curve->names, "X448", 4);
    struct key_info key = key_info_of(key_type_find(is_edwards      ? EDWARDS
                                                    : is_montgomery ? MONTGOMERY
                                                                    : EC));
    key.bits = curve_bits(curve);
    return policy_key(policy, NO_MECHANISM, &key, NULL);
}

const struct policy_rule *policy_name(const struct policy *policy, const char *name)
{
    size_t len = strlen(name), part_len;
    struct name_parts parts = {name, name + len};
    const char *part;
    uint32_t link = 0;

    if (policy == NULL)
        return NULL;
    const struct names *names = policy->names;
    name_id whole = names_find(names, name, len);
    const struct name *group = names_group(names, whole);
    const struct policy_rule *rule = group->decides;
    const struct row *row = rule == NULL ? next_row(names, group, &link) : NULL;
    if (row != NULL && row->kind == A_MECHANISM &&
        (row->name == whole || same_text(name, "CKM_", 4)))
        rule = rule_of_row(policy, row);
    while (rule == NULL && next_part(&parts, &part, &part_len) && part_len < len)
        rule = names_group(names, names_find(names, part, part_len))->decides;
    return rule;
}

/* The verdict on the rows that a name stands for by itself: refused if nothing of it is left. */
static void ask_rows(struct policy_answer *answer, const struct policy *policy,
                     const struct names *names, const struct name *group)
{
    const struct row *row;
    size_t count = 0, refused = 0;

    *answer = (struct policy_answer){.verdict = POLICY_PERMITS};
    for (uint32_t link = 0; (row = next_row(names, group, &link)) != NULL;) {
        const struct policy_rule *rule = rule_of_row(policy, row);
        if (row->kind != A_MECHANISM) {
            answer->rule = answer->rule == NULL ? rule : answer->rule;
            continue;
        }
        uint64_t bits = policy_min_key_bits(policy, row->number);
        answer->min_key_bits = count++ == 0 || bits == answer->min_key_bits ? bits : 0;
        refused += policy_denied_uses(policy, row->number) == FOR_ANY;
        if (rule != NULL && answer->exception_count < POLICY_EXCEPTIONS_MAX)
            answer->exceptions[answer->exception_count++] =
                (struct policy_exception){row->number, rule};
    }
    if (answer->rule == NULL && refused == count && count > 0)
        answer->rule = answer->exceptions[0].rule;
    if (answer->rule != NULL)
        *answer = (struct policy_answer){.verdict = POLICY_REFUSES, .rule = answer->rule};
}

int policy_ask(const struct policy *policy, const char *text, struct policy_answer *answer)
{
    struct names *made = policy == NULL ? names_create(/* more= */ 0) : NULL;
    const struct names *names = policy == NULL ? made : policy->names;
    size_t len = strlen(text);
    struct name_parts parts = {text, text + len};
    const char *part;
    uint64_t number;

    if (names == NULL)
        return -ENOMEM;
    const struct name *group = names_group(names, names_find(names, text, len));
    const struct policy_rule *listed = group->listed;
    bool is_known = group->first_link != 0 || listed != NULL || names_is_known(names, text, len) ||
                    (read_number(text, len, &number) && number != NO_MECHANISM);
    ask_rows(answer, policy, names, group);
    /* A combination that no mechanism is ("MD5withECDSA") is refused if one of its parts is. */
    if (group->first_link == 0 && listed == NULL && is_known) {
        while (answer->verdict != POLICY_REFUSES && next_part(&parts, &part, &len))
            ask_rows(answer, policy, names, names_group(names, names_find(names, part, len)));
        if (answer->verdict != POLICY_REFUSES)
            *answer = (struct policy_answer){.verdict = POLICY_PERMITS};
    }
    if (!is_known) {
        const struct name *nearest = names_nearest(names, text);
        answer->verdict = POLICY_UNKNOWN;
        answer->nearest = nearest != NULL ? nearest->text : NULL;
    } else if (answer->verdict == POLICY_PERMITS && listed != NULL) {
        answer->rule = listed;
        answer->verdict = listed->no_effect != NULL ? POLICY_NO_EFFECT : POLICY_PERMITS;
    }
    free(made);
    return 0;
}

const struct policy_rule *policy_rule(const struct policy *policy, size_t index)
{
    return policy != NULL && index < policy->rule_count ? &policy->rule[index].shown : NULL;
}

struct policy_counts policy_count(const struct policy *policy)
{
    return policy != NULL ? policy->counts : (struct policy_counts){0};
}

/* Text of a list as a terminal may see it. */
static void put_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        putc(*text >= ' ' && *text <= '~' ? *text : '?', out);
}

void policy_print_rule(const struct policy_rule *rule, FILE *out)
{
    put_text(out, rule->file);
    fprintf(out, ":%u: ", rule->line);
    if (rule->key != NULL) {
        put_text(out, rule->key);
        fputs(": ", out);
    }
    put_text(out, rule->text);
}

/* What a rule denies, each kind of row in a line. */
static void put_denied(const struct policy *policy, const struct rule *rule, FILE *out)
{
    static const char *const titles[] = {"of type ", "", "curve ", "parameter set "};
    const char *use = rule->uses == FOR_DIGEST   ? "as digest "
                      : rule->uses == FOR_SIGN   ? "for signatures "
                      : rule->uses == FOR_CIPHER ? "for encryption "
                                                 : "";
    const struct row *row, *last = NULL;
    char text[NAME_BYTES], before[NAME_BYTES] = "";

    for (uint32_t link = 0; (row = rule_next_row(policy->names, rule, &link)) != NULL; last = row) {
        const struct name *name = &policy->names->name[row->name];
        if (row->kind == A_MECHANISM)
            mechanism_name(row->number, text, sizeof text);
        else
            snprintf(text, sizeof text, "%.*s", (int)name->len, name->text);
        if (last == NULL || last->kind != row->kind)
            fprintf(out, "%s    denies %s%s%s%s", last != NULL ? "\n" : "",
                    rule->has_sizes ? "such keys " : "", titles[row->kind],
                    row->kind == A_MECHANISM ? use : "", text);
        else if (strcmp(text, before) != 0) /* some key types have the same name */
            fprintf(out, ", %s", text);
        strcpy(before, text);
    }
    putc('\n', out);
}

void policy_print(const struct policy *policy, FILE *out)
{
    const struct policy_counts counts = policy_count(policy);

    if (policy == NULL) {
        fputs("policy: none\n", out);
        return;
    }
    fprintf(out,
            "policy: %s\nitems: %zu\nwithout effect: %zu\ndenied mechanisms: %zu\n"
            "denied curves: %zu\nkey-size rules: %zu\n",
            policy->audit ? "audit" : "enforce", counts.items, counts.no_effect, counts.mechanisms,
            counts.curves, counts.size_rules);
    for (const struct rule *rule = policy->rule; rule < policy->rule + policy->rule_count; rule++) {
        putc('\n', out);
        policy_print_rule(&rule->shown, out);
        putc('\n', out);
        if (rule->shown.no_effect != NULL)
            fprintf(out, "    no effect: %s\n", rule->shown.no_effect);
        else
            put_denied(policy, rule, out);
    }
}
