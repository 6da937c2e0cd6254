/* keys.h - the table of keys, as the reader of files needs it. */
#ifndef P11_PROXY_CONFIG_KEYS_H
#define P11_PROXY_CONFIG_KEYS_H

#include "config/config.h"

/* Gives every key its default. Before, config is all zero bytes. */
void keys_set_defaults(struct config *config);

/* Takes over one `name: value`, or adds a mistake. from stays, and is the same pointer for all of a file;
 * it and line are as in struct config_setting. A key of another program is ignored. */
void keys_take(struct config *config, const char *name, const char *value, const char *from,
               unsigned line);

/* What the caller writes a mistake to. Those after CONFIG_MISTAKES_MOST replace each other. */
struct message *keys_mistake(struct config *config);

#endif
