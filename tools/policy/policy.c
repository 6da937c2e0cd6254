/* policy.c - p11-proxy policy: the policy in force, or its verdict on names. */
#include "tool.h"

#include <inttypes.h>
#include <string.h>

#include "policy/policy_verdict.h"

enum { NAME_BYTES = 64 };

static const char help[] =
    "usage: p11-proxy policy [--module PATH] [--json] [NAME]...\n\n"
    "Shows the policy in force. With names, says of each whether it is permitted or\n"
    "refused, and by which rule. A name is that of an algorithm (MD5withRSA), of a\n"
    "mechanism (CKM_SHA_1), a mechanism's number (0x220), or a curve (secp192r1).\n\n"
    "  --module PATH  the proxy whose configuration is meant: the file is named after it\n"
    "  --json         for programs\n"
    "  --help         show this\n"
    "  --version      show the version\n\n"
    "Exit code: 0 permitted, 1 refused (any of the names), 2 unknown or wrong usage.\n";

static void put_place(const struct policy_rule *rule)
{
    put_plain(stdout, rule->file);
    printf(":%u: ", rule->line);
    if (rule->key != NULL) {
        put_plain(stdout, rule->key);
        fputs(": ", stdout);
    }
    put_plain(stdout, rule->text);
}

static void put_json_rule(const struct policy_rule *rule)
{
    if (rule == NULL) {
        fputs("null", stdout);
        return;
    }
    fputs("{\"text\": ", stdout);
    put_json(stdout, rule->text);
    fputs(", \"file\": ", stdout);
    put_json(stdout, rule->file);
    printf(", \"line\": %u, \"key\": ", rule->line);
    put_json(stdout, rule->key);
    putchar('}');
}

static void print_verdict(const char *text, const struct verdict_of_name *v, bool audit)
{
    char name[NAME_BYTES];

    if (v->verdict == VERDICT_UNKNOWN) {
        fputs("unknown    ", stdout);
        put_plain(stdout, text);
        if (v->nearest != NULL)
            printf(" (nearest: %.*s)", (int)v->nearest->len, v->nearest->text);
        putchar('\n');
        return;
    }
    bool refused = v->verdict == VERDICT_REFUSED;
    fputs(refused && !audit ? "refused    " : "permitted  ", stdout);
    put_plain(stdout, text);
    if (refused) {
        fputs(audit ? ", while x-policy is audit; enforce would refuse it, by " : ", by ", stdout);
        put_place(v->rule);
    }
    if (v->min_key_bits == POLICY_BITS_UNKNOWN)
        fputs(", with keys of no size", stdout);
    else if (v->min_key_bits > 0)
        printf(", with keys of %" PRIu64 " bits and more", v->min_key_bits);
    putchar('\n');
    for (size_t i = 0; i < v->exceptions; i++) {
        printf("           except %s, by ",
               mechanism_name(v->exception[i].mechanism, name, sizeof name));
        put_place(v->exception[i].rule);
        putchar('\n');
    }
}

static void print_json_verdict(const char *text, const struct verdict_of_name *v, bool audit)
{
    static const char *const words[] = {"permitted", "refused", "unknown"};
    char name[NAME_BYTES];
    enum verdict in_force = v->verdict == VERDICT_REFUSED && audit ? VERDICT_PERMITTED : v->verdict;

    fputs("{\"name\": ", stdout);
    put_json(stdout, text);
    printf(", \"verdict\": \"%s\", \"audited\": %s, \"rule\": ", words[in_force],
           in_force != v->verdict ? "true" : "false");
    put_json_rule(v->rule);
    if (v->min_key_bits != POLICY_BITS_UNKNOWN)
        printf(", \"min_key_bits\": %" PRIu64, v->min_key_bits);
    else
        fputs(", \"min_key_bits\": null", stdout);
    fputs(", \"except\": [", stdout);
    for (size_t i = 0; i < v->exceptions; i++) {
        printf("%s{\"mechanism\": \"%s\", \"rule\": ", i > 0 ? ", " : "",
               mechanism_name(v->exception[i].mechanism, name, sizeof name));
        put_json_rule(v->exception[i].rule);
        putchar('}');
    }
    fputs("]}", stdout);
}

static int ask(const struct common_options *request, const struct policy *policy, char **texts)
{
    struct names *names;
    struct verdict_of_name verdict;
    bool audit = policy_is_audit(policy);
    int code = EXIT_FINE;

    if (names_create(&names) != 0) {
        fputs("p11-proxy policy: out of memory\n", stderr);
        return EXIT_USAGE;
    }
    if (request->json)
        putchar('[');
    for (char **text = texts; *text != NULL; text++) {
        verdict_find(&verdict, policy, names, *text);
        if (request->json && text != texts)
            fputs(",\n ", stdout);
        (request->json ? print_json_verdict : print_verdict)(*text, &verdict, audit);
        if (verdict.verdict == VERDICT_UNKNOWN)
            code = EXIT_USAGE;
        else if (verdict.verdict == VERDICT_REFUSED && !audit && code == EXIT_FINE)
            code = EXIT_BAD;
    }
    if (request->json)
        puts("]");
    names_free(names);
    return code;
}

static void print_json_policy(const struct policy *policy)
{
    printf("{\"policy\": \"%s\", \"items\": [", policy == NULL            ? "none"
                                                : policy_is_audit(policy) ? "audit"
                                                                          : "enforce");
    for (size_t i = 0; i < policy_rules_count(policy); i++) {
        fputs(i > 0 ? ",\n  {\"rule\": " : "\n  {\"rule\": ", stdout);
        put_json_rule(policy_rule(policy, i));
        fputs(", \"no_effect\": ", stdout);
        put_json(stdout, policy_rule_no_effect(policy, i));
        putchar('}');
    }
    puts("]}");
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
        load_policy(&policy, config, say_warning, NULL, &message) != 0)
        say_warning(NULL, message.text);
    else
        code = names[0] != NULL ? ask(request, policy, names) : print_policy(request, policy);
    policy_free(policy);
    config_free(config);
    return end_of_output(code);
}

int policy_command(int argc, char **argv)
{
    static const struct option options[] = {
        OPTION_MODULE,
        OPTION_JSON,
        OPTIONS_OF_ALL,
    };
    struct common_options common = {.module_path = default_module()};
    int option;

    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        int code = common_option(option, argv[0], help, &common);
        if (code != GO_ON)
            return code;
    }
    return answer(&common, argv + optind);
}
