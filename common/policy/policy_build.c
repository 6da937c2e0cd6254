/* policy_build.c - from rules to what is looked at on every call. */
#include "policy/policy_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Texts are many and small and go all at once: blocks of them. */
#define BLOCK_BYTES 8192u

struct text_block {
    struct text_block *next;
    size_t used, room;
    char text[];
};

static char *text_room(struct policy *policy, size_t bytes)
{
    struct text_block *block = policy->text;

    if (!block || block->room - block->used < bytes) {
        size_t room = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        block = malloc(sizeof *block + room);
        if (!block)
            return NULL;
        *block = (struct text_block){policy->text, 0, room};
        policy->text = block;
    }
    block->used += bytes;
    return block->text + block->used - bytes;
}

char *policy_text(struct policy *policy, const char *text, size_t len)
{
    char *copy = text_room(policy, len + 1), *to = copy;

    if (!copy)
        return NULL;
    for (size_t i = 0; i < len; i++) {
        bool blank = strchr(" \t\r\n\f", text[i]) != NULL;
        if (!blank)
            *to++ = text[i];
        else if (to > copy && to[-1] != ' ')
            *to++ = ' ';
    }
    if (to > copy && to[-1] == ' ')
        to--;
    *to = '\0';
    return copy;
}

void policy_free(struct policy *policy)
{
    if (!policy)
        return;
    while (policy->text) {
        struct text_block *next = policy->text->next;
        free(policy->text);
        policy->text = next;
    }
    names_free(policy->names);
    free(policy->other);
    free(policy->denied);
    free(policy->rule);
    free(policy->said);
    free(policy->span);
    free(policy->subject);
    free(policy->key_type);
    free(policy->mechanism);
    free(policy->curve);
    free(policy->parameter_set);
    free(policy);
}

static void earlier(rule_id *rule, rule_id other)
{
    if (*rule == NO_RULE || (other != NO_RULE && other < *rule))
        *rule = other;
}

static int by_number(const void *left, const void *right)
{
    const struct denied *l = left, *r = right;

    if (l->number != r->number)
        return l->number < r->number ? -1 : 1;
    return l->rule < r->rule ? -1 : l->rule > r->rule;
}

/* What names deny, spread over the rows that they stand for. */
static void spread(struct policy *policy, const struct group_rules *group, rule_id *mechanism)
{
    for (size_t i = 0; i < policy->names->ref_count; i++) {
        const struct ref *ref = &policy->names->ref[i];
        rule_id rule = group[ref->group].denies;
        if (ref->kind == REF_MECHANISM)
            earlier(&mechanism[ref->row], rule);
        else if (ref->kind == REF_CURVE)
            earlier(&policy->curve[ref->row], rule);
        else if (ref->kind == REF_PARAMETER_SET)
            earlier(&policy->parameter_set[ref->row], rule);
    }
}

static void collect_denied(struct policy *policy, const rule_id *mechanism)
{
    struct denied *denied = policy->denied;
    size_t count = 0, kept = 0;

    for (size_t i = 0; i < mechanisms_count; i++) {
        if (mechanism[i] != NO_RULE)
            denied[count++] = (struct denied){mechanisms[i].number, mechanism[i]};
    }
    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct rule *rule = &policy->rule[i];
        if (rule->name == NO_NAME && rule->effect == EFFECT_DENIES)
            denied[count++] = (struct denied){rule->number, (rule_id)i + 1};
    }
    qsort(denied, count, sizeof *denied, by_number);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || denied[kept - 1].number != denied[i].number)
            denied[kept++] = denied[i];
    }
    policy->denied_count = kept;
}

static uint64_t other_place(uint64_t number, uint64_t mask)
{
    return (number * 0x9e3779b97f4a7c15u >> 32) & mask;
}

/* A bit for each denied number of the standard, a hash with as many free places for the others. */
static int index_denied(struct policy *policy)
{
    uint64_t room = 2;

    while (room < 2 * policy->denied_count)
        room *= 2;
    policy->other = calloc(room, sizeof *policy->other);
    policy->other_mask = room - 1;
    if (!policy->other)
        return -ENOMEM;
    for (size_t i = 0; i < policy->denied_count; i++) {
        uint64_t number = policy->denied[i].number;
        if (number < STANDARD_NUMBERS) {
            policy->standard[number / 64] |= UINT64_C(1) << number % 64;
            continue;
        }
        uint64_t at = other_place(number, policy->other_mask);
        while (policy->other[at].rule != NO_RULE)
            at = (at + 1) & policy->other_mask;
        policy->other[at] = policy->denied[i];
    }
    return 0;
}

int policy_build_verdicts(struct policy *policy, const struct group_rules *group)
{
    rule_id *mechanism = calloc(mechanisms_count, sizeof *mechanism);
    policy->curve = calloc(curves_count, sizeof *policy->curve);
    policy->parameter_set = calloc(parameter_sets_count, sizeof *policy->parameter_set);
    policy->denied = calloc(mechanisms_count + policy->rule_count, sizeof *policy->denied);

    if (!mechanism || !policy->curve || !policy->parameter_set || !policy->denied) {
        free(mechanism);
        return -ENOMEM;
    }
    spread(policy, group, mechanism);
    collect_denied(policy, mechanism);
    free(mechanism);
    for (size_t i = 0; i < curves_count; i++)
        policy->has_key_rules |= policy->curve[i] != NO_RULE;
    for (size_t i = 0; i < parameter_sets_count; i++)
        policy->has_key_rules |= policy->parameter_set[i] != NO_RULE;
    return index_denied(policy);
}

static rule_id rule_of_mechanism(const struct policy *policy, uint64_t number)
{
    const struct policy_rule *rule = policy_mechanism(policy, number);
    /* What is shown is the first member of its rule. */
    return rule ? (rule_id)((const struct rule *)rule - policy->rule) + 1 : NO_RULE;
}

static rule_id rule_of_name(const struct policy *policy, const struct group_rules *group,
                            name_id name)
{
    const struct names *names = policy->names;
    const struct name *entry = &names->entry[name];
    rule_id rule = group[entry->group].named;
    struct name_parts parts = {entry->text, entry->len};
    const char *part;
    size_t part_len, count;
    const struct ref *ref = names_refs(names, name, &count);

    if (ref && entry->len > 4 && memcmp(&entry->start, "ckm_", 4) == 0)
        earlier(&rule, rule_of_mechanism(policy, mechanisms[ref->row].number));
    while (rule == NO_RULE && name_parts_next(&parts, &part, &part_len)) {
        name_id found = names_find(names, part, part_len);
        if (found != NO_NAME)
            rule = group[names->entry[found].group].named;
    }
    return rule;
}

void policy_build_names(struct policy *policy, const struct group_rules *group)
{
    for (name_id i = NO_NAME + 1; i < policy->names->count; i++)
        policy->names->entry[i].verdict = rule_of_name(policy, group, i);
}
