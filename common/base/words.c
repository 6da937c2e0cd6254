/* words.c - a list of words as text, and the edit distance of two words. */
#include "base/words.h"

#include <stdint.h>
#include <string.h>

enum { LONGEST_WORD = 127 };

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

/* Not tolower(): the application's locale must not decide which key is meant. */
static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t edit_distance(const char *typed, const char *known)
{
    size_t typed_len = strnlen(typed, LONGEST_WORD + 1);
    size_t known_len = strnlen(known, LONGEST_WORD + 1);
    size_t row[LONGEST_WORD + 1]; /* row[k]: from what was read of typed to known's first k */

    if (typed_len > LONGEST_WORD || known_len > LONGEST_WORD)
        return SIZE_MAX;
    for (size_t k = 0; k <= known_len; k++)
        row[k] = k;
    for (size_t t = 1; t <= typed_len; t++) {
        size_t diagonal = row[0];
        row[0] = t;
        for (size_t k = 1; k <= known_len; k++) {
            size_t changed = diagonal + (lower(typed[t - 1]) != lower(known[k - 1]));
            diagonal = row[k];
            row[k] = least(changed, least(row[k], row[k - 1]) + 1);
        }
    }
    return row[known_len];
}
