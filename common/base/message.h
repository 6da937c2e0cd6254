/* message.h - one line for a person: what went wrong, where, and what would have been right. */
#ifndef P11_PROXY_MESSAGE_H
#define P11_PROXY_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    MESSAGE_BYTES = 1024,   /* a longer message is cut; its start names the place */
    QUOTE_SHOWN_BYTES = 80, /* of a quoted value; what follows is shown as "..." */
    QUOTE_BYTES = 4 * QUOTE_SHOWN_BYTES + 8, /* each byte may become \x1b; two quotes, dots, NUL */
};

/* Belongs to the caller, who needs neither to clear nor to free it. */
struct message {
    char text[MESSAGE_BYTES];
};

/* Writes the message. Any thread. Leaves errno alone, so that %m may be used. Cannot fail. */
void message_set(struct message *message, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Puts 'value' with its quotes into out and returns out. Bytes that are not printable ASCII appear
 * as \xNN: a value comes from a file and may end on a terminal. Any thread. Cannot fail.
 */
const char *quote(char out[QUOTE_BYTES], const char *value);

#endif
