/* message.c - builds a line for a person, and quotes what came from outside. */
#include "base/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void message_set(struct message *message, const char *format, ...)
{
    int saved = errno;
    va_list args;

    va_start(args, format);
    vsnprintf(message->text, sizeof message->text, format, args);
    va_end(args);
    errno = saved;
}

const char *quote(char out[QUOTE_BYTES], const char *value)
{
    static const char hex[] = "0123456789abcdef";
    char *at = out;

    *at++ = '\'';
    for (size_t i = 0; value[i] != '\0'; i++) {
        unsigned char c = (unsigned char)value[i];

        if (i == QUOTE_SHOWN_BYTES) {
            at = stpcpy(at, "...");
            break;
        }
        if (c >= ' ' && c <= '~') {
            *at++ = (char)c;
        } else {
            *at++ = '\\';
            *at++ = 'x';
            *at++ = hex[c >> 4];
            *at++ = hex[c & 15];
        }
    }
    *at++ = '\'';
    *at = '\0';
    return out;
}
