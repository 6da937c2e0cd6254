/* policy.c - p11-proxy policy: the policy in force, or its verdict on names. */
#include "tool.h"

#include <inttypes.h>
#include <string.h>

#include "policy/verdict.h"

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

static void print_verdict(const char *text, const struct verdict_of_name *v, bool audit)
{
    static const char *const words[] = {"permitted  ", "refused    ", "no effect  ", "unknown    "};
    bool refused = v->verdict == VERDICT_REFUSED;
    char name[NAME_BYTES];

    fputs(words[refused && audit ? VERDICT_PERMITTED : v->verdict], stdout);
    put_plain(stdout, text);
    if (v->nearest != NULL)
        printf(" (nearest: %.*s)", (int)v->nearest->len, v->nearest->text);
    if (v->verdict == VERDICT_NO_EFFECT)
        printf(", %s, in ", policy_no_effect(v->rule));
    else if (refused)
        fputs(audit ? ", while x-policy is audit; enforce would refuse it, by " : ", by ", stdout);
    if (v->verdict == VERDICT_NO_EFFECT || refused)
        policy_print_rule(v->rule, stdout);
    if (v->min_key_bits == BITS_UNKNOWN)
        fputs(", with keys of no size", stdout);
    else if (v->min_key_bits > 0)
        printf(", with keys of %" PRIu64 " bits and more", v->min_key_bits);
    putchar('\n');
    if (v->verdict == VERDICT_PERMITTED && v->rule != NULL) {
        fputs("           except keys, by ", stdout);
        policy_print_rule(v->rule, stdout);
        putchar('\n');
    }
    for (size_t i = 0; i < v->exceptions; i++) {
        printf("           except %s%s, by ",
               mechanism_name(v->exception[i].mechanism, name, sizeof name),
               v->exception[i].uses == FOR_ANY ? "" : " for some uses");
        policy_print_rule(v->exception[i].rule, stdout);
        putchar('\n');
    }
}

static struct json_object *json_verdict(const char *text, const struct verdict_of_name *v,
                                        bool audit)
{
    static const char *const words[] = {"permitted", "refused", "no effect", "unknown"};
    bool audited = v->verdict == VERDICT_REFUSED && audit;
    struct json_object *object = json_object_new_object(), *except = json_object_new_array();
    char name[NAME_BYTES];

    for (size_t i = 0; i < v->exceptions; i++) {
        struct json_object *one = json_object_new_object();
        json_add(one, "mechanism",
                 json_text(mechanism_name(v->exception[i].mechanism, name, sizeof name)));
        json_add(one, "rule", json_rule(v->exception[i].rule));
        json_object_array_add(except, one);
    }
    json_add(object, "name", json_text(text));
    json_add(object, "verdict", json_text(words[audited ? VERDICT_PERMITTED : v->verdict]));
    json_add(object, "audited", json_object_new_boolean(audited));
    json_add(object, "rule", json_rule(v->rule));
    json_add(object, "no_effect",
             json_text(v->verdict == VERDICT_NO_EFFECT ? policy_no_effect(v->rule) : NULL));
    json_add(object, "min_key_bits",
             v->min_key_bits == BITS_UNKNOWN ? NULL : json_object_new_uint64(v->min_key_bits));
    json_add(object, "except", except);
    return object;
}

static int ask(const struct common_options *request, const struct policy *policy, char **texts)
{
    struct names *names = names_create(0);
    struct verdict_of_name verdict;
    bool audit = policy_is_audit(policy);
    int code = EXIT_FINE;

    if (names == NULL) {
        fputs("p11-proxy policy: out of memory\n", stderr);
        return EXIT_USAGE;
    }
    struct json_object *all = request->json ? json_object_new_array() : NULL;
    for (char **text = texts; *text != NULL; text++) {
        verdict_find(&verdict, policy, names, *text);
        if (request->json)
            json_object_array_add(all, json_verdict(*text, &verdict, audit));
        else
            print_verdict(*text, &verdict, audit);
        if (verdict.verdict == VERDICT_UNKNOWN)
            code = EXIT_USAGE;
        else if (verdict.verdict == VERDICT_REFUSED && !audit && code == EXIT_FINE)
            code = EXIT_BAD;
    }
    if (request->json)
        json_write(stdout, all, JSON_PRETTY);
    names_free(names);
    return code;
}

static void print_json_policy(const struct policy *policy)
{
    struct json_object *object = json_object_new_object(), *items = json_object_new_array();
    const struct policy_rule *rule;
    struct policy_counts counts;

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
        json_add(item, "no_effect", json_text(policy_no_effect(rule)));
        json_object_array_add(items, item);
    }
    json_add(object, "items", items);
    json_write(stdout, object, JSON_PRETTY);
}

static int print_policy(const struct common_options *request, const struct policy *policy)
{
    if (request->json)
        print_json_policy(policy);
    else
        policy_print(policy, stdout);
    return EXIT_FINE;
}

static void say_warning(void *context, const char *message)
{
    (void)context;
    fputs("p11-proxy policy: ", stderr);
    put_plain(stderr, message);
    putc('\n', stderr);
}

static int answer(const struct common_options *request, char **names)
{
    struct config *config = NULL;
    struct policy *policy = NULL;
    struct message message;
    int code = EXIT_USAGE;

    if (load_config(&config, request->module_path, &message) != 0 ||
        policy_load(&policy, config, say_warning, NULL, &message) != 0)
        say_warning(NULL, message.text);
    else
        code = names[0] != NULL ? ask(request, policy, names) : print_policy(request, policy);
    policy_free(policy);
    config_free(config);
    return end_of_output(code);
}

int policy_command(int argc, char **argv)
{
    struct common_options common = common_options(argc, argv, help);
    return answer(&common, argv + optind);
}
