/* load.c - finds the files where p11-kit does, reads them in their order, then the environment. */
#include "config/config.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "config/keys.h"

/* What p11-kit's user-config says: no user's files, all files, the user's only. */
enum user_mode { USER_NONE, USER_MERGE, USER_ONLY };

/* Whether a file has to be there. A user's folder that this process may not search counts as empty, as in
 * p11-kit, since a daemon may run with another user's HOME. */
enum kind { FILE_NAMED, FILE_OF_SYSTEM, FILE_OF_USER };

/* Joins two parts in out, or leaves "" where they do not fit: a cut path is another path. */
static void join(char out[PATH_MAX], const char *folder, const char *rest)
{
    if (snprintf(out, PATH_MAX, "%s/%s", folder, rest) >= PATH_MAX)
        out[0] = '\0';
}

/* The same in memory of its own: most paths are far shorter. */
static void set_path(struct config *config, char **path, const char *folder, const char *rest)
{
    if (asprintf(path, "%s/%s", folder, rest) >= 0)
        return;
    *path = NULL;
    message_set(keys_mistake(config), "out of memory");
}

/* $XDG_CONFIG_HOME, else $HOME, else what the user database says, each as p11-kit does it. */
static const char *find_user_config(void)
{
    static char out[PATH_MAX];
    const char *xdg = secure_getenv("XDG_CONFIG_HOME");
    const char *home = secure_getenv("HOME");
    struct passwd entry, *found = NULL;
    char strings[4096];
    out[0] = '\0';
    if (xdg != NULL && xdg[0] != '\0')
        join(out, xdg, "pkcs11");
    else if (home != NULL && home[0] != '\0')
        join(out, home, ".config/pkcs11");
    else if (getpwuid_r(getuid(), &entry, strings, sizeof strings, &found) == 0 && found != NULL)
        join(out, found->pw_dir, ".config/pkcs11");
    return out;
}

/* P11_PROXY_CONFIG, made absolute at the first read, because the process may change its directory afterwards. */
static const char *named_file(void)
{
    static char absolute[PATH_MAX];
    char folder[PATH_MAX];
    const char *value = secure_getenv("P11_PROXY_CONFIG");
    if (value == NULL || value[0] == '\0' || value[0] == '/')
        return value;
    if (absolute[0] == '\0' && getcwd(folder, sizeof folder) != NULL)
        join(absolute, folder, value);
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
        .user_config = getauxval(AT_SECURE) == 0 && getuid() != 0 ? find_user_config() : "",
    };
}

/* Not isspace(): the application's locale must not change what a file means. '\r' is for CRLF. */
static char *trim(char *text)
{
    static const char blanks[] = " \t\r\v\f";
    text += strspn(text, blanks);
    for (size_t len = strlen(text); len > 0 && strchr(blanks, text[len - 1]) != NULL; len--)
        text[len - 1] = '\0';
    return text;
}

/* Takes a text in the format of pkcs11.conf(5) apart. user: as in take_file(). */
static void take_lines(struct config *config, char *text, const char *path, enum user_mode *user)
{
    static const char byte_order_mark[] = "\xEF\xBB\xBF";
    static const char modes[] = "none, merge, only, override"; /* the last two mean the same */
    char quoted[QUOTE_BYTES], *start;
    if (strncmp(text, byte_order_mark, strlen(byte_order_mark)) == 0)
        text += strlen(byte_order_mark);
    for (unsigned line = 1; (start = strsep(&text, "\n")) != NULL; line++) {
        char *name = trim(start);
        char *colon = strchr(name, ':');
        if (name[0] == '\0' || name[0] == '#')
            continue;
        if (colon == NULL || colon == name) {
            /* The line may be a secret that lost its key, so only its start is shown. */
            name[strcspn(name, " \t=:")] = '\0';
            message_set(keys_mistake(config),
                        "%s:%u: a line that is not `name: value`, starting with %s", path, line,
                        quote(quoted, name));
            continue;
        }
        *colon = '\0';
        name = trim(name);
        char *value = trim(colon + 1);
        int mode = word_number(value, modes);
        if (user == NULL)
            keys_take(config, name, value, path, line);
        else if (strcmp(name, "user-config") == 0 && mode < 0)
            message_set(keys_mistake(config), "%s:%u: user-config is not one of %s: %s", path, line,
                        modes, quote(quoted, value));
        else if (strcmp(name, "user-config") == 0)
            *user = mode < USER_ONLY ? (enum user_mode)mode : USER_ONLY;
    }
}

/* Whether there is really nothing at path. A dangling symlink is something, because a file was meant to
 * be read. */
