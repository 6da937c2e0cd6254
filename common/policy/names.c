/* names.c - the names of all tables, their synonyms, and how a name is taken apart. */
#include "policy/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"

enum {
    TABLE_NAMES = 2048, /* more than the tables hold */
    NEAREST_BYTES = 64  /* a longer word is no mistyped name */
};

static const char *const synonyms[] = {
#define SYNONYMS(names) names,
#include "policy/synonyms.def"
#undef SYNONYMS
};

static const struct {
    const char *reason, *patterns;
} words[] = {
#define WORDS(reason, patterns) {reason, patterns},
#include "policy/words.def"
#undef WORDS
};

/* FNV-1a of the text in lower case; what else the bit makes equal is told apart by comparing. */
static uint32_t hash_of(const char *text, size_t len)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (uint8_t)(text[i] | 0x20)) * 16777619u;
    return hash;
}

/* The bucket of the name, or the free one where it would go. */
static name_id *bucket_of(const struct names *names, const char *text, size_t len, uint32_t hash)
{
    for (uint32_t at = hash;; at++) {
        name_id *bucket = &names->bucket[at & names->mask];
        const struct name *name = &names->name[*bucket];
        if (*bucket == NO_NAME ||
            (name->hash == hash && name->len == len &&
             (memcmp(name->text, text, len) == 0 || same_text(name->text, text, len))))
            return bucket;
    }
}

name_id names_find(const struct names *names, const char *text, size_t len)
{
    return *bucket_of(names, text, len, hash_of(text, len));
}

name_id names_add(struct names *names, const char *text, size_t len)
{
    uint32_t hash = hash_of(text, len);
    name_id *bucket = bucket_of(names, text, len, hash);

    if (*bucket != NO_NAME)
        return *bucket;
    if (names->count == names->room)
        return NO_NAME;
    name_id id = *bucket = names->count++;
    names->name[id] = (struct name){
        .text = text, .len = (uint32_t)len, .hash = hash, .number = NO_MECHANISM, .group = id};
    return id;
}

/*
 * Adds the names of a row, or synonyms, which become one group. Synonyms come first, because what a
 * name stands for is noted at its group.
 */
static bool add_all(struct names *names, const char *list, bool synonymous, int kinds, uint8_t uses,
                    uint64_t number)
{
    name_id first = NO_NAME;
    const char *text = NULL;
    size_t len;

    while (next_name(list, &text, &len)) {
        name_id id = names_add(names, text, len);
        if (id == NO_NAME)
            return false;
        first = first == NO_NAME ? id : first;
        struct name *name = &names->name[id];
        if (synonymous)
            name->group = names->name[first].group;
        if (same_text(text, "CKM_", 4))
            name->number = number;
        name->known = true;
        names_group(names, id)->kinds |= (uint8_t)kinds;
        names_group(names, id)->uses |= uses;
    }
    return true;
}

static bool add_tables(struct names *names)
{
    bool ok = true;

    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        ok = ok && add_all(names, synonyms[i], true, 0, 0, 0);
    for (size_t i = 0; i < CURVES; i++)
        ok = ok && add_all(names, curves[i].names, true, IS_CURVE | HAS_SIZE, 0, 0);
    for (size_t i = 0; i < MECHANISMS; i++) {
        const struct mechanism *row = &mechanisms[i];
        bool has_size = row->size_from >= SIZE_MODULUS && row->size_from <= SIZE_FIXED;
        ok = ok && add_all(names, row->names, false, IS_MECHANISM | (has_size ? HAS_SIZE : 0),
                           row->uses, row->number);
    }
    for (size_t i = 0; i < KEY_TYPES; i++)
        ok = ok && add_all(names, key_types[i].names, false, IS_KEY_TYPE, 0, 0);
    for (size_t i = 0; i < PARAMETER_SETS; i++)
        ok = ok && add_all(names, parameter_sets[i].name, false, IS_PARAMETER_SET, 0, 0);
    return ok;
}

