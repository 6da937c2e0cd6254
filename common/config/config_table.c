/* config_table.c - the table of keys, and the struct that it fills. */
#include "config/config_table.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_value.h"
#include "base/nearest.h"

#define WORDS(...)  ((const char *const[]){__VA_ARGS__, NULL})
#define FIELD(name) offsetof(struct config, name)

/* A new key is a row here, a field in struct config, one more in CONFIG_KEYS, and a paragraph in
 * p11-proxy.module(5). */
/* clang-format off */
static const struct row {
    const char        *key;
    config_parser     *parse;
    size_t             field;
    const char        *initial; /* NULL: not set */
    const char *const *words;   /* of parse_word, in the order of the enum */
} rows[] = {
    { "x-target",           parse_target,    FIELD(target),             NULL,      NULL },
    { "x-target-init",      parse_string,    FIELD(target_init),        NULL,      NULL },
    { "x-pool",             parse_on_off,    FIELD(pool),               "on",      NULL },
    { "x-pool-size",        parse_pool_size, FIELD(pool_size_bytes),    "64KiB",   NULL },
    { "x-pool-max-age",     parse_max_age,   FIELD(pool_max_age_ms),    "10s",     NULL },
    { "x-pool-threads",     parse_word,      FIELD(pool_threads),       "auto",
      WORDS("auto", "never", "require") },
    { "x-pool-on-seed",     parse_word,      FIELD(pool_on_seed),       "flush",
      WORDS("flush", "keep") },
    { "x-pool-mix",         parse_word,      FIELD(pool_mix),           "none",
      WORDS("none", "kernel") },
    { "x-pool-lock-memory", parse_word,      FIELD(pool_lock_memory),   "auto",
      WORDS("auto", "never") },
    { "x-disabled-algorithms",
                            parse_string,    FIELD(disabled_algorithms), NULL,     NULL },
    { "x-disabled-algorithms-file",
                            parse_absolute_path, FIELD(disabled_algorithms_file), NULL, NULL },
    { "x-policy",           parse_word,      FIELD(policy),             "enforce",
      WORDS("enforce", "audit") },
    { "x-statistics",       parse_on_off,    FIELD(statistics),         "on",      NULL },
    { "x-log",              parse_log,       FIELD(log),                "syslog",  NULL },
};
/* clang-format on */
_Static_assert(sizeof rows / sizeof rows[0] == CONFIG_KEYS, "CONFIG_KEYS counts the rows");

/* Keys of p11-kit's own that start like ours. */
static const char *const foreign_keys[] = {"x-init-reserved", "x-trust-lookup"};

/* May hold a PIN, so it is never shown. */
static bool is_secret(const struct row *row)
{
    return row->field == FIELD(target_init);
}

static void setting_clear(struct config_setting *setting)
{
    free((char *)setting->text);
    free((char *)setting->from);
    setting->text = setting->from = NULL;
}

/* Replaces the record of where a key's value came from. */
static int setting_record(struct config_setting *setting, const char *text, const char *from,
                          unsigned line)
{
    char *text_copy = strdup(text);
    char *from_copy = from != NULL ? strdup(from) : NULL;

    if (text_copy == NULL || (from != NULL && from_copy == NULL)) {
        free(text_copy);
        free(from_copy);
        return -ENOMEM;
    }
    setting_clear(setting);
    setting->text = text_copy;
    setting->from = from_copy;
    setting->line = line;
    return 0;
}

int config_set(struct config *config, int row_number, const char *text, const char *from,
               unsigned line, struct message *message)
{
    const struct row *row = &rows[row_number];
    const struct config_setting place = {row->key, text, from, line};
    struct message complaint;
    char where[MESSAGE_BYTES];
    char quoted[QUOTE_BYTES];
    int rc;

    rc = row->parse((char *)config + row->field, text, row->words, &complaint);
    if (rc == 0)
        rc = setting_record(&config->settings[row_number], is_secret(row) ? "(hidden)" : text, from,
                            line);
    if (rc == -EINVAL)
        message_set(message, "%s: %s %s: %s%s", config_origin(&place, where, sizeof where),
                    row->key, complaint.text, quote(quoted, text), config_comment_hint(text));
    else if (rc != 0)
        message_set(message, "%s: out of memory", config_origin(&place, where, sizeof where));
    return rc;
}

int config_new(struct config **config, struct message *message)
{
    struct config *c = calloc(1, sizeof *c);
    int rc = 0;

    if (c == NULL) {
        message_set(message, "out of memory");
        return -ENOMEM;
    }
    for (int i = 0; i < CONFIG_KEYS && rc == 0; i++) {
        c->settings[i].key = rows[i].key;
        if (rows[i].initial != NULL)
            rc = config_set(c, i, rows[i].initial, NULL, 0, message);
    }
    if (rc != 0) {
        config_free(c);
        return rc;
    }
    *config = c;
    return 0;
}

void config_free(struct config *config)
{
    if (config == NULL)
        return;
    config_string_free(config->target);
    config_string_free(config->target_init);
    config_string_free(config->disabled_algorithms);
    config_string_free(config->disabled_algorithms_file);
    free(config->expected_file);
    for (int i = 0; i < CONFIG_KEYS; i++)
        setting_clear(&config->settings[i]);
    free(config);
}

int config_row(const char *key)
{
    for (int i = 0; i < CONFIG_KEYS; i++)
        if (strcmp(rows[i].key, key) == 0)
            return i;
    return -1;
}

bool config_is_ours(const char *name)
{
    for (size_t i = 0; i < sizeof foreign_keys / sizeof foreign_keys[0]; i++)
        if (strcmp(name, foreign_keys[i]) == 0)
            return false;
    if ((name[0] == 'x' || name[0] == 'X') && name[1] == '-')
        return true;
    for (int i = 0; i < CONFIG_KEYS; i++)
        if (edit_distance(name, rows[i].key + 2) == 0) /* 0: the same but for the case */
            return true;
    return false;
}

const char *config_nearest_key(const char *name)
{
    const char *nearest = rows[0].key;
    size_t least = SIZE_MAX;

    for (int i = 0; i < CONFIG_KEYS; i++) {
        size_t distance = edit_distance(name, rows[i].key);

        if (distance < least) {
            least = distance;
            nearest = rows[i].key;
        }
    }
    return nearest;
}

const char *config_comment_hint(const char *text)
{
    return strstr(text, " #") != NULL ? "; a comment needs a line of its own" : "";
}

const struct config_setting *config_find(const struct config *config, const char *key)
{
    int row = config_row(key);

    return row >= 0 ? &config->settings[row] : NULL;
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
