/* print.c - a policy as text, for people and for comparing. */
#include "policy/internal.h"

#include <string.h>

enum { NAME_BYTES = 64 };

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
        if (row->kind == A_MECHANISM)
            mechanism_name(row->number, text, sizeof text);
        else
            snprintf(text, sizeof text, "%.*s", (int)strcspn(row->names, "|"), row->names);
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
    struct policy_counts counts;

    policy_count(policy, &counts);
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
