/* message.c - builds a line for a person, and quotes what came from outside. */
#include "base/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/keep_errno.h"

void message_set(struct message *message, const char *format, ...)
{
    KEEP_ERRNO();
    va_list args;

    va_start(args, format);
    vsnprintf(message->text, sizeof message->text, format, args);
    va_end(args);
}

const char *quote(char out[QUOTE_BYTES], const char *value)
{
    char *at = stpcpy(out, "'");

    for (size_t i = 0; i < QUOTE_SHOWN_BYTES && value[i] != '\0'; i++) {
        unsigned char c = (unsigned char)value[i];
        at += sprintf(at, c >= ' ' && c <= '~' ? "%c" : "\\x%02x", c);
    }
    strcpy(at, strnlen(value, QUOTE_SHOWN_BYTES + 1) > QUOTE_SHOWN_BYTES ? "...'" : "'");
    return out;
}
