/* policy.c - p11-proxy policy: the policy in force, or its verdict on names. */
#include "tool.h"

#include <inttypes.h>
#include <string.h>

#include "policy/names.h"

enum { NAME_BYTES = 64 };

static const char help[] =
    "usage: p11-proxy policy [--module PATH] [--json] [NAME]...\n\n"
    "Shows the policy in force. With names, says of each whether it is permitted or\n"
    "refused, and by which rule, or why a listed name has no effect. A name is that\n"
    "of an algorithm (MD5withRSA), of a mechanism (CKM_SHA_1), a mechanism's number\n"
    "(0x220), or a curve (secp192r1).\n\n"
    "  --module PATH  the proxy whose configuration is meant: the file is named after it\n"
    "  --json         for programs\n"
    "  --help         show this\n"
    "  --version      show the version\n\n"
    "Exit code: 0 permitted or no effect, 1 refused (any of the names), 2 unknown or\n"
    "wrong usage.\n";

static const char *const verdicts[] = {"permitted", "refused", "no effect", "unknown"};

struct answer {
    enum { PERMITTED, REFUSED, NO_EFFECT, UNKNOWN } verdict; /* that enforce gives */
    bool audited;                                            /* permitted in spite of it */

    /* REFUSED: the rule that refuses it. NO_EFFECT: the one that lists it and denies nothing. PERMITTED:
     * the one that denies some of its keys, or NULL. */
    const struct policy_rule *rule;

    const struct name *group; /* of a permitted name: some of its mechanisms may be refused */
    uint64_t min_key_bits; /* as policy_min_key_bits(), if it is so of all its mechanisms; else 0 */
    const struct name *nearest; /* of an unknown name; NULL if nothing is near */
};

/* The rule that refuses a mechanism to any use, a curve or a parameter set. */
static const struct policy_rule *rule_of_row(const struct policy *policy, const struct row *row)
{
    enum { EC = 0x03, EDWARDS = 0x40, MONTGOMERY = 0x41 };
    const struct policy_rule *rule = NULL;
    struct key_info key;

    switch (row->kind) {
    case A_MECHANISM:
        for (int use = 0; use < USES && rule == NULL; use++)
            rule = policy_mechanism(policy, row->number, (enum mechanism_use)use);
        return rule;
    case A_CURVE:
        key = key_info_of(key_type_find(same_text(row->names, "Ed", 2) ? EDWARDS
                                        : strncmp(row->names, "X25519", 6) == 0 ||
                                                strncmp(row->names, "X448", 4) == 0
                                            ? MONTGOMERY
                                            : EC));
        key.curve = &curves[row->number];
        key.bits = curve_bits(key.curve);
        key.has_params = true;
        return policy_key(policy, NO_MECHANISM, &key, NULL);
    case A_PARAMETER_SET:
        key = key_info_of(key_type_find(row->number >> 32));
        key.set = row->number & UINT32_MAX;
        return policy_key(policy, NO_MECHANISM, &key, NULL);
    default:
        return NULL;
    }
}

/* The verdict on the rows that a name stands for by itself: REFUSED if nothing of it is left. */
static void ask_rows(struct answer *answer, const struct policy *policy, const struct names *names,
                     const struct name *group)
{
    const struct policy_rule *of_mechanisms = NULL;
    const struct row *row;
    size_t count = 0, refused = 0;

    *answer = (struct answer){.group = group};
    for (uint32_t link = 0; (row = next_row(names, group, &link)) != NULL;) {
        const struct policy_rule *rule = rule_of_row(policy, row);
        if (row->kind == A_MECHANISM) {
            uint64_t bits = policy_min_key_bits(policy, row->number);
            answer->min_key_bits = count++ == 0 || bits == answer->min_key_bits ? bits : 0;
            refused += policy_denied_uses(policy, row->number) == FOR_ANY;
            of_mechanisms = of_mechanisms == NULL ? rule : of_mechanisms;
        } else if (answer->rule == NULL) {
            answer->rule = rule;
        }
    }
    if (answer->rule == NULL && refused == count)
        answer->rule = of_mechanisms;
    if (answer->rule != NULL)
        *answer = (struct answer){.verdict = REFUSED, .rule = answer->rule};
}

