/* keys.c - the table of keys, and one small parser per type of value. */
#include "config/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads text, which stays, into *field. False if text is not right; then *field is untouched. */
typedef bool parser(void *field, char *text);

/* char *, which is text itself */
static bool parse_text(void *field, char *text)
{
    *(char **)field = text;
    return true;
}

/* char *: an absolute path */
static bool parse_path(void *field, char *text)
{
    return text[0] == '/' && parse_text(field, text);
}

/* char *: an absolute path or a plain file name. Nothing relative, because that would load what happens
 * to lie in the application's directory. */
static bool parse_target(void *field, char *text)
{
    bool relative = text[0] == '\0' || strlen(text) > NAME_MAX || strchr(text, '/') != NULL ||
                    strcmp(text, ".") == 0 || strcmp(text, "..") == 0;
    return (text[0] == '/' || !relative) && parse_text(field, text);
}

struct unit {
    const char *name;
    unsigned long long factor;
};

/* unsigned: digits, blanks and a unit */
static bool parse_amount(void *field, const char *text, const struct unit *units,
                         unsigned long long least, unsigned long long most)
{
    char *behind;
    unsigned long long number = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &behind, 10) : 0;
    if (number == 0 || number > most)
        return false;
    behind += strspn(behind, " \t");
    while (units->name != NULL && strcmp(behind, units->name) != 0)
        units++;
    number *= units->factor;
    if (number < least || number > most)
        return false;
    *(unsigned *)field = (unsigned)number;
    return true;
}

/* unsigned, bytes */
static bool parse_size(void *field, char *text)
{
    static const struct unit units[] = {{"", 1}, {"KiB", 1024}, {"MiB", 1024 * 1024}, {NULL, 0}};
    return parse_amount(field, text, units, 4 * 1024, 16 * 1024 * 1024);
}

/* unsigned, milliseconds */
static bool parse_age(void *field, char *text)
{
    /* No plain number, because it would not say of what. */
    static const struct unit units[] = {{"ms", 1}, {"s", 1000}, {"min", 60 * 1000}, {NULL, 0}};
    return parse_amount(field, text, units, 10, 60 * 60 * 1000);
}

/* struct log_settings */
static bool parse_log(void *field, char *text)
{
    return log_settings_parse(field, text);
}

#define FIELD(name) offsetof(struct config, name)

/* A new key is a row here, a field in struct config, one more in CONFIG_KEYS, and a paragraph in
 * p11-proxy.module(5). */
/* clang-format off */
static const struct key {
    const char *name;
    parser     *parse;   /* NULL: the words of an enum that counts from 0 in their order */
    size_t      field;
    const char *initial; /* NULL: not set */
    const char *right;   /* the words, or the rest of "x-target is not ..." */
} keys[CONFIG_KEYS] = {
    {"x-target",           parse_target, FIELD(target),           NULL,
     "an absolute path or a plain file name"},
    {"x-target-init",      parse_text,   FIELD(target_init),      NULL,      NULL},
    {"x-pool",             NULL,         FIELD(pool),             "on",      "off, on"},
    {"x-pool-size",        parse_size,   FIELD(pool_size_bytes),  "64KiB",
     "between 4KiB and 16MiB, in bytes, KiB or MiB"},
    {"x-pool-max-age",     parse_age,    FIELD(pool_max_age_ms),  "10s",
     "between 10ms and 60min, in ms, s or min"},
    {"x-pool-threads",     NULL,         FIELD(pool_threads),     "auto",    "auto, never, require"},
    {"x-pool-on-seed",     NULL,         FIELD(pool_on_seed),     "flush",   "flush, keep"},
    {"x-pool-mix",         NULL,         FIELD(pool_mix),         "none",    "none, kernel"},
    {"x-pool-lock-memory", NULL,         FIELD(pool_lock_memory), "auto",    "auto, never"},
    {"x-disabled-algorithms",
                           parse_text,   FIELD(disabled_algorithms), NULL,   NULL},
    {"x-disabled-algorithms-file",
                           parse_path,   FIELD(disabled_algorithms_file), NULL,
     "an absolute path"},
    {"x-policy",           NULL,         FIELD(policy),           "enforce", "enforce, audit"},
    {"x-statistics",       NULL,         FIELD(statistics),       "on",      "off, on"},
    {"x-log",              parse_log,    FIELD(log),              "syslog",
     LOG_DESTINATION_WORDS " or an absolute path without blanks, alone or with one of "
     LOG_LEVEL_WORDS " after it"},
};
/* clang-format on */

