/* policy_parts.c - a name taken apart as Java does, and the one nearest to a wrong name. */
#include "policy/policy_names.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "policy/policy_fold.h"

#define LONGEST_GUESS 64 /* nobody mistypes a longer name; keeps the search short */

/* Whether text goes on with a word given in lower case. */
static bool goes_on(const char *text, size_t len, const char *word, size_t word_len)
{
    return len >= word_len && fold_same(text, word, word_len);
}

/* The length of the separator that starts at text[at], or 0. */
static size_t separator(const char *text, size_t len, size_t at)
{
    const char *from = text + at;
    size_t left = len - at;

    switch (*from) {
    case '/': /* but SHA-512/256 is one name, and no SHA-512 */
        return left > 1 && from[1] >= '0' && from[1] <= '9' ? 0 : 1;
    case 'w':
    case 'W':
        return goes_on(from, left, "with", 4) ? 4 : 0;
    case 'a':
    case 'A':
        return goes_on(from, left, "and", 3) ? 3 : 0;
    case 'i':
    case 'I':
        if (at >= 4 && fold_same(from - 4, "padd", 4))
            return 0;
        return goes_on(from, left, "in", 2) ? 2 : 0;
    default:
        return 0;
    }
}

bool name_parts_next(struct name_parts *parts, const char **part, size_t *part_len)
{
    while (parts->rest_len > 0) {
        size_t len = 0, skip = 0;
        while (len < parts->rest_len && (skip = separator(parts->rest, parts->rest_len, len)) == 0)
            len++;
        *part = parts->rest;
        *part_len = len;
        parts->rest += len + skip;
        parts->rest_len -= len + skip;
        if (len > 0)
            return true;
    }
    return false;
}

const struct name *names_nearest(const struct names *names, const char *text, size_t len)
{
    const struct name *nearest = NULL;
    char typed[LONGEST_GUESS + 1], known[LONGEST_GUESS + 1];
    size_t least = len < 4 ? 2 : 4; /* further off is no typing mistake */

    if (len == 0 || len > LONGEST_GUESS)
        return NULL;
    snprintf(typed, sizeof typed, "%.*s", (int)len, text);
    for (name_id i = NO_NAME + 1; i < names->count; i++) {
        const struct name *name = &names->entry[i];
        if (!name->known || name->len > LONGEST_GUESS)
            continue;
        snprintf(known, sizeof known, "%.*s", (int)name->len, name->text);
        size_t away = edit_distance(typed, known);
        if (away < least) {
            nearest = name;
            least = away;
        }
    }
    return nearest;
}
