/* print.c - a policy as text, for people and for comparing. */
#include "policy/internal.h"

#include <inttypes.h>
#include <string.h>

enum { NAME_BYTES = 64, MARGIN = 100 };
#define INDENT "    "

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

enum table { MECHANISM_ROWS, KEY_TYPE_ROWS, CURVE_ROWS, PARAMETER_SET_ROWS };

/* The names of a row that a rule is about; NULL: another row; *end: there is none. */
static const char *names_of_row(const struct policy *policy, const struct rule *rule,
                                enum table table, size_t row, bool *end)
{
    static const size_t counts[] = {MECHANISMS, KEY_TYPES, CURVES, PARAMETER_SETS};
    const char *names = NULL;

    *end = row >= counts[table];
    if (*end || (table == MECHANISM_ROWS && !(mechanisms[row].uses & rule->uses)))
        return NULL;
    names = table == MECHANISM_ROWS  ? mechanisms[row].names
            : table == KEY_TYPE_ROWS ? key_types[row].names
            : table == CURVE_ROWS    ? curves[row].names
                                     : parameter_sets[row].name;
    return names_stand_for(policy->names, rule->group, names) ? names : NULL;
}

/* The first names of all such rows behind a title, broken into lines; false if there are none. */
static bool put_rows(const struct policy *policy, const struct rule *rule, enum table table,
                     const char *title, FILE *out)
{
    const char *last = "";
    size_t at = 0;
    bool end = false;

    for (size_t row = 0; !end; row++) {
        const char *names = names_of_row(policy, rule, table, row, &end);
        size_t len = names != NULL ? strcspn(names, "|") : 0;
        /* Some key types have the same name. */
        if (names == NULL || (strcspn(last, "|") == len && strncmp(last, names, len) == 0))
            continue;
        at += (size_t)(at == 0 ? fprintf(out, INDENT "%s", title) : fprintf(out, ","));
        if (at + 1 + len >= MARGIN)
            at = (size_t)fprintf(out, "\n" INDENT INDENT) - 1;
        else
            at += (size_t)fprintf(out, " ");
        at += (size_t)fprintf(out, "%.*s", (int)len, names);
        last = names;
    }
    if (at != 0)
        putc('\n', out);
    return at != 0;
}

static void put_sizes(const struct rule *rule, FILE *out)
{
    struct item item;

    item_parse(&item, rule->shown.text);
    fputs(INDENT "denies keys of", out);
    for (size_t i = 0; i < item.denied_count; i++) {
        const struct size_range *range = &item.denied[i];
        fputs(i == 0 ? " " : ", ", out);
        if (range->from == range->to)
            fprintf(out, "%" PRIu64, range->from);
        else if (range->to == LARGEST_SIZE)
            fprintf(out, "%" PRIu64 " and more", range->from);
        else
            fprintf(out, "%" PRIu64 " to %" PRIu64, range->from, range->to);
    }
    fputs(" bits\n", out);
}

static const char *use_of(const struct rule *rule)
{
    switch (rule->uses) {
    case FOR_DIGEST:
        return "denies as digest";
    case FOR_SIGN:
        return "denies for signatures";
    case FOR_CIPHER:
        return "denies for encryption";
    default:
        return "denies";
    }
}

static void put_rule(const struct policy *policy, const struct rule *rule, FILE *out)
{
    char name[NAME_BYTES];

    putc('\n', out);
    policy_print_rule(&rule->shown, out);
    putc('\n', out);

    if (rule->no_effect != NULL) {
        fprintf(out, INDENT "no effect: %s\n", rule->no_effect);
        return;
    }
    uint64_t number = policy->names->name[rule->group].number;
    if (rule->has_sizes)
        put_sizes(rule, out);
    if ((!rule->has_sizes || !put_rows(policy, rule, KEY_TYPE_ROWS, "of type", out)) &&
        !put_rows(policy, rule, MECHANISM_ROWS, rule->has_sizes ? "with" : use_of(rule), out) &&
        number != NO_MECHANISM)
        fprintf(out, INDENT "%s %s\n", rule->has_sizes ? "with" : use_of(rule),
                mechanism_name(number, name, sizeof name));
    put_rows(policy, rule, CURVE_ROWS, rule->has_sizes ? "on curve" : "denies curve", out);
    put_rows(policy, rule, PARAMETER_SET_ROWS, "denies parameter set", out);
}

void policy_print(const struct policy *policy, FILE *out)
{
    struct policy_counts counts;

    if (policy == NULL) {
        fputs("policy: none\n", out);
        return;
    }
    policy_count(policy, &counts);
    fprintf(out,
            "policy: %s\nitems: %zu\nwithout effect: %zu\ndenied mechanisms: %zu\n"
            "denied curves: %zu\nkey-size rules: %zu\n",
            policy->audit ? "audit" : "enforce", counts.items, counts.no_effect, counts.mechanisms,
            counts.curves, counts.size_rules);
    for (size_t i = 0; i < policy->rule_count; i++)
        put_rule(policy, &policy->rule[i], out);
}