/*
 * The key that was meant by a name that is none; NULL if it is another program's. Names that start with x- are meant
 * for the proxy, p11-kit's own two excepted, and so are keys that lost their x-: otherwise "disabled-algorithms: MD5"
 * would be a policy that is not in force.
 */
static const char *mistyped_key(const char *name)
{
    bool is_meant = (name[0] == 'x' || name[0] == 'X') && name[1] == '-';
    const char *nearest = keys[0].name;
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        is_meant = is_meant || edit_distance(name, keys[i].name + 2) == 0;
        if (edit_distance(name, keys[i].name) < edit_distance(name, nearest))
            nearest = keys[i].name;
    }
    return is_meant && word_number(name, "x-init-reserved, x-trust-lookup") < 0 ? nearest : NULL;
}

static bool parse(struct config *config, const struct key *key, char *text)
{
    /* An enum without negative values is an unsigned int to both compilers. */
    _Static_assert(sizeof(enum config_threads) == sizeof(unsigned), "stored as unsigned");
    void *field = (char *)config + key->field;
    if (key->parse != NULL)
        return key->parse(field, text);
    int number = word_number(text, key->right);
    if (number >= 0)
        *(unsigned *)field = (unsigned)number;
    return number >= 0;
}

void keys_set_defaults(struct config *config)
{
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        config->settings[i] = (struct config_setting){.key = keys[i].name, .text = keys[i].initial};
        if (keys[i].initial != NULL)
            parse(config, &keys[i], (char *)keys[i].initial);
    }
}

struct message *keys_mistake(struct config *config)
{
    if (config->mistake_count < CONFIG_MISTAKES_MOST)
        config->mistake_count++;
    return &config->mistakes[config->mistake_count - 1];
}

/* A value may hold a PIN. */
static void forget(char *value)
{
    if (value != NULL)
        explicit_bzero(value, strlen(value));
    free(value);
}

void keys_take(struct config *config, const char *name, const char *value, const char *from,
               unsigned line)
{
    char quoted[QUOTE_BYTES], where[MESSAGE_BYTES];
    struct config_setting *setting = (struct config_setting *)config_find(config, name);
    const char *meant = setting == NULL ? mistyped_key(name) : NULL;
    if (meant != NULL)
        message_set(keys_mistake(config), "%s:%u: unknown key %s; the nearest is %s", from, line,
                    quote(quoted, name), meant);
    if (setting == NULL)
        return;
    const struct key *key = &keys[setting - config->settings];
    struct config_setting taken = {key->name, value, from, line, strdup(value)};
    if (setting->from == from) /* the same string, not an equal one */
        message_set(keys_mistake(config), "%s:%u: %s is already set on line %u", from, line, name,
                    setting->line);
    else if (taken.value == NULL)
        message_set(keys_mistake(config), "out of memory");
    else if (!parse(config, key, taken.value))
        message_set(keys_mistake(config), "%s: %s is not %s%s: %s",
                    config_origin(&taken, where, sizeof where), name,
                    key->parse == NULL ? "one of " : "", key->right, quote(quoted, value));
    else {
        /* What was there goes, as what is wrong does below. */
        char *old = setting->value;
        taken.text = key->field == FIELD(target_init) ? "(hidden)" : taken.value;
        *setting = taken;
        taken.value = old;
    }
    forget(taken.value);
}

void config_free(struct config *config)
{
    if (config == NULL)
        return;
    for (int i = 0; i < CONFIG_KEYS; i++)
        forget(config->settings[i].value);
    free(config->package_file);
    free(config->system_file);
    free(config->user_file);
    free(config->target_path);
    free(config->mistakes);
    free(config);
}

const struct config_setting *config_find(const struct config *config, const char *key)
{
    for (int i = 0; i < CONFIG_KEYS; i++)
        if (strcmp(keys[i].name, key) == 0)
            return &config->settings[i];
    return NULL;
}

const char *config_origin(const struct config_setting *setting, char *out, size_t out_bytes)
{
    if (setting->from == NULL)
        snprintf(out, out_bytes, "default");
    else if (setting->line == 0)
        snprintf(out, out_bytes, "%s", setting->from);
    else
        snprintf(out, out_bytes, "%s:%u", setting->from, setting->line);
    return out;
}
