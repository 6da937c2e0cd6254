/* config_value.c - one small parser per type of value. */
#include "config/config_value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

int parse_on_off(void *field, const char *text, const char *const *words, struct message *complaint)
{
    bool on = strcmp(text, "on") == 0;

    (void)words;
    if (!on && strcmp(text, "off") != 0) {
        message_set(complaint, "is neither on nor off");
        return -EINVAL;
    }
    *(bool *)field = on;
    return 0;
}

/* "is not one of auto, never, require" */
static void complain_of_words(const char *const *words, struct message *complaint)
{
    char list[MESSAGE_BYTES / 2] = "";

    for (size_t i = 0; words[i] != NULL; i++) {
        if (i > 0)
            strncat(list, ", ", sizeof list - strlen(list) - 1);
        strncat(list, words[i], sizeof list - strlen(list) - 1);
    }
    message_set(complaint, "is not one of %s", list);
}

int parse_word(void *field, const char *text, const char *const *words, struct message *complaint)
{
    /* An enum without negative values is an unsigned int to both compilers. */
    _Static_assert(sizeof(enum config_threads) == sizeof(unsigned),
                   "an enum is stored as unsigned");

    for (unsigned i = 0; words[i] != NULL; i++) {
        if (strcmp(text, words[i]) == 0) {
            *(unsigned *)field = i;
            return 0;
        }
    }
    complain_of_words(words, complaint);
    return -EINVAL;
}

struct unit {
    const char *name;
    unsigned long factor;
};

/* Reads digits, blanks and a unit. False also when the amount exceeds most. */
static bool parse_amount(unsigned long *amount, const char *text, const struct unit *units,
                         unsigned long most)
{
    unsigned long number = 0;
    const char *at = text;

    for (; *at >= '0' && *at <= '9'; at++) {
        number = number * 10 + (unsigned long)(*at - '0');
        if (number > most) /* before it can overflow: no factor is below 1 */
            return false;
    }
    if (at == text)
        return false;
    at += strspn(at, " \t");
    for (size_t i = 0; units[i].name != NULL; i++) {
        if (strcmp(at, units[i].name) != 0)
            continue;
        if (number > most / units[i].factor)
            return false;
        *amount = number * units[i].factor;
        return true;
    }
    return false;
}

int parse_pool_size(void *field, const char *text, const char *const *words,
                    struct message *complaint)
{
    static const struct unit units[] = {{"", 1}, {"KiB", 1024}, {"MiB", 1024 * 1024}, {NULL, 0}};
    unsigned long bytes;

    (void)words;
    if (!parse_amount(&bytes, text, units, CONFIG_POOL_SIZE_MOST_BYTES) ||
        bytes < CONFIG_POOL_SIZE_LEAST_BYTES) {
        message_set(complaint, "is not between 4KiB and 16MiB, in bytes, KiB or MiB");
        return -EINVAL;
    }
    *(size_t *)field = bytes;
    return 0;
}

int parse_max_age(void *field, const char *text, const char *const *words,
                  struct message *complaint)
{
    /* No plain number: ten of what? */
    static const struct unit units[] = {{"ms", 1}, {"s", 1000}, {"min", 60 * 1000}, {NULL, 0}};
    unsigned long ms;

    (void)words;
    if (!parse_amount(&ms, text, units, CONFIG_MAX_AGE_MOST_MS) || ms < CONFIG_MAX_AGE_LEAST_MS) {
        message_set(complaint, "is not between 10ms and 60min, in ms, s or min");
        return -EINVAL;
    }
    *(unsigned *)field = (unsigned)ms;
    return 0;
}

void config_string_free(char *string)
{
    if (string != NULL)
        explicit_bzero(string, strlen(string));
    free(string);
}

int parse_string(void *field, const char *text, const char *const *words, struct message *complaint)
{
    char *copy = strdup(text);

    (void)words;
    (void)complaint;
    if (copy == NULL)
        return -ENOMEM;
    config_string_free(*(char **)field);
    *(char **)field = copy;
    return 0;
}

int parse_absolute_path(void *field, const char *text, const char *const *words,
                        struct message *complaint)
{
    if (text[0] != '/') {
        message_set(complaint, "is not an absolute path");
        return -EINVAL;
    }
    return parse_string(field, text, words, complaint);
}

int parse_target(void *field, const char *text, const char *const *words, struct message *complaint)
{
    /* A path relative to wherever the application happens to be would load whatever lies there. */
    bool plain_name = text[0] != '\0' && strchr(text, '/') == NULL && strcmp(text, ".") != 0 &&
                      strcmp(text, "..") != 0;

    if (text[0] != '/' && !plain_name) {
        message_set(complaint, "is neither an absolute path nor a plain file name");
        return -EINVAL;
    }
    return parse_string(field, text, words, complaint);
}

int parse_log(void *field, const char *text, const char *const *words, struct message *complaint)
{
    (void)words;
    if (log_settings_parse(field, text) != 0) {
        message_set(complaint, "is not off, syslog, stderr or an absolute path without blanks, "
                               "alone or with error, warning, info or debug after it");
        return -EINVAL;
    }
    return 0;
}