/* names has room for one more name. */
static struct answer ask(const struct policy *policy, struct names *names, const char *text)
{
    const struct policy_rule *listed = policy_listed(policy, text);
    size_t len = strlen(text);
    struct name_parts parts = {text, text + len};
    const char *part;
    const struct name *group = names_group(names, names_take(names, text, len));
    struct answer answer;

    if (group->first_link == 0 && listed == NULL && !names_is_known(names, text, len))
        return (struct answer){.verdict = UNKNOWN, .nearest = names_nearest(names, text)};
    ask_rows(&answer, policy, names, group);
    /* A combination that no mechanism is ("MD5withECDSA") is refused if one of its parts is. */
    if (group->first_link == 0 && listed == NULL) {
        while (answer.verdict != REFUSED && next_part(&parts, &part, &len))
            ask_rows(&answer, policy, names, names_group(names, names_find(names, part, len)));
        if (answer.verdict != REFUSED)
            answer = (struct answer){.verdict = PERMITTED};
    }
    if (answer.verdict == PERMITTED && listed != NULL) {
        answer.rule = listed;
        answer.verdict = listed->no_effect != NULL ? NO_EFFECT : PERMITTED;
    }
    answer.audited = answer.verdict == REFUSED && policy_is_audit(policy);
    return answer;
}

/* Steps through the mechanisms of a permitted name that are refused. NULL if there is no more. */
static const struct row *next_exception(const struct policy *policy, const struct names *names,
                                        const struct answer *answer, uint32_t *link)
{
    const struct row *row = NULL;

    if (answer->group == NULL)
        return NULL;
    do
        row = next_row(names, answer->group, link);
    while (row != NULL && (row->kind != A_MECHANISM || rule_of_row(policy, row) == NULL));
    return row;
}

static void put_exception(const char *what, const char *uses, const struct policy_rule *rule)
{
    printf("           except %s%s, by ", what, uses);
    policy_print_rule(rule, stdout);
    putchar('\n');
}

static void print_answer(const struct policy *policy, const struct names *names, const char *text,
                         const struct answer *answer)
{
    const struct row *row;
    char name[NAME_BYTES];

    printf("%-9s  ", verdicts[answer->audited ? PERMITTED : answer->verdict]);
    put_plain(stdout, text);
    if (answer->nearest != NULL)
        printf(" (nearest: %.*s)", (int)answer->nearest->len, answer->nearest->text);
    if (answer->verdict == NO_EFFECT)
        printf(", %s, in ", answer->rule->no_effect);
    else if (answer->verdict == REFUSED)
        fputs(answer->audited ? ", while x-policy is audit; enforce would refuse it, by " : ", by ",
              stdout);
    if (answer->verdict == NO_EFFECT || answer->verdict == REFUSED)
        policy_print_rule(answer->rule, stdout);
    if (answer->min_key_bits == BITS_UNKNOWN)
        fputs(", with keys of no size", stdout);
    else if (answer->min_key_bits > 0)
        printf(", with keys of %" PRIu64 " bits and more", answer->min_key_bits);
    putchar('\n');
    if (answer->verdict == PERMITTED && answer->rule != NULL)
        put_exception("keys", "", answer->rule);
    for (uint32_t link = 0; (row = next_exception(policy, names, answer, &link)) != NULL;)
        put_exception(mechanism_name(row->number, name, sizeof name),
                      policy_denied_uses(policy, row->number) == FOR_ANY ? "" : " for some uses",
                      rule_of_row(policy, row));
}

static struct json_object *json_rule(const struct policy_rule *rule)
{
    if (rule == NULL)
        return NULL;
    struct json_object *object = json_object_new_object();
    json_add(object, "text", json_text(rule->text));
    json_add(object, "file", json_text(rule->file));
    json_add(object, "line", json_object_new_int64(rule->line));
    json_add(object, "key", json_text(rule->key));
    return object;
}