struct names *names_create(size_t more)
{
    struct names *made = calloc(1, sizeof *made);
    uint32_t room = TABLE_NAMES, buckets = 2 * TABLE_NAMES;

    room += (uint32_t)more;
    while (buckets < 2 * room)
        buckets *= 2;
    if (made != NULL)
        *made = (struct names){.name = calloc(room, sizeof *made->name),
                               .bucket = calloc(buckets, sizeof *made->bucket),
                               .mask = buckets - 1,
                               .room = room,
                               .count = 1};
    if (made != NULL && made->name != NULL && made->bucket != NULL) {
        made->name[NO_NAME] = (struct name){.text = "", .number = NO_MECHANISM};
        if (add_tables(made))
            return made;
    }
    names_free(made);
    return NULL;
}

void names_free(struct names *names)
{
    if (names == NULL)
        return;
    free(names->name);
    free(names->bucket);
    free(names);
}

bool names_stand_for(const struct names *names, name_id group, const char *row_names)
{
    const char *name = NULL;
    size_t len;

    while (group != NO_NAME && next_name(row_names, &name, &len))
        if (names->name[names_find(names, name, len)].group == group)
            return true;
    return false;
}

const char *word_reason(const char *text, size_t len)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *pattern = NULL;
        size_t pattern_len;
        while (next_name(words[i].patterns, &pattern, &pattern_len)) {
            bool is_open = pattern[pattern_len - 1] == '*';
            size_t fixed = pattern_len - is_open;
            if ((is_open ? len >= fixed : len == fixed) && same_text(text, pattern, fixed))
                return words[i].reason;
        }
    }
    return NULL;
}

bool names_is_known(const struct names *names, const char *text, size_t len)
{
    struct name_parts parts = {text, text + len};
    const char *part = text;
    size_t part_len = len, count = 0;

    if (names->name[names_find(names, text, len)].known || word_reason(text, len) != NULL)
        return true;
    for (; next_part(&parts, &part, &part_len); count++)
        if (part_len == len || !names_is_known(names, part, part_len))
            return false;
    return count > 1;
}

const struct name *names_nearest(const struct names *names, const char *text)
{
    const struct name *nearest = NULL;
    char known[NEAREST_BYTES];
    size_t least = strlen(text) < 4 ? 2 : 4; /* further off is no typing mistake */

    for (name_id id = 1; id < names->count && *text != '\0'; id++) {
        const struct name *name = &names->name[id];
        if (!name->known || name->len >= sizeof known)
            continue;
        snprintf(known, sizeof known, "%.*s", (int)name->len, name->text);
        size_t distance = edit_distance(text, known);
        if (distance < least) {
            nearest = name;
            least = distance;
        }
    }
    return nearest;
}

/* The length of the separator at *at, or 0. */
static size_t separator(const char *start, const char *at, const char *end)
{
    size_t left = (size_t)(end - at);

    switch (lower(*at)) {
    case '/':
        return left > 1 && at[1] >= '0' && at[1] <= '9' ? 0 : 1;
    case 'w':
        return left >= 4 && same_text(at, "with", 4) ? 4 : 0;
    case 'a':
        return left >= 3 && same_text(at, "and", 3) ? 3 : 0;
    case 'i':
        if (at - start >= 4 && same_text(at - 4, "padd", 4))
            return 0;
        return left >= 2 && lower(at[1]) == 'n' ? 2 : 0;
    default:
        return 0;
    }
}

bool next_part(struct name_parts *parts, const char **part, size_t *len)
{
    do {
        const char *at = *part = parts->at;
        size_t skip = 0;
        while (at < parts->end && (skip = separator(parts->at, at, parts->end)) == 0)
            at++;
        *len = (size_t)(at - parts->at);
        parts->at = at + skip;
    } while (*len == 0 && parts->at < parts->end);
    return *len > 0;
}
