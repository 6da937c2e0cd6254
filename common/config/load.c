/* load.c - reads the files in their order, then the environment, and looks for the target. */
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/words.h"
#include "config/keys.h"

struct reading {
    const struct config_places *places;
    struct config *config;
    enum config_user user;
    bool of_keys;            /* what is read now: keys, or user-config alone */
    struct message *message; /* of the first mistake */
    bool failed;
};

/* Whether a file has to be there. A user's folder that this process may not search counts as empty, as in
 * p11-kit, since a daemon may run with another user's HOME. */
enum kind { FILE_NAMED, FILE_OF_SYSTEM, FILE_OF_USER };

static void tell_mistake(struct reading *reading, const struct message *mistake)
{
    if (reading->places->mistake != NULL) {
        reading->places->mistake(reading->places->mistake_context, mistake->text);
        return;
    }
    if (!reading->failed)
        *reading->message = *mistake;
    reading->failed = true;
}

/* Gives text, from malloc(), to the configuration, and returns it. NULL if memory was short, here or before. */
static char *own(struct reading *reading, char *text)
{
    struct config *config = reading->config;
    if (text == NULL || config->text_count == CONFIG_TEXTS) {
        free(text);
        message_set(reading->message, "out of memory");
        reading->failed = true;
        return NULL;
    }
    config->texts[config->text_count++] = (struct config_text){text, strlen(text)};
    return text;
}

