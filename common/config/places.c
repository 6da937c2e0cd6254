/* places.c - where a real process finds its configuration: the same places as p11-kit's. */
#include "config/config.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Joins two parts in out, or leaves "" where they do not fit: a cut path is another path. */
static void join(char out[PATH_MAX], const char *folder, const char *rest)
{
    if (snprintf(out, PATH_MAX, "%s/%s", folder, rest) >= PATH_MAX)
        out[0] = '\0';
}

/* $XDG_CONFIG_HOME, else $HOME, else what the user database says, each as p11-kit does it. */
static void find_user_config(char out[PATH_MAX])
{
    const char *xdg = secure_getenv("XDG_CONFIG_HOME");
    const char *home = secure_getenv("HOME");
    struct passwd entry, *found = NULL;
    char strings[4096];
    if (xdg != NULL && xdg[0] != '\0')
        join(out, xdg, "pkcs11");
    else if (home != NULL && home[0] != '\0')
        join(out, home, ".config/pkcs11");
    else if (getpwuid_r(getuid(), &entry, strings, sizeof strings, &found) == 0 && found != NULL)
        join(out, found->pw_dir, ".config/pkcs11");
}

/* P11_PROXY_CONFIG, made absolute at the first read, because the process may change its directory afterwards. */
static const char *named_file(void)
{
    static char read_as[PATH_MAX], absolute[PATH_MAX];
    char folder[PATH_MAX];
    const char *value = secure_getenv("P11_PROXY_CONFIG");
    if (value == NULL || value[0] == '\0' || value[0] == '/' || strlen(value) >= PATH_MAX)
        return value;
    if (strcmp(value, read_as) != 0 && getcwd(folder, sizeof folder) != NULL) {
        join(absolute, folder, value);
        strcpy(read_as, value);
    }
    return absolute[0] != '\0' ? absolute : value;
}

void config_places_default(struct config_places *places, const char *module_path)
{
    *places = (struct config_places){
        .module_path = module_path,
        .package_modules = P11_MODULE_CONFIGS,
        .system_modules = "/etc/pkcs11/modules",
        .system_conf = "/etc/pkcs11/pkcs11.conf",
        .target_directory = P11_MODULE_DIR,
        .env_config = named_file(),
        .env_target = secure_getenv("P11_PROXY_TARGET"),
        .env_log = secure_getenv("P11_PROXY_LOG"),
        .secure = getauxval(AT_SECURE) != 0,
    };
    if (!places->secure && getuid() != 0)
        find_user_config(places->user_config);
}