static struct json_object *json_answer(const struct policy *policy, const struct names *names,
                                       const char *text, const struct answer *answer)
{
    struct json_object *object = json_object_new_object(), *except = json_object_new_array();
    uint64_t bits = answer->min_key_bits;
    const struct row *row;
    char name[NAME_BYTES];

    for (uint32_t link = 0; (row = next_exception(policy, names, answer, &link)) != NULL;) {
        struct json_object *one = json_object_new_object();
        json_add(one, "mechanism", json_text(mechanism_name(row->number, name, sizeof name)));
        json_add(one, "rule", json_rule(rule_of_row(policy, row)));
        json_object_array_add(except, one);
    }
    json_add(object, "name", json_text(text));
    json_add(object, "verdict", json_text(verdicts[answer->audited ? PERMITTED : answer->verdict]));
    json_add(object, "audited", json_object_new_boolean(answer->audited));
    json_add(object, "rule", json_rule(answer->rule));
    json_add(object, "no_effect",
             json_text(answer->verdict == NO_EFFECT ? answer->rule->no_effect : NULL));
    json_add(object, "min_key_bits", bits == BITS_UNKNOWN ? NULL : json_object_new_uint64(bits));
    json_add(object, "except", except);
    return object;
}

static int answer_all(const struct common_options *request, const struct policy *policy,
                      char **texts, size_t count)
{
    struct json_object *all = request->json ? json_object_new_array() : NULL;
    struct names *names = names_create(/* more= */ count);
    int code = EXIT_FINE;

    if (names == NULL) {
        fputs("p11-proxy policy: out of memory\n", stderr);
        return EXIT_USAGE;
    }
    for (char **text = texts; *text != NULL; text++) {
        struct answer answer = ask(policy, names, *text);
        if (request->json)
            json_object_array_add(all, json_answer(policy, names, *text, &answer));
        else
            print_answer(policy, names, *text, &answer);
        if (answer.verdict == UNKNOWN)
            code = EXIT_USAGE;
        else if (answer.verdict == REFUSED && !answer.audited && code == EXIT_FINE)
            code = EXIT_BAD;
    }
    names_free(names);
    if (request->json)
        json_write(all);
    return code;
}

static int print_policy(const struct common_options *request, const struct policy *policy)
{
    struct policy_counts counts;

    if (!request->json) {
        policy_print(policy, stdout);
        return EXIT_FINE;
    }
    struct json_object *object = json_object_new_object(), *items = json_object_new_array();
    const struct policy_rule *rule;
    policy_count(policy, &counts);
    json_add(object, "policy",
             json_text(policy == NULL            ? "none"
                       : policy_is_audit(policy) ? "audit"
                                                 : "enforce"));
    json_add(object, "mechanisms", json_object_new_uint64(counts.mechanisms));
    json_add(object, "curves", json_object_new_uint64(counts.curves));
    json_add(object, "parameter_sets", json_object_new_uint64(counts.parameter_sets));
    json_add(object, "size_rules", json_object_new_uint64(counts.size_rules));
    for (size_t i = 0; (rule = policy_rule(policy, i)) != NULL; i++) {
        struct json_object *item = json_object_new_object();
        json_add(item, "rule", json_rule(rule));
        json_add(item, "no_effect", json_text(rule->no_effect));
        json_object_array_add(items, item);
    }
    json_add(object, "items", items);
    json_write(object);
    return EXIT_FINE;
}

static void say_warning(void *context, const char *message)
{
    (void)context;
    fputs("p11-proxy policy: ", stderr);
    put_plain(stderr, message);
    putc('\n', stderr);
}

int policy_command(int argc, char **argv)
{
    struct common_options request = common_options(argc, argv, help);
    struct config *config = NULL;
    struct policy *policy = NULL;
    struct message message;
    int code = EXIT_USAGE;

    if (config_load(&config, request.module_path, &message) != 0 ||
        policy_load(&policy, config, say_warning, NULL, &message) != 0)
        say_warning(NULL, message.text);
    else if (argv[optind] != NULL)
        code = answer_all(&request, policy, argv + optind, (size_t)(argc - optind));
    else
        code = print_policy(&request, policy);
    policy_free(policy);
    config_free(config);
    return end_of_output(code);
}