static bool is_absent(const char *path, enum kind kind)
{
    struct stat st;
    return kind != FILE_NAMED && lstat(path, &st) != 0 &&
           (errno == ENOENT || errno == ENOTDIR || (errno == EACCES && kind == FILE_OF_USER));
}

/* user: what is to be found out; NULL: the keys. path stays. */
static void take_file(struct config *config, const char *path, enum kind kind, enum user_mode *user)
{
    struct message why;
    char *text;
    if (path == NULL) /* out of memory */
        return;
    if (file_read(&text, path, &why) == 0) {
        size_t len = strlen(text);
        take_lines(config, text, path, user);
        explicit_bzero(text, len); /* x-target-init may hold a PIN */
        free(text);
    } else if (!is_absent(path, kind))
        message_set(keys_mistake(config), "%s%s", kind == FILE_NAMED ? "P11_PROXY_CONFIG: " : "",
                    why.text);
}

/* The system's pkcs11.conf decides, then the user's own may, unless the first said none. */
static enum user_mode find_user_mode(struct config *config, const struct config_places *places)
{
    enum user_mode user = USER_MERGE;
    take_file(config, places->system_conf, FILE_OF_SYSTEM, &user);
    if (places->user_config[0] == '\0' || user == USER_NONE)
        return USER_NONE;
    char *path;
    set_path(config, &path, places->user_config, "pkcs11.conf");
    take_file(config, path, FILE_OF_USER, &user);
    free(path);
    return user;
}

static void take_files(struct config *config, const struct config_places *places)
{
    static const char users[] = "modules/";
    const char *name = basename(places->module_path);
    size_t len = strlen(name);
    char below[sizeof users + NAME_MAX + sizeof ".module"];
    if (len > 3 && strcmp(name + len - 3, ".so") == 0)
        len -= 3;
    snprintf(below, sizeof below, "%s%.*s.module", users, (int)len, name);
    enum user_mode user = find_user_mode(config, places);
    set_path(config, &config->system_file, places->system_modules, below + strlen(users));
    if (user != USER_ONLY) {
        set_path(config, &config->package_file, places->package_modules, below + strlen(users));
        take_file(config, config->package_file, FILE_OF_SYSTEM, NULL);
        take_file(config, config->system_file, FILE_OF_SYSTEM, NULL);
    }
    if (user != USER_NONE) {
        set_path(config, &config->user_file, places->user_config, below);
        take_file(config, config->user_file, FILE_OF_USER, NULL);
    }
}

static bool is_set(const char *variable)
{
    return variable != NULL && variable[0] != '\0';
}

struct config *config_read(const struct config_places *places)
{
    struct config *config = calloc(1, sizeof *config);
    if (config == NULL)
        return NULL;
    /* Apart, because pages that nothing is written to take no memory. */
    config->mistakes = malloc(CONFIG_MISTAKES_MOST * sizeof *config->mistakes);
    if (config->mistakes == NULL) {
        free(config);
        return NULL;
    }
    keys_set_defaults(config);
    if (is_set(places->env_config)) {
        config->system_file = strdup(places->env_config);
        if (config->system_file == NULL)
            message_set(keys_mistake(config), "out of memory");
        take_file(config, config->system_file, FILE_NAMED, NULL);
    } else {
        take_files(config, places);
    }
    if (is_set(places->env_target))
        keys_take(config, "x-target", places->env_target, "P11_PROXY_TARGET", 0);
    if (is_set(places->env_log))
        keys_take(config, "x-log", places->env_log, "P11_PROXY_LOG", 0);
    if (config->target != NULL && config->target[0] != '/') {
        set_path(config, &config->target_path, places->target_directory, config->target);
        config->target = config->target_path;
    }
    return config;
}

int config_load(struct config **config, const char *module_path, struct message *message)
{
    struct config_places places;
    config_places_default(&places, module_path);
    *config = config_read(&places);
    if (*config != NULL && (*config)->mistake_count == 0)
        return 0;
    message_set(message, "%s", *config != NULL ? (*config)->mistakes[0].text : "out of memory");
    config_free(*config);
    *config = NULL;
    return -1;
}

int config_check_target(const struct config *config, struct message *message)
{
    char where[MESSAGE_BYTES];
    struct stat st;
    if (config->target == NULL) {
        message_set(message,
                    "no token's module is configured: set x-target in %s, or P11_PROXY_TARGET",
                    config->system_file);
        return -1;
    }
    config_origin(config_find(config, "x-target"), where, sizeof where);
    if (stat(config->target, &st) != 0)
        message_set(message, "%s: x-target cannot be read (%m): '%s'", where, config->target);
    else if (!S_ISREG(st.st_mode))
        message_set(message, "%s: x-target is not a regular file: '%s'", where, config->target);
    else
        return 0;
    return -1;
}
