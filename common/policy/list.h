/* list.h - lists as they are written: inline, or in files in the syntax of java.util.Properties. */
#ifndef P11_PROXY_LIST_H
#define P11_PROXY_LIST_H

#include "policy/policy.h"

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
};

/* "file:line: key should: 'text'", with what the rule says. An error returns rc. */
void report_warning(struct report *report, const struct policy_rule *at, const char *should);
int report_error(struct report *report, const struct policy_rule *at, int rc, const char *should);
int report_no_memory(struct report *report);

struct list_item {
    const char *text; /* in memory of its list; may be empty */
    unsigned line;
};

/* The inline list, or the value of one key. */
struct list {
    const char *file;
    const char *key; /* NULL: the inline list */
    unsigned line;   /* of the key */
    char *memory;
    struct list_item *item;
    size_t count, room;
};

/* All lists, in the order of the files. Also the named curves, under their key. */
struct lists {
    struct list list[LISTS_MAX];
    size_t count;
    char *path[FILES_MAX + 1]; /* of every file, and where the inline list stands */
    size_t path_count;
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

#endif
