/* keys.h - the table of keys, as the reader of files needs it. */
#ifndef P11_PROXY_CONFIG_KEYS_H
#define P11_PROXY_CONFIG_KEYS_H

#include "config/config.h"

/* Gives every key its default. Before, config is all zero bytes. */
void keys_set_defaults(struct config *config);

/*
 * Takes over one `name: value`. The three strings lie in memory that config owns; from and line are as in
 * struct config_setting. A key of another program is ignored.
 * Returns 0, or -1 with a message if the name or value is wrong, or if the file has set the key already.
 */
int keys_take(struct config *config, const char *name, char *value, const char *from, unsigned line,
              struct message *message);

/* "; a comment needs a line of its own" if text seems to have one behind a value, else "". */
const char *keys_comment_hint(const char *text);

/* Writes "<place>: <key> <complaint>: '<as written>'", and returns -1. */
int keys_refuse(struct message *message, const struct config_setting *setting, const char *format,
                ...) __attribute__((format(printf, 3, 4)));

#endif
