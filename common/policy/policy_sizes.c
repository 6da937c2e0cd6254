/* policy_sizes.c - key-size rules: put in order while compiling, searched on the call. */
#include "policy/policy_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A span of sizes and whom it is about, before they are put in order. */
struct saying {
    name_id group; /* NO_NAME: a number */
    uint64_t number;
    struct rule_span span;
};

static int by_subject(const void *left, const void *right)
{
    const struct saying *l = left, *r = right;

    if (l->group != r->group)
        return l->group < r->group ? -1 : 1;
    if (l->number != r->number)
        return l->number < r->number ? -1 : 1;
    if (l->span.bits.from != r->span.bits.from)
        return l->span.bits.from < r->span.bits.from ? -1 : 1;
    return l->span.rule < r->span.rule ? -1 : l->span.rule > r->span.rule;
}

static int by_owner(const void *left, const void *right)
{
    const struct subject_of *l = left, *r = right;

    if (l->number != r->number)
        return l->number < r->number ? -1 : 1;
    return l->subject < r->subject ? -1 : l->subject > r->subject;
}

static size_t collect(const struct policy *policy, struct saying *all)
{
    size_t count = 0;

    for (size_t i = 0; i < policy->said_count; i++) {
        const struct rule *rule = &policy->rule[policy->said[i].rule - 1];
        all[count++] = (struct saying){
            .group = rule->name == NO_NAME ? NO_NAME : policy->names->entry[rule->name].group,
            .number = rule->name == NO_NAME ? rule->number : 0,
            .span = policy->said[i],
        };
    }
    qsort(all, count, sizeof *all, by_subject);
    return count;
}

static bool names_a_key_type(const struct ref *ref, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (ref[i].kind == REF_KEY_TYPE)
            return true;
    }
    return false;
}

/* A curve has one size; if that is denied, the curve is. */
static void deny_curve(struct policy *policy, uint32_t row, const struct subject *subject)
{
    for (uint32_t i = 0; i < subject->count; i++) {
        const struct rule_span *span = &policy->span[subject->first + i];
        uint64_t bits = curves[row].order_bits;
        if (policy->curve[row] == NO_RULE && span->bits.from <= bits && bits <= span->bits.to)
            policy->curve[row] = span->rule;
    }
}

/* Says of a subject's key types, or else of its mechanisms, that it speaks of them. */
static void point_at_subject(struct policy *policy, name_id group, uint64_t number)
{
    uint32_t subject = (uint32_t)policy->subject_count - 1;
    size_t count = 0;
    const struct ref *ref = group == NO_NAME ? NULL : names_refs(policy->names, group, &count);
    bool keys = names_a_key_type(ref, count);

    if (group == NO_NAME)
        policy->mechanism[policy->mechanism_count++] = (struct subject_of){number, subject};
    for (size_t i = 0; i < count; i++) {
        if (ref[i].kind == REF_KEY_TYPE)
            policy->key_type[policy->key_type_count++] =
                (struct subject_of){key_types[ref[i].row].number, subject};
        else if (ref[i].kind == REF_MECHANISM && !keys)
            policy->mechanism[policy->mechanism_count++] =
                (struct subject_of){mechanisms[ref[i].row].number, subject};
        else if (ref[i].kind == REF_CURVE)
            deny_curve(policy, ref[i].row, &policy->subject[subject]);
    }
}

/* The spans of one subject, all[from] to all[to - 1], without what an earlier one covers. */
static void add_subject(struct policy *policy, const struct saying *all, size_t from, size_t to)
{
    struct subject *subject = &policy->subject[policy->subject_count++];
    uint64_t next = 0; /* the first size that is not covered */

    subject->first = (uint32_t)policy->span_count;
    for (size_t i = from; i < to; i++) {
        struct rule_span span = all[i].span;
        if (span.bits.from < next)
            span.bits.from = next;
        if (span.bits.from > span.bits.to)
            continue;
        policy->span[policy->span_count++] = span;
        next = span.bits.to + 1;
    }
    subject->count = (uint32_t)policy->span_count - subject->first;
    point_at_subject(policy, all[from].group, all[from].number);
}

int policy_build_sizes(struct policy *policy)
{
    size_t room = policy->said_count + 1;
    struct saying *all = calloc(room, sizeof *all);

    policy->span = calloc(room, sizeof *policy->span);
    policy->subject = calloc(room, sizeof *policy->subject);
    policy->key_type = calloc(policy->names->ref_count, sizeof *policy->key_type);
    policy->mechanism = calloc(policy->names->ref_count + room, sizeof *policy->mechanism);
    if (!all || !policy->span || !policy->subject || !policy->key_type || !policy->mechanism) {
        free(all);
        return -ENOMEM;
    }
    size_t count = collect(policy, all);
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1;
             to < count && all[to].group == all[from].group && all[to].number == all[from].number;
             to++)
            continue;
        add_subject(policy, all, from, to);
    }
    free(all);
    qsort(policy->key_type, policy->key_type_count, sizeof *policy->key_type, by_owner);
    qsort(policy->mechanism, policy->mechanism_count, sizeof *policy->mechanism, by_owner);
    policy->has_key_rules |= count > 0;
    return 0;
}

