/* config_table.h - the table of keys, for those who fill a struct config. */
#ifndef P11_PROXY_CONFIG_TABLE_H
#define P11_PROXY_CONFIG_TABLE_H

#include "config/config.h"

/* A struct config with every default in force. Returns 0 or -ENOMEM with a message. */
int config_new(struct config **config, struct message *message);

/* The row of a key, or -1. */
int config_row(const char *key);

/*
 * Whether a name in a file is meant for us: one that starts with x- (in either case, p11-kit's own
 * two excepted), or one of our keys that lost its x-. Ignoring "disabled-algorithms: MD5" as some
 * other program's would be a policy that is quietly not there.
 */
bool config_is_ours(const char *name);

/* The key that a mistyped name most likely means. */
const char *config_nearest_key(const char *name);

/*
 * Sets one key. from and line are as in struct config_setting, and copied.
 * Returns 0, -EINVAL or -ENOMEM, with a message that starts with the place.
 */
int config_set(struct config *config, int row, const char *text, const char *from, unsigned line,
               struct message *message);

/* What a message about a value says besides if there is a comment behind it; else "". */
const char *config_comment_hint(const char *text);

#endif
