/* names.c - the names of all tables, their synonyms, and how a name is taken apart. */
#include "policy/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VENDOR_DEFINED 0x80000000u

enum {
    TABLE_NAMES = 2048, /* more than the tables hold; of links less than twice that */
    NEAREST_BYTES = 64  /* a longer word is no mistyped name */
};

static const struct {
    const char *reason; /* NULL: the names are synonyms */
    const char *names;
} words[] = {
#define SYNONYMS(names)      {NULL, names},
#define WORDS(reason, names) {reason, names},
#include "policy/words.def"
#undef SYNONYMS
#undef WORDS
};

/* The bucket of the name, or the free one where it would go. Hashed is FNV-1a of the text in lower case; what else the
 * bit makes equal is told apart by comparing. */
static name_id *bucket_of(const struct names *names, const char *text, size_t len)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (uint8_t)(text[i] | 0x20)) * 16777619u;
    for (uint32_t at = hash;; at++) {
        name_id *bucket = &names->bucket[at & names->mask];
        const struct name *name = &names->name[*bucket];
        if (*bucket == NO_NAME || (name->len == len && (memcmp(name->text, text, len) == 0 ||
                                                        same_text(name->text, text, len))))
            return bucket;
    }
}

/* The bucket of the row, or the free one where it would go. */
static uint32_t *row_bucket(const struct names *names, enum row_kind kind, uint64_t number)
{
    for (uint64_t at = (number + kind) * 0x9e3779b97f4a7c15u >> 32;; at++) {
        uint32_t *bucket = &names->row_bucket[at & names->mask];
        const struct row *row = &names->row[*bucket];
        if (*bucket == 0 || (row->number == number && row->kind == kind))
            return bucket;
    }
}

struct row *names_row(const struct names *names, enum row_kind kind, uint64_t number)
{
    return &names->row[*row_bucket(names, kind, number)];
}

/* The id of a name, which is added if it is new. */
static name_id add(struct names *names, const char *text, size_t len)
{
    name_id *bucket = bucket_of(names, text, len);

    if (*bucket == NO_NAME) {
        *bucket = names->count++;
        names->name[*bucket] = (struct name){text, (uint32_t)len, .group = *bucket};
    }
    return *bucket;
}

/* Makes one group of names. They come before all rows, because what a name stands for is noted at its group. */
static void add_synonyms(struct names *names, const char *list)
{
    const char *text = NULL;
    name_id group = NO_NAME;
    size_t len;

    while (next_name(list, &text, &len)) {
        name_id id = add(names, text, len);
        group = group == NO_NAME ? names->name[id].group : group;
        names->name[id].group = group;
    }
}

/* Adds a row, which is new, and gives its place. */
static uint32_t add_row(struct names *names, struct row row)
{
    uint32_t place = *row_bucket(names, row.kind, row.number) = names->row_count++;
    names->row[place] = row;
    return place;
}

/* Lets a name stand for a row behind all other rows that it stands for. The first of a row's names is printed. */
static name_id name_row(struct names *names, uint32_t row, const char *text, size_t len)
{
    name_id id = add(names, text, len);
    uint32_t *at = &names_group(names, id)->first_link;

    if (names->row[row].name == NO_NAME)
        names->row[row].name = id;
    for (; *at != 0; at = &names->link[*at].next)
        if (names->link[*at].row == row)
            return id;
    names->link[names->link_count] = (struct link){row, 0};
    *at = names->link_count++;
    return id;
}

static void add_named_row(struct names *names, struct row row, const char *list)
{
    uint32_t place = add_row(names, row);
    const char *text = NULL;
    size_t len;

    while (next_name(list, &text, &len))
        name_row(names, place, text, len);
}

