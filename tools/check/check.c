/* check.c - p11-proxy check: what is in force, what is wrong, and what to do about it. */
#include "check/check_parts.h"
#include "tool.h"

#include <string.h>

static const char help[] =
    "usage: p11-proxy check [--module PATH] [--json]\n\n"
    "Reads the configuration, loads the token's module and the proxy, and says what is in\n"
    "force, what is wrong, and what to do about it. Never logs in, never writes.\n\n"
    "  --module PATH  the proxy whose configuration is meant: the file is named after it\n"
    "  --json         for programs\n"
    "  --help         show this\n"
    "  --version      show the version\n\n"
    "Exit code: 0 no problem (notes do not count), 1 a problem, 2 wrong usage.\n";

static const char *const mark_words[] = {"ok", "note", "problem"};

static void put_mark(enum mark mark, bool coloured)
{
    static const char *const colours[] = {"\033[32m", "\033[33m", "\033[31m"};

    if (coloured)
        printf("%s%-8s\033[0m ", colours[mark], mark_words[mark]);
    else
        printf("%-8s ", mark_words[mark]);
}

static void print_text(const struct findings *findings)
{
    bool coloured = wants_colour(stdout);

    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->finding[i];
        put_mark(finding->mark, coloured);
        put_plain(stdout, finding->text);
        if (finding->advice[0] != '\0') {
            fputs("\n         -> ", stdout);
            put_plain(stdout, finding->advice);
        }
        putchar('\n');
    }
}

static void print_json(const struct findings *findings, const struct config *config,
                       const char *module_path)
{
    char origin[MESSAGE_BYTES];

    fputs("{\"version\": \"" VERSION "\", \"module\": ", stdout);
    put_json(stdout, module_path);
    fputs(", \"settings\": [", stdout);
    for (int i = 0; config != NULL && i < CONFIG_KEYS; i++) {
        const struct config_setting *setting = &config->settings[i];
        fputs(i > 0 ? ",\n  {\"key\": " : "\n  {\"key\": ", stdout);
        put_json(stdout, setting->key);
        fputs(", \"value\": ", stdout);
        put_json(stdout, setting->text);
        fputs(", \"from\": ", stdout);
        put_json(stdout, config_origin(setting, origin, sizeof origin));
        putchar('}');
    }
    printf("],\n \"problems\": %zu, \"findings\": [", findings_count(findings, MARK_PROBLEM));
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->finding[i];
        printf("%s\n  {\"mark\": \"%s\", \"about\": ", i > 0 ? "," : "", mark_words[finding->mark]);
        put_json(stdout, finding->about);
        fputs(", \"text\": ", stdout);
        put_json(stdout, finding->text);
        fputs(", \"advice\": ", stdout);
        put_json(stdout, finding->advice[0] != '\0' ? finding->advice : NULL);
        putchar('}');
    }
    puts("]}");
}

static void look(struct findings *findings, struct config **config, const char *module_path)
{
    struct message message;

    if (load_config(config, module_path, &message) != 0) {
        found(findings, MARK_PROBLEM, "configuration", "%s", message.text);
        advise(findings, "mend that; until then C_Initialize answers CKR_GENERAL_ERROR");
        check_p11_kit(findings, NULL, module_path);
        return;
    }
    check_settings(findings, *config);
    check_policy(findings, *config);
    if (check_target(findings, *config, module_path))
        check_tokens(findings, *config);
    /* What is wrong by now would only be said again. */
    if (findings_count(findings, MARK_PROBLEM) == 0)
        check_start(findings, module_path);
    check_machine(findings, *config);
    check_p11_kit(findings, *config, module_path);
}

static int check(const char *module_path, bool json)
{
    struct findings *findings = findings_new();
    struct config *config = NULL;

    if (findings == NULL) {
        fputs("p11-proxy check: out of memory\n", stderr);
        return EXIT_BAD;
    }
    look(findings, &config, module_path);
    if (json)
        print_json(findings, config, module_path);
    else
        print_text(findings);
    config_free(config);
    return end_of_output(findings_count(findings, MARK_PROBLEM) > 0 ? EXIT_BAD : EXIT_FINE);
}

int check_command(int argc, char **argv)
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
    if (optind < argc)
        return usage_error(argv[0], "it takes no argument: '%s'", argv[optind]);
    return check(common.module_path, common.json);
}
