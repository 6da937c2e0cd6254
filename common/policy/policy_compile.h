/* policy_compile.h - what the two halves of compiling share: items, and their lists. */
#ifndef P11_PROXY_POLICY_COMPILE_H
#define P11_PROXY_POLICY_COMPILE_H

#include "policy/policy_internal.h"
#include "policy/policy_list.h"

#define INLINE_KEY   "x-disabled-algorithms"
#define FILE_KEY     "x-disabled-algorithms-file"
#define CURVES_KEY   "jdk.disabled.namedCurves"
#define TLS_PREFIX   "jdk.tls."
#define QUOTED_BYTES 80 /* of what came; more would hide the message */

/* A list file that was read, and what was done with it. */
struct loaded {
    const char *path;
    char *text;
    struct properties properties;
    const struct property *named_curves; /* NULL: it has none */
    bool curves_included;
    size_t items; /* that became rules */
};

/* What a name's group is denied by while a policy is compiled: struct group_rules, by name_id. */
struct compiler {
    struct policy *policy;
    const struct policy_sources *sources;
    struct loaded *loaded;
    struct group_rules *group;
    size_t group_room;
    char *error;
    size_t error_bytes;
    size_t warnings;
};

/* Where an item stands. */
struct place {
    const char *file;
    unsigned line;
    const char *key;     /* NULL: the inline list */
    struct loaded *from; /* NULL: the inline list */
};

/*
 * The start of what came, fit for a message: nothing in it that a terminal or a log would act upon.
 */
const char *compile_quoted(char to[QUOTED_BYTES], const char *came);

/* Each returns rc, having written the message. */
__attribute__((format(printf, 3, 4))) int compile_fail(struct compiler *c, int rc,
                                                       const char *format, ...);
int compile_fail_at(struct compiler *c, const struct place *place, const char *should,
                    const char *came);
int compile_no_memory(struct compiler *c);

void compile_warn(struct compiler *c, const struct place *place, const char *should,
                  const char *came);

/*
 * Makes a rule of one item. text belongs to the policy. 0 or a negative errno value, with a
 * message.
 */
int compile_item(struct compiler *c, const struct place *place, const char *text);

/* Reads every source and makes rules of all items. 0 or a negative errno value, with a message. */
int compile_sources(struct compiler *c);

/* Ends what compile_sources() read. */
void compile_sources_free(struct compiler *c);

#endif