/* The subjects of a mechanism or key type: the first of *left. */
static const struct subject_of *subjects_of(const struct subject_of *all, size_t all_count,
                                            uint64_t number, size_t *left)
{
    size_t from = 0, to = all_count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (all[middle].number < number)
            from = middle + 1;
        else
            to = middle;
    }
    while (to < all_count && all[to].number == number)
        to++;
    *left = to - from;
    return all + from;
}

/* The span of a subject that holds a size, or NULL. */
static const struct rule_span *span_at(const struct policy *policy, uint32_t subject, uint64_t bits)
{
    const struct rule_span *span = policy->span + policy->subject[subject].first;
    size_t from = 0, to = policy->subject[subject].count;

    if (bits == 0)
        return to > 0 ? span : NULL; /* as the JDK: no key of no size where sizes matter */
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (span[middle].bits.to < bits)
            from = middle + 1;
        else
            to = middle;
    }
    return from < policy->subject[subject].count && span[from].bits.from <= bits ? &span[from]
                                                                                 : NULL;
}

static const struct rule_span *denying_span(const struct policy *policy,
                                            const struct subject_of *all, size_t all_count,
                                            uint64_t number, uint64_t bits)
{
    size_t left;
    const struct subject_of *of = subjects_of(all, all_count, number, &left);

    for (; left > 0; left--, of++) {
        const struct rule_span *span = span_at(policy, of->subject, bits);
        if (span)
            return span;
    }
    return NULL;
}

static const struct rule_span *key_span(const struct policy *policy, uint64_t mechanism,
                                        uint64_t key_type, uint64_t bits)
{
    const struct rule_span *span =
        denying_span(policy, policy->key_type, policy->key_type_count, key_type, bits);
    return span ? span
                : denying_span(policy, policy->mechanism, policy->mechanism_count, mechanism, bits);
}

bool policy_has_key_rules(const struct policy *policy)
{
    return policy && policy->has_key_rules;
}

const struct policy_rule *policy_key(const struct policy *policy, uint64_t mechanism,
                                     uint64_t key_type, uint64_t bits)
{
    if (!policy || policy->span_count == 0)
        return NULL;

    const struct key_type *row = key_type_find(key_type);
    if (row && row->bits)
        bits = row->bits;
    if (bits == POLICY_BITS_UNKNOWN)
        return NULL;
    const struct rule_span *span = key_span(policy, mechanism, key_type, bits);
    return span ? shown(policy, span->rule) : NULL;
}

/* Whether list, separated by '|', has one of the names in the other list. */
static bool share_a_name(const struct names *names, const char *list, const struct key_type *type)
{
    while (*list) {
        size_t len = strcspn(list, "|"), count = 0;
        name_id name = names_find(names, list, len);
        const struct ref *ref = names_refs(names, name, &count);
        for (size_t i = 0; i < count; i++) {
            if (ref[i].kind == REF_KEY_TYPE && &key_types[ref[i].row] == type)
                return true;
        }
        list += len + (list[len] == '|');
    }
    return false;
}

/* The smallest size that is left to the mechanism with keys of one type, or with any (NULL). */
static uint64_t smallest(const struct policy *policy, uint64_t mechanism,
                         const struct key_type *type)
{
    uint64_t key_type = type ? type->number : UINT64_MAX;
    uint64_t bits = 1;
    const struct rule_span *span;

    if (type && type->bits) /* there is no smaller and no larger key to keep away */
        return key_span(policy, mechanism, key_type, type->bits) ? POLICY_BITS_UNKNOWN : 1;
    while (bits <= LARGEST_SIZE && (span = key_span(policy, mechanism, key_type, bits)))
        bits = span->bits.to + 1;
    return bits;
}

uint64_t policy_min_key_bits(const struct policy *policy, uint64_t mechanism)
{
    const struct mechanism *row = mechanism_find(mechanism);
    uint64_t min = POLICY_BITS_UNKNOWN;
    bool any = false;

    if (!policy || policy->span_count == 0)
        return 0;
    for (size_t i = 0; row && i < key_types_count; i++) {
        if (key_types[i].size_from != row->size_from ||
            !share_a_name(policy->names, text_at(row->atoms), &key_types[i]))
            continue;
        uint64_t bits = smallest(policy, mechanism, &key_types[i]);
        min = bits < min ? bits : min;
        any = true;
    }
    if (!any)
        min = smallest(policy, mechanism, NULL);
    return min == 1 ? 0 : min;
}
