/* message.c - builds a line for a person, quotes what came from outside, and compares it with known words. */
#include "base/message.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/keep_errno.h"

enum { LONGEST_WORD = 127 };

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

int word_number(const char *word, const char *words)
{
    for (int number = 0; *words != '\0'; number++) {
        size_t len = strcspn(words, ",");
        if (strlen(word) == len && memcmp(word, words, len) == 0)
            return number;
        words += len;
        words += strspn(words, ", ");
    }
    return -1;
}

size_t edit_distance(const char *typed, const char *known)
{
    size_t known_len = strnlen(known, LONGEST_WORD + 1);
    size_t row[LONGEST_WORD +
               1]; /* row[k]: the distance from what was read of typed to known's first k letters */
    if (strnlen(typed, LONGEST_WORD + 1) > LONGEST_WORD || known_len > LONGEST_WORD)
        return SIZE_MAX;
    for (size_t k = 0; k <= known_len; k++)
        row[k] = k;
    for (; *typed != '\0'; typed++) {
        size_t diagonal = row[0]++;
        for (size_t k = 1; k <= known_len; k++) {
            size_t changed = diagonal + (lower(*typed) != lower(known[k - 1]));
            size_t fewer = row[k] < row[k - 1] ? row[k] : row[k - 1];
            diagonal = row[k];
            row[k] = changed < fewer + 1 ? changed : fewer + 1;
        }
    }
    return row[known_len];
}
