/* config_lines.h - takes a text in the format of pkcs11.conf(5) apart, line by line. */
#ifndef P11_PROXY_CONFIG_LINES_H
#define P11_PROXY_CONFIG_LINES_H

#include "base/message.h"

/* Where the reading stands. Starts as { text } with a text that may be written to. */
struct config_lines {
    char *rest;
    unsigned line; /* number of the line last read, from 1 */
};

/*
 * Goes to the next line that is neither blank nor a comment; *name and *value then point into the
 * text, without white space around them.
 * Returns 1, 0 at the end, or -EINVAL with the rest of a message for a line that is not
 * `name: value`.
 */
int config_lines_next(struct config_lines *lines, char **name, char **value,
                      struct message *message);

#endif
