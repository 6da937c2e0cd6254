/* load.c - the configuration and the policy, read as the module itself reads them. */
#include "tool.h"

#include <time.h>

const char installed_module[] = MODULE_PATH;

int load_config(struct config **config, const char *module_path, struct message *message)
{
    struct config_places places;

    config_places_default(&places, module_path != NULL ? module_path : installed_module);
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
