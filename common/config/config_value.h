/* config_value.h - one small parser per type of value. */
#ifndef P11_PROXY_CONFIG_VALUE_H
#define P11_PROXY_CONFIG_VALUE_H

#include "base/message.h"

/*
 * Reads text into *field, whose type is named below. words is the NULL-ended list of a word key.
 * Returns 0, or -EINVAL or -ENOMEM with *field untouched. With -EINVAL, complaint is the middle of
 * the sentence "x-pool-size <complaint>: '3 fish'".
 */
typedef int config_parser(void *field, const char *text, const char *const *words,
                          struct message *complaint);

config_parser parse_on_off;        /* bool */
config_parser parse_word;          /* an enum that counts from 0 in the order of words */
config_parser parse_pool_size;     /* size_t, bytes */
config_parser parse_max_age;       /* unsigned, milliseconds */
config_parser parse_string;        /* char *, from malloc(): replaces and frees the one before */
config_parser parse_absolute_path; /* char *, likewise */
config_parser parse_target;        /* char *, likewise: an absolute path or a plain file name */
config_parser parse_log;           /* struct log_settings */

/* Frees a string from malloc() and leaves no copy behind: it may have held a PIN. NULL is fine. */
void config_string_free(char *string);

#endif
