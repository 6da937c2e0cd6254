/* names.h - every name that a list may hold, whatever its case, in one hash table. */
#ifndef P11_PROXY_NAMES_H
#define P11_PROXY_NAMES_H

#include "policy/tables.h"

/* Positions in names->name. 0 is no name. */
typedef uint32_t name_id;
#define NO_NAME 0u

/* What a name stands for, by itself or by a synonym. */
enum {
    IS_MECHANISM = 1 << 0,
    IS_KEY_TYPE = 1 << 1,
    IS_CURVE = 1 << 2,
    IS_PARAMETER_SET = 1 << 3,
    HAS_SIZE = 1 << 4, /* its keys have a size in bits */
};

struct name {
    const char *text; /* as first written; borrowed, see names_add() */
    uint32_t len, hash;
    bool known;      /* the tables have it */
    uint64_t number; /* of a mechanism, if this is its own name; else NO_MECHANISM */
    name_id group;   /* the name that stands for all its synonyms; itself if there are none */

    /* Of a group. */
    uint8_t kinds;     /* IS_..., HAS_SIZE */
    uint8_t uses;      /* FOR_... of its mechanisms */
    uint32_t listed;   /* for the policy: the first rule by which a name check decides */
    uint32_t in_force; /* the same: the last rule that is in force */
};

struct names {
    struct name *name; /* name[0] is unused */
    uint32_t count, room;
    name_id *bucket; /* open addressing, at most half full; NO_NAME: free */
    uint32_t mask;
};

/* What the tables hold, with room for more names. The caller ends it with names_free(). NULL without memory. */
struct names *names_create(size_t more);

/* Takes NULL and half-built ones. */
void names_free(struct names *names);

/* The id of a name; NO_NAME if it is not there. One lookup. Any thread. */
name_id names_find(const struct names *names, const char *text, size_t len);

/*
 * The same, and the name is added if it is new. text is borrowed and must outlive names; it needs no
 * final NUL. NO_NAME if there is no room. Not beside another thread.
 */
name_id names_add(struct names *names, const char *text, size_t len);

/* What stands for the name and all its synonyms. */
static inline struct name *names_group(const struct names *names, name_id name)
{
    return &names->name[names->name[name].group];
}

/* Whether one of a row's names is in the group. Any thread. */
bool names_stand_for(const struct names *names, name_id group, const char *row_names);

/* What words.def says of a word that denies nothing; NULL if it has none such. Any thread. */
const char *word_reason(const char *text, size_t len);

/* Whether the name, or each of its parts and at least two of them, is in the tables or a word. */
bool names_is_known(const struct names *names, const char *text, size_t len);

/* The known name nearest to text by changed letters; NULL if none is near. Slow. Any thread. */
const struct name *names_nearest(const struct names *names, const char *text);

enum number_kind {
    NUMBER_NONE, /* does not look like a mechanism number */
    NUMBER_RIGHT,
    NUMBER_WRONG, /* looks like one, but is none that is taken */
};

/*
 * Reads a mechanism number: 0x..., decimal, or CKM_VENDOR_DEFINED+number. Decimal only for vendor
 * numbers and numbers of mechanisms.def, so that a forgotten 0x does not make another mechanism of
 * it. Any thread.
 */
enum number_kind item_number(const char *text, size_t len, uint64_t *number);

/*
 * The parts of a name, as Java takes them: split at '/', then at "with", "and" and "in" (but not
 * "paddin"). Unlike Java's, a '/' before a digit is no place to split: SHA-512/256 is not SHA-512.
 * Begin with { text, text + len }; false if there is no more. Any thread.
 */
struct name_parts {
    const char *at, *end;
};
bool next_part(struct name_parts *parts, const char **part, size_t *len);

#endif