static void add_tables(struct names *names)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].reason == NULL)
            add_synonyms(names, words[i].names);
    for (size_t i = 0; i < curve_count; i++)
        add_synonyms(names, curves[i].names);
    for (const struct key_type *t = key_types; t < key_types + key_type_count; t++)
        add_named_row(names, (struct row){A_KEY_TYPE, t->number, .size_from = t->size_from},
                      t->names);
    for (const struct mechanism *m = mechanisms; m < mechanisms + mechanism_count; m++)
        add_named_row(
            names, (struct row){A_MECHANISM, m->number, .uses = m->uses, .size_from = m->size_from},
            m->names);
    for (size_t i = 0; i < curve_count; i++)
        add_named_row(names, (struct row){A_CURVE, i, .size_from = SIZE_ORDER}, curves[i].names);
    for (const struct key_type *t = key_types; t < key_types + key_type_count; t++) {
        struct row row = {A_PARAMETER_SET, t->number << 32, .size_from = SIZE_SET};
        const char *set = NULL;
        size_t len;
        while (t->sets != NULL && next_name(t->sets, &set, &len)) {
            row.number++;
            name_row(names, add_row(names, row), set, len);
        }
    }
    names->known_count = names->count;
}

struct names *names_create(size_t more)
{
    uint32_t room = TABLE_NAMES + (uint32_t)more, buckets = 2 * TABLE_NAMES;

    while (buckets < 2 * room)
        buckets *= 2;
    struct names *made = calloc(1, sizeof *made + room * (sizeof *made->row + sizeof *made->name) +
                                       (room + TABLE_NAMES) * sizeof *made->link +
                                       2 * buckets * sizeof *made->bucket);
    if (made == NULL)
        return NULL;
    made->row = (struct row *)(made + 1);
    made->name = (struct name *)(made->row + room);
    made->link = (struct link *)(made->name + room);
    made->bucket = (name_id *)(made->link + room + TABLE_NAMES);
    made->row_bucket = made->bucket + buckets;
    made->mask = buckets - 1;
    made->count = made->row_count = made->link_count = 1;
    made->name[NO_NAME].text = "";
    add_tables(made);
    return made;
}

bool read_number(const char *text, size_t len, uint64_t *number)
{
    char digits[24], *end;
    bool is_hex = len >= 2 && text[0] == '0' && lower(text[1]) == 'x';

    if (len == 0 || (!is_hex && strspn(text, "0123456789") < len))
        return false;
    snprintf(digits, sizeof digits, "%.*s", (int)len, text);
    *number = strtoull(digits, &end, is_hex ? 16 : 10);   /* NO_MECHANISM if it is too large */
    bool is_octal = !is_hex && len > 1 && text[0] == '0'; /* to some, decimal to others */
    bool is_likely = is_hex || *number >= VENDOR_DEFINED || mechanism_find(*number) != NULL;
    if (len >= sizeof digits || *end != '\0' || is_octal || !is_likely)
        *number = NO_MECHANISM;
    return true;
}

name_id names_find(const struct names *names, const char *text, size_t len)
{
    name_id id = *bucket_of(names, text, len);
    uint64_t number;

    return id == NO_NAME && read_number(text, len, &number)
               ? names_row(names, A_MECHANISM, number)->name
               : id;
}

name_id names_take(struct names *names, const char *text, size_t len)
{
    name_id id = names_find(names, text, len);
    uint64_t number;

    if (id != NO_NAME)
        return id;
    if (!read_number(text, len, &number))
        return add(names, text, len);
    if (number == NO_MECHANISM)
        return NO_NAME;
    const struct row row = {A_MECHANISM, number, .uses = FOR_ANY, .size_from = SIZE_OTHER};
    return name_row(names, add_row(names, row), text, len);
}

const char *word_reason(const char *text, size_t len)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *pattern = NULL;
        size_t pattern_len;
        while (words[i].reason != NULL && next_name(words[i].names, &pattern, &pattern_len)) {
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

    name_id id = *bucket_of(names, text, len);

    if ((id != NO_NAME && id < names->known_count) || word_reason(text, len) != NULL)
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

    for (name_id id = 1; id < names->known_count && *text != '\0'; id++) {
        const struct name *name = &names->name[id];
        if (name->len >= sizeof known)
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
