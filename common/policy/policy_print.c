/* policy_print.c - a policy as text, for people and for comparing. */
#include "policy/policy_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define NAME_BYTES 64
#define MARGIN     100
#define INDENT     "    "

/* Of effects that are none. A repeated rule is printed with more than this. */
static const char *const no_effect[] = {
    [EFFECT_WORD] = "no effect: a word of TLS or certificates",
    [EFFECT_CERTIFICATES] = "no effect: its condition is about certificates",
    [EFFECT_LATER] = "no effect yet: its date is to come",
    [EFFECT_NO_SIZE] = "no effect: no size meets its conditions",
    [EFFECT_NOTHING] = "no effect: no mechanism is this combination",
    [EFFECT_UNKNOWN] = "no effect: unknown name",
    [EFFECT_REPEATED] = "no effect of its own: an earlier rule is the same",
};

const char *policy_rule_no_effect(const struct policy *policy, size_t index)
{
    return index < policy_rules_count(policy) ? no_effect[policy->rule[index].effect] : NULL;
}

/* Text of a list as a terminal may see it. */
static void put_text(FILE *out, const char *text)
{
    for (; *text; text++)
        putc(*text >= ' ' && *text <= '~' ? *text : '?', out);
}

/* Names one after the other, broken into lines. */
struct column {
    FILE *out;
    size_t at;
    size_t count;
};

static void put_name(struct column *column, const char *name, size_t len)
{
    if (column->count++ > 0) {
        putc(',', column->out);
        column->at++;
    }
    if (column->at + 1 + len >= MARGIN) {
        fputs("\n" INDENT INDENT, column->out);
        column->at = 2 * strlen(INDENT);
    } else {
        putc(' ', column->out);
        column->at++;
    }
    fwrite(name, 1, len, column->out);
    column->at += len;
}

static struct column begin(FILE *out, const char *title)
{
    fprintf(out, INDENT "%s", title);
    return (struct column){out, strlen(INDENT) + strlen(title), 0};
}

/* The rows of one kind that a name stands for; nothing if there are none. */
static void put_rows(const struct policy *policy, const struct rule *rule, enum ref_kind kind,
                     const char *title, FILE *out)
{
    size_t count;
    const struct ref *ref = names_refs(policy->names, rule->name, &count);
    struct column column = {0};
    const char *last = "";

    for (size_t i = 0; i < count; i++) {
        const char *name;
        if (ref[i].kind != kind)
            continue;
        if (kind == REF_MECHANISM)
            name = text_at(mechanisms[ref[i].row].names);
        else if (kind == REF_CURVE)
            name = text_at(curves[ref[i].row].name);
        else if (kind == REF_PARAMETER_SET)
            name = text_at(parameter_sets[ref[i].row].name);
        else
            name = text_at(key_types[ref[i].row].names);
        size_t len = strcspn(name, "|");
        if (strcspn(last, "|") == len && strncmp(last, name, len) == 0)
            continue; /* a curve with two OIDs, the two types of DESede keys */
        if (!column.out)
            column = begin(out, title);
        put_name(&column, name, len);
        last = name;
    }
    if (column.out)
        putc('\n', out);
}

static void put_denied(const struct policy *policy, const struct rule *rule, FILE *out)
{
    char name[NAME_BYTES];

    if (rule->name == NO_NAME) {
        fprintf(out, INDENT "denies %s\n", mechanism_name(rule->number, name, sizeof name));
        return;
    }
    put_rows(policy, rule, REF_MECHANISM, "denies", out);
    put_rows(policy, rule, REF_CURVE, "denies curve", out);
    put_rows(policy, rule, REF_PARAMETER_SET, "denies parameter set", out);
}

static void put_sizes(const struct policy *policy, const struct rule *rule, FILE *out)
{
    fputs(INDENT "denies keys of", out);
    for (uint32_t i = 0; i < rule->span_count; i++) {
        const struct size_span *span = &policy->said[rule->first_span + i].bits;
        fputs(i == 0 ? " " : ", ", out);
        if (span->from == span->to)
            fprintf(out, "%" PRIu64, span->from);
        else if (span->to == LARGEST_SIZE)
            fprintf(out, "%" PRIu64 " and more", span->from);
        else
            fprintf(out, "%" PRIu64 " to %" PRIu64, span->from, span->to);
    }
    fputs(" bits\n", out);
    if (rule->name == NO_NAME) {
        char name[NAME_BYTES];
        fprintf(out, INDENT "with %s\n", mechanism_name(rule->number, name, sizeof name));
        return;
    }

    size_t count;
    const struct ref *ref = names_refs(policy->names, rule->name, &count);
    bool keys = false;
    for (size_t i = 0; i < count; i++)
        keys |= ref[i].kind == REF_KEY_TYPE;
    if (keys)
        put_rows(policy, rule, REF_KEY_TYPE, "of type", out);
    else
        put_rows(policy, rule, REF_MECHANISM, "with", out);
    put_rows(policy, rule, REF_CURVE, "on curve", out);
}

static void put_rule(const struct policy *policy, const struct rule *rule, FILE *out)
{
    put_text(out, rule->shown.file);
    fprintf(out, ":%u: ", rule->shown.line);
    if (rule->shown.key) {
        put_text(out, rule->shown.key);
        fputs(": ", out);
    }
    put_text(out, rule->shown.text);
    putc('\n', out);

    if (rule->effect == EFFECT_DENIES) {
        put_denied(policy, rule, out);
    } else if (rule->effect == EFFECT_SIZES) {
        put_sizes(policy, rule, out);
    } else if (rule->effect == EFFECT_REPEATED) {
        const struct policy_rule *first = &policy->rule[rule->repeats - 1].shown;
        fputs(INDENT "no effect of its own: the same as ", out);
        put_text(out, first->text);
        fprintf(out, " in line %u of ", first->line);
        put_text(out, first->file);
        putc('\n', out);
    } else {
        fprintf(out, INDENT "%s\n", no_effect[rule->effect]);
    }
}

int policy_print(const struct policy *policy, FILE *out)
{
    if (!policy) {
        fputs("policy: none\n", out);
        return ferror(out) ? -EIO : 0;
    }

    size_t curve_count = 0, size_rules = 0;
    for (size_t i = 0; i < curves_count; i++)
        curve_count +=
            policy->curve[i] != NO_RULE &&
            (i == 0 || strcmp(text_at(curves[i].name), text_at(curves[i - 1].name)) != 0);
    for (size_t i = 0; i < policy->rule_count; i++)
        size_rules += policy->rule[i].effect == EFFECT_SIZES;
    fprintf(
        out,
        "policy: %s\nitems: %zu\ndenied mechanisms: %zu\ndenied curves: %zu\nkey-size rules: %zu\n",
        policy->audit ? "audit" : "enforce", policy->rule_count, policy->denied_count, curve_count,
        size_rules);
    for (size_t i = 0; i < policy->rule_count; i++) {
        putc('\n', out);
        put_rule(policy, &policy->rule[i], out);
    }
    return ferror(out) ? -EIO : 0;
}
