/* internal.h - names, rules, and what a compiled policy is made of; for the files of this folder only. */
#ifndef P11_PROXY_POLICY_INTERNAL_H
#define P11_PROXY_POLICY_INTERNAL_H

#include "policy/policy.h"

/* Whatever a rule may be about. */
enum row_kind { A_KEY_TYPE, A_MECHANISM, A_CURVE, A_PARAMETER_SET };

/* Positions in names->name. 0 is no name. */
typedef uint32_t name_id;
#define NO_NAME 0u

struct row {
    enum row_kind kind;
    /* Of a mechanism or a key type; a curve's place in its table; a key type << 32 | a parameter set. */
    uint64_t number;
    name_id name; /* the one that is printed, or the number as a list has it */
    uint8_t uses; /* FOR_... */
    enum key_size_from size_from;

    const struct policy_rule *rule[USES]; /* the first that denies it; a key or curve: to any use */
    uint32_t last_size; /* of the rules about sizes of its keys; 0: there are none */
};

struct name {
    const char *text; /* as first written; borrowed, see names_take() */
    uint32_t len;
    name_id group; /* the name that stands for all its synonyms; itself if there are none */

    /* Of a group. */
    uint32_t first_link;               /* to the rows; 0: it stands for none */
    const struct policy_rule *listed;  /* the first rule that has it */
    const struct policy_rule *decides; /* the first that decides on a name */
};

/* Every name that a list may hold, whatever its case, and the rows that it stands for. */
struct names {
    struct name *name; /* name[0] is unused, as are the first row and the first link */
    struct row *row;
    struct link {
        uint32_t row, next;
    } * link;
    uint32_t count, row_count, link_count;
    uint32_t known_count; /* the names of the tables stand first */
    name_id *bucket;      /* open addressing, at most half full; NO_NAME: free */
    uint32_t *row_bucket; /* the same of rows */
    uint32_t mask;
};

/* What the tables hold, with room for more names: one piece of memory, which the caller frees. NULL without memory. */
struct names *names_create(size_t more);

/* The id of a name, or that of a mechanism's number; NO_NAME if it is not there. One lookup. */
name_id names_find(const struct names *names, const char *text, size_t len);

/*
 * The same, and it is added if it is new. text is borrowed and must outlive names; it needs no final NUL. NO_NAME if it
 * is a number that is not taken.
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

/* Reads a mechanism number, hexadecimal with 0x or decimal. Decimal is taken only for vendor numbers and numbers of
 * mechanisms.def, so that a forgotten 0x does not make another mechanism of it. False if text looks like no number,
 * else *number is it, or NO_MECHANISM if it is not taken. */
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

/* What all conditions on a key's size leave: from min to below end, but for one; end BITS_UNKNOWN is no end. */
struct sizes {
    uint64_t min, end, but; /* BITS_UNKNOWN: for none */
};

static inline bool sizes_deny(const struct sizes *sizes, uint64_t bits)
{
    return bits >= sizes->min && bits < sizes->end && bits != sizes->but;
}

struct rule {
    struct policy_rule shown; /* stands first, so that one can be had from the other */
    const char *name;         /* within the text */
    size_t name_len;
    name_id group;
    uint8_t uses;   /* FOR_...: what it is limited to */
    bool has_sizes; /* if not, it is about the algorithm as such */
    struct sizes sizes;
    bool certificates_only; /* usage or jdkCA: a condition that is never met here */
    bool has_date;
    int64_t from_s; /* denied from this second on */
};

/* Steps through the rows that a rule in force is about, key types first: begin with *link 0. */
struct row *rule_next_row(const struct names *names, const struct rule *rule, uint32_t *link);

/* Standard mechanism numbers end far below (0x403a in PKCS#11 3.2); others have no bit. */
#define STANDARD_NUMBERS 0x8000u

/* What else may be asked about a mechanism, beside FOR_...: some rule is about its keys; its parameter names more. */
enum { LOOKS_AT_KEYS = 1 << USES, LOOKS_AT_PARAMETER = 2 << USES };

enum { LISTS_MAX = 256, FILES_MAX = 64, SIZE_RULES_MAX = 4096 };

struct policy {
    uint8_t standard[STANDARD_NUMBERS]; /* FOR_... that are denied, LOOKS_AT_... */

    struct names *names;
    struct rule *rule;
    size_t rule_count;

    /* All lists, in the order of the files, as rules of which the text is the whole list: where its line went on, a
     * line end is left in it. Also the named curves, under their key. */
    struct policy_rule list[LISTS_MAX];
    size_t list_count;
    char *text[FILES_MAX + 1], *path[FILES_MAX + 1]; /* of every file, and of the inline list */
    size_t file_count;

    /* Rules about key sizes, each with the one before it about the same row. The first is unused. */
    struct size_rule {
        const struct rule *rule;
        uint32_t before;
    } size[SIZE_RULES_MAX + 1];
    uint32_t size_count;

    const struct policy_rule *any_curve; /* the first rule about curves or their sizes */
    unsigned keyed_sizes; /* bits of enum key_size_from: some rule looks at such keys */
    struct policy_counts counts;
    bool audit;
};

/* Takes over what a rule denies. It must come behind all that it is not to hide. False if there is no room. */
bool verdicts_add(struct policy *policy, const struct rule *rule);

/* After the last rule: notes which mechanisms concern the policy. */
void verdicts_end(struct policy *policy);

#define INLINE_KEY "x-disabled-algorithms"
#define FILE_KEY   "x-disabled-algorithms-file"
#define CURVES_KEY "jdk.disabled.namedCurves"

/* A policy in the making. */
struct compiler {
    struct policy *policy;
    const struct policy_sources *sources;
    struct message *message, part; /* the whole, and what goes into it */
    size_t warning_count;
    bool curves_included;
    bool effective; /* something in the present lists is in force, or will be */
};

/* "file:line: key should: 'text'", with what the rule says. An error returns -EINVAL. */
int report_error(struct compiler *c, const struct policy_rule *at, const char *should, ...)
    __attribute__((format(printf, 3, 4)));
void report_warning(struct compiler *c, const struct policy_rule *at, const char *should);
int report_no_memory(struct compiler *c);

/* Adds the inline list. 0, or a negative errno value with a message, as lists_add_file(). */
int lists_add_inline(struct compiler *c);

/*
 * Adds the lists of a file: the value of each key that ends in "disabledAlgorithms" and begins as one
 * of the JDK's does. A key that comes again takes the place of the earlier one. "include PATH" is
 * followed, a relative PATH from the file that includes it.
 *   named  where the path stands, and as its text the path
 */
int lists_add_file(struct compiler *c, const struct policy_rule *named);

/* The list of that key; NULL if there is none. */
struct policy_rule *lists_find(struct policy *policy, const char *key);

/*
 * Takes the next item off a list, with its line and its white space reduced to single blanks; it may be empty.
 * NULL if there is no more. Nothing else can be read in the list then.
 */
const char *list_next(struct policy_rule *list, unsigned *line);

/*
 * Parses an item into rule->name and the conditions. A name is everything up to the first condition (keySize,
 * denyAfter, usage, jdkCA), because some curves have a blank in their names. NULL on success, otherwise what would have
 * been right.
 */
const char *item_parse(struct rule *rule, const char *text);

#endif
