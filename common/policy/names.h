/* names.h - every name that a list may hold, whatever its case, and the rows that it stands for. Any thread may call
 * what does not change names. */
#ifndef P11_PROXY_NAMES_H
#define P11_PROXY_NAMES_H

#include "policy/tables.h"

/* Whatever a rule may be about. */
enum row_kind { A_KEY_TYPE, A_MECHANISM, A_CURVE, A_PARAMETER_SET };

struct row {
    enum row_kind kind;
    /* Of a mechanism or a key type; a curve's place in its table; a key type << 32 | a parameter set. */
    uint64_t number;
    const char *
        names; /* separated by '|', behind the one that is printed; NULL: only the number is known */
    uint8_t uses; /* FOR_... */
    enum key_size_from size_from;

    /* For the policy. */
    const struct policy_rule
        *rule[USES];    /* the first that denies it, whatever the use of a key or curve */
    uint32_t last_size; /* of the rules about sizes of its keys; 0: there are none */
};

/* Positions in names->name. 0 is no name. */
typedef uint32_t name_id;
#define NO_NAME 0u

struct name {
    const char *text; /* as first written; borrowed, see names_take() */
    uint32_t len, hash;
    bool known;      /* the tables have it */
    uint64_t number; /* of a mechanism, if this is its own name; else NO_MECHANISM */
    name_id group;   /* the name that stands for all its synonyms; itself if there are none */

    /* Of a group. */
    uint32_t first_link; /* to the rows; 0: it stands for none */
    const struct policy_rule *listed,
        *decides; /* for the policy: the first rule, and the first that decides on a name */
};

struct link {
    uint32_t row, next;
};

struct names {
    struct name *name; /* name[0] is unused, as are the first row and the first link */
    struct row *row;
    struct link *link;
    uint32_t count, row_count, link_count;
    name_id *bucket;      /* open addressing, at most half full; NO_NAME: free */
    uint32_t *row_bucket; /* the same of rows */
    uint32_t mask;
};

/* What the tables hold, with room for more names. The caller ends it with names_free(). NULL without memory. */
struct names *names_create(size_t more);

/* Takes NULL and half-built ones. */
void names_free(struct names *names);

/* The id of a name; NO_NAME if it is not there. One lookup. */
name_id names_find(const struct names *names, const char *text, size_t len);

/*
 * The same, also of a mechanism's number, and the name is added if it is new. text is borrowed and must outlive names;
 * it needs no final NUL. NO_NAME if it is a number that is not taken: decimal is, only for vendor numbers and numbers
 * of mechanisms.def, so that a forgotten 0x does not make another mechanism of it.
 */
name_id names_take(struct names *names, const char *text, size_t len);

/* A row by what it is about; the first one, which nothing denies, if there is none. */
struct row *names_row(const struct names *names, enum row_kind kind, uint64_t number);

/* What stands for the name and all its synonyms. */
static inline struct name *names_group(const struct names *names, name_id name)
{
    return &names->name[names->name[name].group];
}

/* Steps through the rows that a group stands for, key types first: begin with *link 0. NULL if there is no more. */
static inline struct row *next_row(const struct names *names, const struct name *group,
                                   uint32_t *link)
{
    *link = *link == 0 ? group->first_link : names->link[*link].next;
    return *link == 0 ? NULL : &names->row[names->link[*link].row];
}

/* What words.def says of a word that denies nothing; NULL if it has none such. */
const char *word_reason(const char *text, size_t len);

/* Whether the name, or each of its parts and at least two of them, is in the tables or a word. */
bool names_is_known(const struct names *names, const char *text, size_t len);

/* The known name nearest to text by changed letters; NULL if none is near. Slow. */
const struct name *names_nearest(const struct names *names, const char *text);

/* Reads a mechanism number, hexadecimal with 0x or decimal. False if text looks like none, else *number is it, or
 * NO_MECHANISM if it is not taken. */
bool read_number(const char *text, size_t len, uint64_t *number);

/*
 * The parts of a name, as Java takes them: split at '/', then at "with", "and" and "in" (but not
 * "paddin"). Unlike Java's, a '/' before a digit is no place to split: SHA-512/256 is not SHA-512.
 * Begin with { text, text + len }; false if there is no more.
 */
struct name_parts {
    const char *at, *end;
};
bool next_part(struct name_parts *parts, const char **part, size_t *len);

#endif
