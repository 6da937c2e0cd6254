/* config_load.c - reads the files in their order, then the environment, then finds the target. */
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config_lines.h"
#include "config/config_table.h"
#include "config/config_value.h"
#include "base/file.h"

enum whose { FILE_OF_SYSTEM, FILE_OF_USER };

static int out_of_memory(struct message *message)
{
    message_set(message, "out of memory");
    return -ENOMEM;
}

static char *join(const char *folder, const char *name)
{
    char *path;

    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

/*
 * Whether there is really nothing at path. A dangling symlink is something: its maker meant a
 * file to be read. A user's folder that this process may not search counts as empty, as in p11-kit,
 * since a daemon may well run with another user's HOME.
 */
static bool is_absent(const char *path, enum whose whose)
{
    struct stat st;

    if (lstat(path, &st) == 0)
        return false;
    return errno == ENOENT || errno == ENOTDIR || (whose == FILE_OF_USER && errno == EACCES);
}

/* As file_read(), but where there is no file, 0 and *text is NULL. */
static int read_if_there(char **text, const char *path, enum whose whose, bool secure,
                         struct message *message)
{
    int rc = file_read(text, path, secure, message);

    if ((rc == -ENOENT || rc == -ENOTDIR || rc == -EACCES) && is_absent(path, whose)) {
        *text = NULL;
        return 0;
    }
    return rc;
}

/* Reports a mistake to the caller that wants all of them, and returns 0; otherwise returns rc. */
static int report_mistake(const struct config_places *places, int rc, const struct message *message)
{
    if (rc == 0 || rc == -ENOMEM || places->mistake == NULL)
        return rc;
    places->mistake(places->mistake_context, message->text);
    return 0;
}

/* One `name: value` of a module file. seen has, for each key, its line in this file or 0. */
static int take_pair(struct config *config, const char *path, unsigned line, const char *name,
                     const char *value, unsigned seen[CONFIG_KEYS], struct message *message)
{
    char quoted[QUOTE_BYTES];
    int row = config_row(name);

    if (row < 0) {
        if (!config_is_ours(name))
            return 0;
        message_set(message, "%s:%u: unknown key %s; the nearest is %s", path, line,
                    quote(quoted, name), config_nearest_key(name));
        return -EINVAL;
    }
    if (seen[row] != 0) {
        message_set(message, "%s:%u: %s is already set on line %u", path, line, name, seen[row]);
        return -EINVAL;
    }
    seen[row] = line;
    return config_set(config, row, value, path, line, message);
}

static int take_text(struct config *config, const struct config_places *places, const char *path,
                     char *text, struct message *message)
{
    struct config_lines lines = {.rest = text};
    unsigned seen[CONFIG_KEYS] = {0};
    struct message complaint;
    char *name, *value;
    int rc;

    while ((rc = config_lines_next(&lines, &name, &value, &complaint)) != 0) {
        if (rc < 0)
            message_set(message, "%s:%u: %s", path, lines.line, complaint.text);
        else
            rc = take_pair(config, path, lines.line, name, value, seen, message);
        rc = report_mistake(places, rc, message);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* Takes over what the file at path sets. None there: nothing set. */
static int take_file(struct config *config, const struct config_places *places, const char *path,
                     enum whose whose, struct message *message)
{
    char *text = NULL;
    size_t len;
    int rc = read_if_there(&text, path, whose, places->secure, message);

    if (rc != 0 || text == NULL)
        return report_mistake(places, rc, message);
    len = strlen(text);
    rc = take_text(config, places, path, text, message);
    explicit_bzero(text, len); /* x-target-init may hold a PIN */
    free(text);
    return rc;
}

static int take_file_in(struct config *config, const struct config_places *places,
                        const char *folder, const char *name, enum whose whose,
                        struct message *message)
{
    char *path = join(folder, name);
    int rc;

    if (path == NULL)
        return out_of_memory(message);
    rc = take_file(config, places, path, whose, message);
    free(path);
    return rc;
}

/* The one file of P11_PROXY_CONFIG. It must be there: the environment names it. */
static int take_named_file(struct config *config, const struct config_places *places,
                           struct message *message)
{
    struct message complaint;
    char *text;
    size_t len;
    int rc = file_read(&text, places->env_config, places->secure, &complaint);

    if (rc != 0) {
        message_set(message, "P11_PROXY_CONFIG: %s", complaint.text);
        return report_mistake(places, rc, message);
    }
    len = strlen(text);
    rc = take_text(config, places, places->env_config, text, message);
    explicit_bzero(text, len);
    free(text);
    return rc;
}

static int parse_user_mode(enum config_user *mode, const char *value)
{
    static const struct {
        const char *word;
        enum config_user mode;
    } words[] = {{"none", CONFIG_USER_NONE},
                 {"merge", CONFIG_USER_MERGE},
                 {"only", CONFIG_USER_ONLY},
                 {"override", CONFIG_USER_ONLY}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(value, words[i].word) == 0) {
            *mode = words[i].mode;
            return 0;
        }
    }
    return -EINVAL;
}

/* Reads user-config from a pkcs11.conf, and leaves *mode as it is if that does not say. */
static int read_user_mode(enum config_user *mode, const char *path, enum whose whose, bool secure,
                          struct message *message)
{
    struct config_lines lines = {0};
    struct message complaint;
    char quoted[QUOTE_BYTES];
    char *name, *value, *text = NULL;
    int rc = read_if_there(&text, path, whose, secure, message);

    if (rc != 0 || text == NULL)
        return rc;
    lines.rest = text;
    while ((rc = config_lines_next(&lines, &name, &value, &complaint)) > 0) {
        if (strcmp(name, "user-config") != 0 || parse_user_mode(mode, value) == 0)
            continue;
        message_set(&complaint, "user-config is not one of none, merge, only, override: %s",
                    quote(quoted, value));
        rc = -EINVAL;
        break;
    }
    if (rc < 0)
        message_set(message, "%s:%u: %s", path, lines.line, complaint.text);
    free(text);
    return rc;
}

/* The system's pkcs11.conf decides, then the user's own may, unless the first said none. */
int config_user_mode(enum config_user *mode, const struct config_places *places,
                     struct message *message)
{
    char *path;
    int rc;

    *mode = CONFIG_USER_MERGE;
    rc = read_user_mode(mode, places->system_conf, FILE_OF_SYSTEM, places->secure, message);
    if (rc != 0)
        return rc;
    if (places->secure || places->user_config[0] == '\0')
        *mode = CONFIG_USER_NONE;
    if (*mode == CONFIG_USER_NONE)
        return 0;

    path = join(places->user_config, "pkcs11.conf");
    if (path == NULL)
        return out_of_memory(message);
    rc = read_user_mode(mode, path, FILE_OF_USER, places->secure, message);
    free(path);
    return rc;
}

static int take_all_files(struct config *config, const struct config_places *places,
                          const char *name, struct message *message)
{
    enum config_user mode;
    char *user_modules;
    int rc = config_user_mode(&mode, places, message);

    if (rc == 0 && mode != CONFIG_USER_ONLY)
        rc = take_file_in(config, places, places->package_modules, name, FILE_OF_SYSTEM, message);
    if (rc == 0 && mode != CONFIG_USER_ONLY)
        rc = take_file_in(config, places, places->system_modules, name, FILE_OF_SYSTEM, message);
    if (rc != 0 || mode == CONFIG_USER_NONE)
        return rc;

    user_modules = join(places->user_config, "modules");
    if (user_modules == NULL)
        return out_of_memory(message);
    rc = take_file_in(config, places, user_modules, name, FILE_OF_USER, message);
    free(user_modules);
    return rc;
}

/* "/usr/lib/pkcs11/p11-proxy-luna.so" has its settings in "p11-proxy-luna.module". */
static char *module_file_name(const char *module_path)
{
    const char *slash = strrchr(module_path, '/');
    const char *base = slash != NULL ? slash + 1 : module_path;
    size_t len = strlen(base);
    char *name;

    if (len > 3 && strcmp(base + len - 3, ".so") == 0)
        len -= 3;
    return asprintf(&name, "%.*s.module", (int)len, base) < 0 ? NULL : name;
}

static int take_environment(struct config *config, const char *variable, const char *value,
                            const char *key, struct message *message)
{
    if (value == NULL || value[0] == '\0')
        return 0;
    return config_set(config, config_row(key), value, variable, 0, message);
}

/* Writes "<place>: x-target <complaint>: '<as written>'" and returns rc. */
static int target_complaint(const struct config *config, int rc, const char *complaint,
                            struct message *message)
{
    const struct config_setting *setting = config_find(config, "x-target");
    char where[MESSAGE_BYTES];
    char quoted[QUOTE_BYTES];

    message_set(message, "%s: x-target %s: %s%s", config_origin(setting, where, sizeof where),
                complaint, quote(quoted, setting->text), config_comment_hint(setting->text));
    return rc;
}

/* A plain file name is looked up last: one that a later place overrides need not exist. */
static int resolve_target(struct config *config, const char *folder, struct message *message)
{
    struct message complaint;
    struct stat st;
    char *path;

    if (config->target == NULL || config->target[0] == '/')
        return 0;
    path = join(folder, config->target);
    if (path == NULL)
        return out_of_memory(message);
    config_string_free(config->target);
    config->target = path;
    if (stat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR))
        return 0;
    message_set(&complaint, "is not in %s", folder);
    return target_complaint(config, -ENOENT, complaint.text, message);
}

int config_load(struct config **config, const struct config_places *places, struct message *message)
{
    bool one_file = places->env_config != NULL && places->env_config[0] != '\0';
    struct config *c = NULL;
    char *name = module_file_name(places->module_path);
    int rc = name != NULL ? config_new(&c, message) : out_of_memory(message);

    if (rc != 0)
        goto fail;
    c->expected_file = one_file ? strdup(places->env_config) : join(places->system_modules, name);
    if (c->expected_file == NULL) {
        rc = out_of_memory(message);
        goto fail;
    }
    rc = one_file ? take_named_file(c, places, message) : take_all_files(c, places, name, message);
    if (rc != 0)
        goto fail;
    rc = take_environment(c, "P11_PROXY_TARGET", places->env_target, "x-target", message);
    rc = report_mistake(places, rc, message);
    if (rc != 0)
        goto fail;
    rc = take_environment(c, "P11_PROXY_LOG", places->env_log, "x-log", message);
    rc = report_mistake(places, rc, message);
    if (rc != 0)
        goto fail;
    rc = report_mistake(places, resolve_target(c, places->target_directory, message), message);
    if (rc != 0)
        goto fail;

    free(name);
    *config = c; /* now the caller's */
    return 0;
fail:
    free(name);
    config_free(c);
    return rc;
}

int config_check_target(const struct config *config, struct message *message)
{
    struct message complaint;
    struct stat st;
    int fd;

    if (config->target == NULL) {
        message_set(message,
                    "no token's module is configured: set x-target in %s, or P11_PROXY_TARGET",
                    config->expected_file);
        return -EDESTADDRREQ;
    }
    if (stat(config->target, &st) != 0 && (errno == ENOENT || errno == ENOTDIR))
        return target_complaint(config, -ENOENT, "does not exist", message);
    /* After a stat() that failed otherwise, open() fails likewise and says why. */
    fd = open(config->target, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int rc = -errno;

        if (fd >= 0)
            close(fd);
        message_set(&complaint, "cannot be read (%m)");
        return target_complaint(config, rc, complaint.text, message);
    }
    close(fd);
    if (S_ISDIR(st.st_mode))
        return target_complaint(config, -EISDIR, "is a directory, not a module", message);
    if (!S_ISREG(st.st_mode))
        return target_complaint(config, -EINVAL, "is not a regular file", message);
    return 0;
}
