/* policy_names.h - every name that a list may hold, and what it stands for. */
#ifndef P11_PROXY_POLICY_NAMES_H
#define P11_PROXY_POLICY_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Positions in names->entry. 0 is no name. */
typedef uint32_t name_id;
#define NO_NAME 0u

struct name {
    uint64_t start;   /* the first eight bytes, lower case: most names differ here already */
    const char *text; /* as first written; borrowed, see names_add() */
    uint32_t len;
    name_id group;    /* the name that stands for all its synonyms; itself if there are none */
    uint32_t verdict; /* 1 + the rule that denies this name; 0 if none does */
    bool known;       /* the tables have it */
};

/* What a name stands for: a row of one of the tables. */
enum ref_kind {
    REF_MECHANISM,
    REF_KEY_TYPE,
    REF_CURVE,
    REF_PARAMETER_SET,
};

struct ref {
    name_id group;
    enum ref_kind kind;
    uint32_t row;
};

struct names {
    struct name *entry; /* entry[0] is unused */
    uint32_t count, room;
    struct slot *slot; /* open addressing, at most half full */
    uint32_t slot_mask;
    struct ref *ref; /* sorted by group, kind and row */
    size_t ref_count, ref_room;
    uint32_t *first_ref; /* of each group, by name_id; where it ends the next one's begin */
    uint32_t first_ref_count;
};

/*
 * Makes *names of what the tables hold. The caller owns it and ends it with names_free().
 * 0 or -ENOMEM. Not to be changed while another thread reads it.
 */
int names_create(struct names **names);

/* Takes NULL and half-built ones. */
void names_free(struct names *names);

/*
 * The id of a name, added if it is new. text is borrowed and must outlive names; it needs no final
 * NUL. NO_NAME if there is no memory.
 */
name_id names_add(struct names *names, const char *text, size_t len);

/* The id of a name, whatever its case; NO_NAME if it is not there. Any thread. One hash lookup. */
name_id names_find(const struct names *names, const char *text, size_t len);

/* The same for a caller who has fold_start() of the text already. */
name_id names_find_from(const struct names *names, uint64_t start, const char *text, size_t len);

/*
 * What the name and its synonyms stand for: the first of *count rows, NULL if there are none. Any
 * thread.
 */
const struct ref *names_refs(const struct names *names, name_id name, size_t *count);

/* Whether words.def has it. Any thread. */
bool names_is_word(const char *text, size_t len);

/*
 * The known name that is nearest to text by changed letters; NULL if none is near. Slow. Any
 * thread.
 */
const struct name *names_nearest(const struct names *names, const char *text, size_t len);

/*
 * The parts of a name, as Java takes them: split at '/', then at "with", "and" and "in" (but not
 * "paddin"). Unlike Java's, a '/' before a digit is no place to split: SHA-512/256 is no SHA-512.
 * Start with { text, len }; false when there is no more.
 */
struct name_parts {
    const char *rest;
    size_t rest_len;
};
bool name_parts_next(struct name_parts *parts, const char **part, size_t *part_len);

#endif
