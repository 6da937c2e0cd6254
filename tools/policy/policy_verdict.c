/* policy_verdict.c - what the policy in force says of one name that a person typed. */
#include "policy/policy_verdict.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { KEY_TYPE_EC = 3 };

/* Whether text is one of the words that '|' separates. */
static bool is_one_of(const char *words, const char *text)
{
    size_t len = strlen(text);

    for (const char *word = words; *word != '\0';) {
        size_t word_len = strcspn(word, "|");
        if (word_len == len && strncasecmp(word, text, len) == 0)
            return true;
        word += word_len + (word[word_len] == '|');
    }
    return false;
}

static const struct curve *find_curve(const char *text)
{
    for (size_t i = 0; i < curves_count; i++) {
        if (strcasecmp(text_at(curves[i].name), text) == 0 ||
            strcmp(text_at(curves[i].oid), text) == 0 ||
            is_one_of(text_at(curves[i].aliases), text))
            return &curves[i];
    }
    return NULL;
}

/* Edwards and Montgomery curves have key types of one size each. */
static bool has_sizes(const struct curve *curve)
{
    const char *name = text_at(curve->name);

    return strstr(name, "25519") == NULL && strstr(name, "448") == NULL;
}

static const struct policy_rule *rule_of_curve(const struct policy *policy,
                                               const struct curve *curve)
{
    const struct policy_rule *rule =
        policy != NULL ? policy_curve(policy, bytes_at(curve->der), curve->der_bytes) : NULL;

    if (rule == NULL && policy != NULL && has_sizes(curve))
        rule = policy_key(policy, NO_MECHANISM, KEY_TYPE_EC, curve->order_bits);
    return rule;
}

static bool parse_number(const char *text, uint64_t *number)
{
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    *number = strtoull(text, &end, strncasecmp(text, "0x", 2) == 0 ? 16 : 10);
    return *end == '\0' && errno == 0 && *number != NO_MECHANISM;
}

static bool is_known_part(const struct names *names, const char *part, size_t len)
{
    name_id name = names_find(names, part, len);

    return (name != NO_NAME && names->entry[name].known) || names_is_word(part, len);
}

/* As an item of a list is judged: known as a whole, or put together of known parts. */
static bool is_known(const struct names *names, const char *text)
{
    struct name_parts parts = {text, strlen(text)};
    const char *part;
    size_t part_len, count = 0;

    if (is_known_part(names, text, strlen(text)))
        return true;
    for (; name_parts_next(&parts, &part, &part_len); count++) {
        /* A padding is no algorithm, so the tables do not have it: AES/CBC/PKCS5Padding. */
        bool padding = part_len > 7 && strncasecmp(part + part_len - 7, "padding", 7) == 0;
        if (!padding && !is_known_part(names, part, part_len))
            return false;
    }
    return count > 1;
}

/* The mechanisms that a permitted name stands for, looked at one by one. */
static void look_closer(struct verdict_of_name *out, const struct policy *policy,
                        const struct names *names, const char *text)
{
    name_id name = names_find(names, text, strlen(text));
    size_t count = 0, kinds = 0, refused = 0;
    const struct ref *ref = name != NO_NAME ? names_refs(names, name, &count) : NULL;

    for (size_t i = 0; i < count; i++) {
        if (ref[i].kind != REF_MECHANISM)
            continue;
        uint64_t mechanism = mechanisms[ref[i].row].number;
        const struct policy_rule *rule = policy_mechanism(policy, mechanism);
        uint64_t bits = policy != NULL ? policy_min_key_bits(policy, mechanism) : 0;
        /* Said of the name where it is so of each of its mechanisms. */
        out->min_key_bits = kinds++ == 0 || bits == out->min_key_bits ? bits : 0;
        if (rule == NULL)
            continue;
        refused++;
        if (out->exceptions == EXCEPTIONS_MOST)
            continue;
        out->exception[out->exceptions].mechanism = mechanism;
        out->exception[out->exceptions++].rule = rule;
    }
    /* The name itself is in no rule, but nothing is left of it. */
    if (refused != 0 && refused == kinds) {
        out->verdict = VERDICT_REFUSED;
        out->rule = out->exception[0].rule;
        out->exceptions = 0;
        out->min_key_bits = 0;
    }
}

void verdict_find(struct verdict_of_name *out, const struct policy *policy,
                  const struct names *names, const char *text)
{
    const struct curve *curve = find_curve(text);
    uint64_t number;
    bool is_number = parse_number(text, &number);

    *out = (struct verdict_of_name){.verdict = VERDICT_PERMITTED};
    out->rule = is_number ? policy_mechanism(policy, number) : policy_name(policy, text);
    if (out->rule == NULL && curve != NULL)
        out->rule = rule_of_curve(policy, curve);
    if (out->rule != NULL) {
        out->verdict = VERDICT_REFUSED;
    } else if (is_number) {
        out->min_key_bits = policy != NULL ? policy_min_key_bits(policy, number) : 0;
    } else if (curve == NULL && !is_known(names, text)) {
        out->verdict = VERDICT_UNKNOWN;
        out->nearest = names_nearest(names, text, strlen(text));
    } else {
        look_closer(out, policy, names, text);
    }
}
