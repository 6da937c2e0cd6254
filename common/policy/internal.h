/* internal.h - what a compiled policy is made of; for the files of this folder only. */
#ifndef P11_PROXY_POLICY_INTERNAL_H
#define P11_PROXY_POLICY_INTERNAL_H

#include "policy/names.h"
#include "policy/policy.h"

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

/*
 * Parses an item whose white space is single blanks already, into rule->name and the conditions. A name is
 * everything up to the first condition (keySize, denyAfter, usage, jdkCA), because some curves have a blank in
 * their names. NULL on success, otherwise what would have been right. Any thread.
 */
const char *item_parse(struct rule *rule, const char *text);

#define INLINE_KEY "x-disabled-algorithms"
#define FILE_KEY   "x-disabled-algorithms-file"
#define CURVES_KEY "jdk.disabled.namedCurves"

enum { LISTS_MAX = 256, FILES_MAX = 64 };

/* Who is told, and of how much. */
struct report {
    policy_warning *warn; /* may be NULL */
    void *context;
    size_t warnings;
    struct message *message;
    struct message why; /* of the operating system */
};

/* "file:line: key should: 'text'", with what the rule says. An error returns -EINVAL. */
int report_error(struct report *report, const struct policy_rule *at, const char *should);
void report_warning(struct report *report, const struct policy_rule *at, const char *should);
int report_no_memory(struct report *report);

/* The inline list, or the value of one key. */
struct list {
    const char *file;
    const char *key; /* NULL: the inline list */
    unsigned line;
    char *value; /* where its line went on, a line end is left in it */
};

/* All lists, in the order of the files. Also the named curves, under their key. */
struct lists {
    struct list list[LISTS_MAX];
    size_t count;
    char *text[FILES_MAX + 1], *path[FILES_MAX + 1]; /* of every file, and of the inline list */
    size_t files;
};

/* Adds the inline list, which may be NULL. 0, or a negative errno value with a message. */
int lists_add_inline(struct lists *lists, const struct policy_sources *sources,
                     struct report *report);

/*
 * Adds the lists of a file: the value of each key that ends in "disabledAlgorithms" and begins as one
 * of the JDK's does. A key that comes again takes the place of the earlier one. "include PATH" is
 * followed, a relative PATH from the file that includes it. 0, or a negative errno value with a message.
 *   named  where the path stands, and as its text the path
 */
int lists_add_file(struct lists *lists, const struct policy_rule *named, struct report *report);

/* The list of that key; NULL if there is none. */
struct list *lists_find(struct lists *lists, const char *key);

/*
 * Takes the next item off a list, with its line and its white space reduced to single blanks; it may be empty.
 * NULL if there is no more. Nothing else can be read in the list then.
 */
const char *list_next(struct list *list, unsigned *line);

void lists_free(struct lists *lists);

/* Steps through the rows that a rule in force is about, key types first: begin with *link 0. */
struct row *rule_next_row(const struct names *names, const struct rule *rule, uint32_t *link);

/* A rule about key sizes, and the one before it about the same row. */
enum { SIZE_RULES_MAX = 4096 };
struct size_rule {
    const struct rule *rule;
    uint32_t before;
};

/* Standard mechanism numbers end far below (0x403a in PKCS#11 3.2); others have no bit. */
#define STANDARD_NUMBERS 0x8000u

/* What else may be asked about a mechanism, beside FOR_...: some rule is about its keys; its parameter names more. */
enum { LOOKS_AT_KEYS = 1 << USES, LOOKS_AT_PARAMETER = 2 << USES };

struct policy {
    uint8_t standard[STANDARD_NUMBERS]; /* FOR_... that are denied, LOOKS_AT_... */

    struct names *names;
    struct lists lists;
    struct rule *rule;
    size_t rule_count;

    struct size_rule size[SIZE_RULES_MAX + 1]; /* the first is unused */
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

#endif
