/* policy.c - p11-proxy policy: the policy in force, or its verdict on names. */
#include "tool.h"

#include <inttypes.h>
#include <string.h>

#include "policy/policy.h"

enum { NAME_BYTES = 64 };

/* In the order of the verdicts of struct policy_answer. */
static const char *const verdicts[] = {"permitted", "refused", "no effect", "unknown"};

static void put_exception(const char *what, const char *uses, const struct policy_rule *rule)
{
    printf("           except %s%s, by ", what, uses);
    policy_print_rule(rule, stdout);
    putchar('\n');
}

/* audited: refused, but for x-policy. */
static void print_answer(const struct policy *policy, const char *text,
                         const struct policy_answer *answer, bool audited)
{
    bool refused = answer->verdict == POLICY_REFUSES, idle = answer->verdict == POLICY_NO_EFFECT;
    char name[NAME_BYTES];

    printf("%-9s  ", verdicts[audited ? POLICY_PERMITS : answer->verdict]);
    put_plain(stdout, text);
    if (answer->nearest != NULL)
        printf(" (nearest: %.*s)", (int)strcspn(answer->nearest, "|"), answer->nearest);
    if (idle)
        printf(", %s, in ", answer->rule->no_effect);
    else if (refused)
        fputs(audited ? ", while x-policy is audit; enforce would refuse it, by " : ", by ",
              stdout);
    if (idle || refused)
        policy_print_rule(answer->rule, stdout);
    if (answer->min_key_bits == BITS_UNKNOWN)
        fputs(", with keys of no size", stdout);
    else if (answer->min_key_bits > 0)
        printf(", with keys of %" PRIu64 " bits and more", answer->min_key_bits);
    putchar('\n');
    if (answer->verdict == POLICY_PERMITS && answer->rule != NULL)
        put_exception("keys", "", answer->rule);
    for (size_t i = 0; i < answer->exception_count; i++) {
        uint64_t mechanism = answer->exceptions[i].mechanism;
        put_exception(mechanism_name(mechanism, name, sizeof name),
                      policy_denied_uses(policy, mechanism) == FOR_ANY ? "" : " for some uses",
                      answer->exceptions[i].rule);
    }
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

static struct json_object *json_answer(const char *text, const struct policy_answer *answer,
                                       bool audited)
{
    struct json_object *object = json_object_new_object(), *except = json_object_new_array();
    bool idle = answer->verdict == POLICY_NO_EFFECT;
    uint64_t bits = answer->min_key_bits;
    char name[NAME_BYTES];

    for (size_t i = 0; i < answer->exception_count; i++) {
        const struct policy_exception *exception = &answer->exceptions[i];
        struct json_object *one = json_object_new_object();
        json_add(one, "mechanism",
                 json_text(mechanism_name(exception->mechanism, name, sizeof name)));
        json_add(one, "rule", json_rule(exception->rule));
        json_object_array_add(except, one);
    }
    json_add(object, "name", json_text(text));
    json_add(object, "verdict", json_text(verdicts[audited ? POLICY_PERMITS : answer->verdict]));
    json_add(object, "audited", json_object_new_boolean(audited));
    json_add(object, "rule", json_rule(answer->rule));
    json_add(object, "no_effect", json_text(idle ? answer->rule->no_effect : NULL));
    json_add(object, "min_key_bits", bits == BITS_UNKNOWN ? NULL : json_object_new_uint64(bits));
    json_add(object, "except", except);
    return object;
}

static int answer_all(const struct policy *policy)
{
    static struct policy_answer answer;
    struct json_object *all = json_object_new_array();
    int code = EXIT_FINE;

    for (char **text = request.arguments; *text != NULL; text++) {
        if (policy_ask(policy, *text, &answer) != 0) {
            say("out of memory");
            return EXIT_USAGE;
        }
        bool refused = answer.verdict == POLICY_REFUSES;
        bool audited = refused && policy_is_audit(policy);
        if (request.json)
            json_object_array_add(all, json_answer(*text, &answer, audited));
        else
            print_answer(policy, *text, &answer, audited);
        if (answer.verdict == POLICY_UNKNOWN)
            code = EXIT_USAGE;
        else if (refused && !audited && code == EXIT_FINE)
            code = EXIT_BAD;
    }
    if (request.json)
        json_write(all);
    return code;
}

static int print_policy(const struct policy *policy)
{

    if (!request.json) {
        policy_print(policy, stdout);
        return EXIT_FINE;
    }
    struct json_object *object = json_object_new_object(), *items = json_object_new_array();
    const struct policy_rule *rule;
    struct policy_counts counts = policy_count(policy);
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

static void say_warning(const char *message)
{
    say("%s", message);
}

static int run(void)
{
    struct config *config; /* as the policy, until the program ends */
    struct policy *policy;
    struct message message;

    if (config_load(&config, request.module_path, &message) != 0 ||
        policy_load(&policy, config, say_warning, &message) != 0) {
        say("%s", message.text);
        return EXIT_USAGE;
    }
    return end_of_output(request.arguments[0] != NULL ? answer_all(policy) : print_policy(policy));
}

const struct command policy_command = {
    .name = "policy",
    .summary = "show which algorithms are refused, and by which rule",
    .usage = "p11-proxy policy [--module PATH] [--json] [NAME]...\n\n"
             "Shows the policy in force. With names, says of each whether it is permitted or\n"
             "refused, and by which rule, or why a listed name has no effect. A name is that\n"
             "of an algorithm (MD5withRSA), of a mechanism (CKM_SHA_1), a mechanism's number\n"
             "(0x220), or a curve (secp192r1).",
    .takes_arguments = true,
    .options = {OPTION_MODULE, OPTION_JSON},
    .exit_codes =
        "0 permitted or no effect, 1 refused (any of the names), 2 unknown or wrong usage.",
    .run = run,
};
