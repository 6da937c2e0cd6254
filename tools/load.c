/* load.c - the configuration, read as the module itself reads it. */
#include "tool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

bool is_link_to_other(const char *path, char real[PATH_MAX])
{
    struct stat st;
    return realpath(path, real) != NULL && lstat(path, &st) == 0 && S_ISLNK(st.st_mode) &&
           strcmp(basename(real), basename(path)) != 0;
}

int load_config(struct config **config, const char *module_path, struct message *message)
{
    struct config_places places;
    config_places_default(&places, module_path != NULL ? module_path : default_module());
    return config_load(config, &places, message);
}
