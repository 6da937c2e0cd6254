/* check.c - p11-proxy check: what is in force, what is wrong, and what to do about it. */
#include "check/check.h"

#include <unistd.h>

static const char help[] =
    "usage: p11-proxy check [--module PATH] [--json]\n\n"
    "Reads the configuration, loads the token's module and the proxy, and says what is in\n"
    "force, what is wrong, and what to do about it. Never logs in, never writes.\n\n"
    "  --module PATH  the proxy whose configuration is meant: the file is named after it\n"
    "  --json         for programs\n"
    "  --help         show this\n"
    "  --version      show the version\n\n"
    "Exit code: 0 no problem (notes do not count), 1 a problem, 2 wrong usage.\n";

static void print_json(const struct config *config, const char *module_path)
{
    struct json_object *document = json_object_new_object();
    struct json_object *settings = json_object_new_array();
    char origin[MESSAGE_BYTES];
    for (int i = 0; config != NULL && i < CONFIG_KEYS; i++) {
        const struct config_setting *setting = &config->settings[i];
        struct json_object *object = json_object_new_object();
        json_add(object, "key", json_text(setting->key));
        json_add(object, "value", json_text(setting->text));
        json_add(object, "from", json_text(config_origin(setting, origin, sizeof origin)));
        json_object_array_add(settings, object);
    }
    json_add(document, "version", json_text(VERSION));
    json_add(document, "module", json_text(module_path));
    json_add(document, "settings", settings);
    json_add(document, "problems", json_object_new_uint64(report_problems()));
    json_add(document, "findings", report_json());
    json_write(stdout, document, JSON_PRETTY);
}

static void hear_mistake(void *unused, const char *text)
{
    (void)unused;
    report_add(MARK_PROBLEM, "configuration",
               "%s\n"
               "correct that; until then C_Initialize answers CKR_GENERAL_ERROR",
               text);
}

/* Where there is a mistake, the rest is checked as if that line were not there. */
static struct config *read_settings(const char *module_path)
{
    struct config_places places;
    struct config *config = NULL;
    struct message message;
    config_places_default(&places, module_path);
    places.mistake = hear_mistake;
    if (config_load(&config, &places, &message) != 0)
        hear_mistake(NULL, message.text);
    return config;
}

static void check_all(const struct checked *checked)
{
    const struct config *config = checked->config;
    bool has_mistake = report_problems() > 0;
    bool has_proxy = check_proxy_file(checked->module_path);
    bool target_works = false;
    if (config != NULL) {
        check_settings(config);
        check_policy(config);
        /* Without a target one of the mistakes may be its line. */
        if (config->target != NULL || !has_mistake)
            target_works = check_target(checked) && check_tokens(checked);
        /* The proxy would only report the same problems again. */
        if (has_proxy && report_problems() == 0)
            check_proxy(checked->module_path);
        check_machine(config);
    }
    check_p11_kit(checked, target_works);
}

static int check(const char *module_path, bool json)
{
    struct config *config;
    char folder[PATH_MAX], absolute[2 * PATH_MAX];
    if (!report_begin()) {
        fputs("p11-proxy check: out of memory\n", stderr);
        return EXIT_BAD;
    }
    /* Not realpath(): a link is to be seen. Not a plain name: dlopen() would look for it elsewhere. */
    if (module_path[0] != '/' && getcwd(folder, sizeof folder) != NULL) {
        snprintf(absolute, sizeof absolute, "%s/%s", folder, module_path);
        module_path = absolute;
    }
    config = read_settings(module_path);
    check_all(&(struct checked){config, module_path});
    if (json)
        print_json(config, module_path);
    else
        report_print();
    config_free(config);
    return end_of_output(report_problems() > 0 ? EXIT_BAD : EXIT_FINE);
}

int check_command(int argc, char **argv)
{
    struct common_options common;
    int code = common_options(argc, argv, help, &common);
    if (code != GO_ON)
        return code;
    if (optind < argc)
        return usage_error(argv[0], "it takes no argument: '%s'", argv[optind]);
    return check(common.module_path, common.json);
}
