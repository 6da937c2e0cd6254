/* message.h - a line for a person: what went wrong, where, and what would have been right; and known words.
 * Any thread; nothing here can fail. */
#ifndef P11_PROXY_MESSAGE_H
#define P11_PROXY_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    MESSAGE_BYTES = 1024,                    /* a longer message is cut */
    QUOTE_SHOWN_BYTES = 80,                  /* of a quoted value; "..." stands for the rest */
    QUOTE_BYTES = 4 * QUOTE_SHOWN_BYTES + 8, /* each byte may become \x1b */
};

/* Belongs to the caller, and needs no beginning and no end. */
struct message {
    char text[MESSAGE_BYTES];
};

/* Writes the message. Keeps errno, so %m may be used. */
void message_set(struct message *message, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes value in quotes to out, and returns out. Bytes that are not printable ASCII appear as \xNN,
 * because a value comes from a file and may end on a terminal. */
const char *quote(char out[QUOTE_BYTES], const char *value);

/* The place of word in a list such as "auto, never, require", from 0; -1 if it is not there. */
int word_number(const char *word, const char *words);

/*
 * The fewest letters to add, drop or change that turn typed into known, upper and lower case alike.
 * SIZE_MAX if one of them is longer than 127 bytes.
 */
size_t edit_distance(const char *typed, const char *known);

/* Not tolower() or strncasecmp(): the application's locale must not decide what is meant. */
static inline unsigned char lower(char c)
{
    unsigned u = (unsigned char)c;
    return (unsigned char)(u | (u - 'A' < 26u ? 0x20u : 0u));
}

/* Whether the first len bytes are the same but for case; a NUL ends either. */
static inline bool same_text(const char *left, const char *right, size_t len)
{
    size_t i = 0;
    while (i < len && lower(left[i]) == lower(right[i]) && left[i] != '\0')
        i++;
    return i == len;
}

#endif
