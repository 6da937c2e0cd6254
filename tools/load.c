/* load.c - the configuration and the policy, read as the module itself reads them. */
#include "tool.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

/* Of the program, to find the module of the same build. */
static const char from_tool[] = "/tools/p11-proxy", to_module[] = "/module/p11-proxy.so";

const char *default_module(void)
{
    static char path[PATH_MAX + sizeof to_module];
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX);
    ssize_t folder_len = len - (ssize_t)(sizeof from_tool - 1);

    path[len > 0 ? len : 0] = '\0';
    if (folder_len > 0 && strcmp(path + folder_len, from_tool) == 0) {
        strcpy(path + folder_len, to_module);
        if (access(path, F_OK) == 0)
            return path;
    }
    return MODULE_PATH;
}

int load_config(struct config **config, const char *module_path, struct message *message)
{
    struct config_places places;

    config_places_default(&places, module_path != NULL ? module_path : default_module());
    return config_load(config, &places, message);
}

int load_policy(struct policy **policy, const struct config *config, policy_warning *warn,
                void *warn_context, struct message *message)
{
    const struct config_setting *list = config_find(config, "x-disabled-algorithms");
    const struct config_setting *named = config_find(config, "x-disabled-algorithms-file");
    const struct policy_file file = {config->disabled_algorithms_file, named->from, named->line};
    const struct policy_sources sources = {
        .list = config->disabled_algorithms,
        .list_file = list->from,
        .list_line = list->line,
        .files = &file,
        .files_count = file.path != NULL ? 1 : 0,
        .now_s = time(NULL),
        .audit = config->policy == CONFIG_POLICY_AUDIT,
        .warn = warn,
        .warn_context = warn_context,
    };

    *policy = NULL;
    if (sources.list == NULL && sources.files_count == 0)
        return 0;
    return policy_compile(policy, &sources, message->text, sizeof message->text);
}