__attribute__((format(printf, 2, 3))) static char *own_format(struct reading *reading,
                                                              const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    return own(reading, text);
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

static int take_user_mode(struct reading *reading, const char *name, const char *value,
                          const char *path, unsigned line, struct message *message)
{
    static const char words[] = "none, merge, only, override"; /* the last two mean the same */
    char quoted[QUOTE_BYTES];
    int number = strcmp(name, "user-config") == 0 ? word_number(value, words) : (int)reading->user;
    if (number < 0) {
        message_set(message, "%s:%u: user-config is not one of %s: %s", path, line, words,
                    quote(quoted, value));
        return -1;
    }
    reading->user = number < CONFIG_USER_ONLY ? (enum config_user)number : CONFIG_USER_ONLY;
    return 0;
}

/* Takes a text in the format of pkcs11.conf(5) apart. */
static void take_lines(struct reading *reading, char *text, const char *path)
{
    static const char byte_order_mark[] = "\xEF\xBB\xBF";
    struct message message;
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
            message_set(&message, "%s:%u: a line that is not `name: value`, starting with %s", path,
                        line, quote(quoted, name));
            tell_mistake(reading, &message);
            continue;
        }
        *colon = '\0';
        char *value = trim(colon + 1);
        name = trim(name);
        if (reading->of_keys ? keys_take(reading->config, name, value, path, line, &message) != 0
                             : take_user_mode(reading, name, value, path, line, &message) != 0)
            tell_mistake(reading, &message);
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

/* path: NULL if there was no memory for it. */
static void take_file(struct reading *reading, const char *path, enum kind kind)
{
    struct message why, message;
    char *text;
    if (path == NULL)
        return;
    int rc = file_read(&text, path, reading->places->secure, &why);
    if (rc == 0 && own(reading, text) != NULL)
        take_lines(reading, text, path);
    else if (rc != 0 && !is_absent(path, kind)) {
        message_set(&message, "%s%s", kind == FILE_NAMED ? "P11_PROXY_CONFIG: " : "", why.text);
        tell_mistake(reading, &message);
    }
}

/* The system's pkcs11.conf decides, then the user's own may, unless the first said none. */
static void find_user_mode(struct reading *reading)
{
    const struct config_places *places = reading->places;
    reading->user = CONFIG_USER_MERGE;
    take_file(reading, places->system_conf, FILE_OF_SYSTEM);
    if (places->secure || places->user_config[0] == '\0')
        reading->user = CONFIG_USER_NONE;
    if (reading->user != CONFIG_USER_NONE)
        take_file(reading, own_format(reading, "%s/pkcs11.conf", places->user_config),
                  FILE_OF_USER);
}

static void free_texts(struct config *config)
{
    while (config->text_count != 0) {
        struct config_text *owned = &config->texts[--config->text_count];
        explicit_bzero(owned->text, owned->len); /* x-target-init may hold a PIN */
        free(owned->text);
    }
}

int config_user_mode(enum config_user *mode, const struct config_places *places,
                     struct message *message)
{
    struct config config = {0};
    struct reading reading = {.places = places, .config = &config, .message = message};
    find_user_mode(&reading);
    free_texts(&config);
    *mode = reading.user;
    return reading.failed ? -1 : 0;
}

static void take_files(struct reading *reading)
{
    const struct config_places *places = reading->places;
    struct config *config = reading->config;
    const char *slash = strrchr(places->module_path, '/');
    const char *name = slash != NULL ? slash + 1 : places->module_path;
    int len = (int)strlen(name);
    if (len > 3 && strcmp(name + len - 3, ".so") == 0)
        len -= 3;
    if (places->env_config != NULL && places->env_config[0] != '\0') {
        reading->of_keys = true;
        config->expected_file = own_format(reading, "%s", places->env_config);
        take_file(reading, config->expected_file, FILE_NAMED);
        return;
    }
    find_user_mode(reading);
    reading->of_keys = true;
    config->expected_file =
        own_format(reading, "%s/%.*s.module", places->system_modules, len, name);
    if (reading->user != CONFIG_USER_ONLY) {
        take_file(reading,
                  own_format(reading, "%s/%.*s.module", places->package_modules, len, name),
                  FILE_OF_SYSTEM);
        take_file(reading, config->expected_file, FILE_OF_SYSTEM);
    }
    if (reading->user != CONFIG_USER_NONE)
        take_file(reading,
                  own_format(reading, "%s/modules/%.*s.module", places->user_config, len, name),
                  FILE_OF_USER);
}

static void take_variable(struct reading *reading, const char *key, const char *variable,
                          const char *value)
{
    struct message message;
    char *text = value != NULL && value[0] != '\0' ? own_format(reading, "%s", value) : NULL;
    if (text != NULL && keys_take(reading->config, key, text, variable, 0, &message) != 0)
        tell_mistake(reading, &message);
}

int config_load(struct config **config, const struct config_places *places, struct message *message)
{
    struct config *c = calloc(1, sizeof *c);
    struct reading reading = {.places = places, .config = c, .message = message};
    if (c == NULL) {
        message_set(message, "out of memory");
        return -1;
    }
    keys_set_defaults(c);
    take_files(&reading);
    take_variable(&reading, "x-target", "P11_PROXY_TARGET", places->env_target);
    take_variable(&reading, "x-log", "P11_PROXY_LOG", places->env_log);
    if (c->target != NULL && c->target[0] != '/')
        c->target = own_format(&reading, "%s/%s", places->target_directory, c->target);
    if (reading.failed) {
        config_free(c);
        return -1;
    }
    *config = c; /* now the caller's */
    return 0;
}

void config_free(struct config *config)
{
    if (config != NULL)
        free_texts(config);
    free(config);
}

int config_check_target(const struct config *config, struct message *message)
{
    const struct config_setting *setting = config_find(config, "x-target");
    const char *target = config->target;
    struct stat st;
    if (target == NULL) {
        message_set(message,
                    "no token's module is configured: set x-target in %s, or P11_PROXY_TARGET",
                    config->expected_file);
        return -1;
    }
    int fd = open(target, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    bool missing = fd < 0 && (errno == ENOENT || errno == ENOTDIR);
    int rc = 0;
    if (missing && setting->text[0] != '/')
        rc = keys_refuse(message, setting, "is not in %.*s",
                         (int)(strlen(target) - strlen(setting->text) - 1), target);
    else if (missing)
        rc = keys_refuse(message, setting, "does not exist");
    else if (fd < 0 || fstat(fd, &st) != 0)
        rc = keys_refuse(message, setting, "cannot be read (%m)");
    else if (S_ISDIR(st.st_mode))
        rc = keys_refuse(message, setting, "is a directory, not a module");
    else if (!S_ISREG(st.st_mode))
        rc = keys_refuse(message, setting, "is not a regular file");
    if (fd >= 0)
        close(fd);
    return rc;
}
