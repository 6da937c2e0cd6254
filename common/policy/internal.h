/* internal.h - what a compiled policy is made of; for the files of this folder only. */
#ifndef P11_PROXY_POLICY_INTERNAL_H
#define P11_PROXY_POLICY_INTERNAL_H

#include "policy/names.h"
#include "policy/policy.h"

enum { SIZE_RANGES_MAX = 16 };
#define LARGEST_SIZE (UINT64_MAX - 1) /* UINT64_MAX is "unknown" */

struct size_range {
    uint64_t from, to; /* bits, both included */
};

struct item {
    const char *name; /* in the text that was parsed */
    size_t name_len;

    bool has_sizes;
    struct size_range denied[SIZE_RANGES_MAX]; /* in order, apart from each other */
    size_t denied_count;

    bool certificates_only; /* usage or jdkCA: a condition that is never met here */
    bool has_date;
    int64_t from_s; /* denied from this second on */
};

/*
 * Parses an item whose white space is single blanks already. A name is everything up to the first
 * condition (keySize, denyAfter, usage, jdkCA), because some curves have a blank in their names. NULL
 * on success, otherwise what would have been right; *item is then undefined. Any thread.
 */
const char *item_parse(struct item *item, const char *text);

#define INLINE_KEY "x-disabled-algorithms"
#define FILE_KEY   "x-disabled-algorithms-file"
#define CURVES_KEY "jdk.disabled.namedCurves"

enum { LISTS_MAX = 256, KEPT_MAX = 128 };

/* Who is told, and of how much. */
struct report {
    policy_warning *warn; /* may be NULL */
    void *context;
    size_t warnings;
    struct message *message;
};

/* "file:line: key should: 'text'", with what the rule says. An error returns rc. */
void report_warning(struct report *report, const struct policy_rule *at, const char *should);
int report_error(struct report *report, const struct policy_rule *at, int rc, const char *should);
int report_no_memory(struct report *report);

struct list_item {
    char *text; /* may be empty */
    unsigned line;
};

/* The inline list, or the value of one key. */
struct list {
    const char *file;
    const char *key; /* NULL: the inline list */
    unsigned line;   /* of the key */
    struct list_item *item;
    size_t count, room;
};

/* All lists, in the order of the files. Also the named curves, under their key. */
struct lists {
    struct list list[LISTS_MAX];
    size_t count;
    char *kept[KEPT_MAX]; /* of every file its text and path, and of the inline list */
    size_t kept_count;
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

void lists_free(struct lists *lists);

/* Standard mechanism numbers end far below (0x403a in PKCS#11 3.2); others have no bit. */
#define STANDARD_NUMBERS 0x8000u

/* What else may be asked about a mechanism, beside FOR_...: some rule is about its keys; its parameter names more. */
enum { LOOKS_AT_KEYS = 1 << USES, LOOKS_AT_PARAMETER = 2 << USES };

/* Rules are told by 1 + their index, 0 being none. */
typedef uint32_t rule_id;
#define NO_RULE 0u

struct rule {
    struct policy_rule shown; /* stands first, so that one can be had from the other */
    const char *no_effect;    /* NULL: in force */
    name_id group;            /* of its name */
    uint8_t uses;             /* FOR_...: what it is limited to */
    bool has_sizes;           /* about keys of some sizes, not about mechanisms as such */
    rule_id next;             /* in force under the same name */
};

struct denied {
    uint64_t number;
    bool is_taken;
    rule_id rule[USES];
};

/* That keys of one type, or of one mechanism, are denied if their size is in a range. */
enum { SIZE_RULES_MAX = 4096 };
enum size_subject { OF_KEY_TYPE, OF_MECHANISM };
struct size_rule {
    enum size_subject subject;
    uint64_t number;
    struct size_range bits;
    rule_id rule;
};

struct policy {
    uint8_t standard[STANDARD_NUMBERS]; /* FOR_... that are denied, LOOKS_AT_... */

    struct denied *denied; /* hash of all that are denied */
    uint64_t denied_mask;
    size_t denied_count;

    struct names *names;
    struct lists lists;
    struct rule *rule;
    size_t rule_count;

    struct size_rule size[SIZE_RULES_MAX]; /* sorted by subject, number and rule */
    size_t size_count;

    rule_id curve[CURVES];
    rule_id spelled_out[CURVES]; /* explicit parameters with the order of that curve */
    rule_id any_curve;           /* the first rule about curves or their sizes */
    rule_id parameter_set[PARAMETER_SETS];

    unsigned keyed_sizes; /* bits of enum key_size_from: some rule looks at such keys */
    bool audit;
};

static inline const struct rule *rule_at(const struct policy *policy, rule_id id)
{
    return &policy->rule[id - 1];
}

static inline const struct policy_rule *shown(const struct policy *policy, rule_id id)
{
    return id == NO_RULE ? NULL : &rule_at(policy, id)->shown;
}

static inline void earlier_rule(rule_id *rule, rule_id other)
{
    if (*rule == NO_RULE || (other != NO_RULE && other < *rule))
        *rule = other;
}

/* Build from the rules what is looked at later. 0 or a negative errno value, with a message. */
int build_verdicts(struct policy *policy, struct report *report);
int build_key_rules(struct policy *policy, struct report *report);

#endif
