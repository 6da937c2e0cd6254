/* policy.h - which algorithms the owner disabled: compiled once, asked on every call. */
#ifndef P11_PROXY_POLICY_H
#define P11_PROXY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "policy/mechanisms.h"

/* Compiled lists. Nothing changes them, so any thread may ask; NULL permits everything. */
struct policy;

/*
 * One item of a list, as it stands there. Belongs to its policy; the same item is always the same
 * pointer.
 */
struct policy_rule {
    const char *text; /* white space reduced to single blanks */
    const char *file;
    const char *key; /* the property of a list file; NULL: the inline list */
    unsigned line;   /* from 1 */
};

/* Hears about what is odd but no error. message is valid during the call only. */
typedef void policy_warning(void *context, const char *message);

/* A list file, and where its path stands, for messages. */
struct policy_file {
    const char *path;
    const char *named_in;
    unsigned named_line;
};

struct policy_sources {
    const char *list;      /* the inline list; NULL: none */
    const char *list_file; /* where the inline list stands, for messages */
    unsigned list_line;

    const struct policy_file *files; /* joined with the inline list */
    size_t files_count;

    int64_t now_s; /* for denyAfter: seconds since 1970-01-01 UTC */
    bool audit;    /* handed back by policy_is_audit(), nothing else */

    policy_warning *warn; /* may be NULL */
    void *warn_context;
};

/*
 * Compiles the lists into *policy. Everything in sources is borrowed during the call only.
 * On 0 the caller owns *policy and ends it with policy_free().
 * Otherwise *policy is untouched and error holds a message "file:line: what would be right: 'what
 * came'", cut to error_bytes (at least 1):
 *   -EINVAL  an item of the inline list is unknown, an item is malformed, a file is no regular
 *            file, larger than 1 MiB, being written, cut off, or lists nothing
 *   -ENOENT, -EACCES and others of open() and read()  a file cannot be read
 *   -ENOMEM
 * Unknown names in a file, and an inclusion that leads nowhere, are warnings: one a name, and after
 * the first POLICY_WARNINGS_MAX only their number.
 */
#define POLICY_WARNINGS_MAX 50
int policy_compile(struct policy **policy, const struct policy_sources *sources, char *error,
                   size_t error_bytes);

/* Takes NULL. The rules that were handed out go with it. */
void policy_free(struct policy *policy);

/* Whether what is denied is to be permitted and only counted. */
bool policy_is_audit(const struct policy *policy);

/*
 * The rule that denies a mechanism, NULL if it is permitted. One bit is looked at for numbers of
 * the standard, one hash slot for others, whatever the length of the list. Nested mechanisms
 * (hashAlg, prf ...) are asked for in the same way.
 */
const struct policy_rule *policy_mechanism(const struct policy *policy, uint64_t number);

/* Whether any rule looks at keys: sizes, curves, parameter sets. If not, none need be read. */
bool policy_has_key_rules(const struct policy *policy);

/*
 * The rule that denies a key of that size, NULL if none does.
 *   mechanism  that is to use or make the key; NO_MECHANISM on import
 *   key_type   CKA_KEY_TYPE
 *   bits       see key_type_find()->size_from for what to read; for types with one size only it is
 *              ignored. POLICY_BITS_UNKNOWN permits; 0 is denied where any size rule is.
 * A rule whose name is a key type's (RSA, EC, AES) is about keys of that type; any other name
 * (ECDSA, SHA1withRSA, CKM_RSA_PKCS) is about the mechanisms that it stands for.
 */
#define POLICY_BITS_UNKNOWN UINT64_MAX
const struct policy_rule *policy_key(const struct policy *policy, uint64_t mechanism,
                                     uint64_t key_type, uint64_t bits);

/*
 * The smallest key size in bits that rules leave to a permitted mechanism: 0 if they raise nothing,
 * POLICY_BITS_UNKNOWN if they leave no size.
 */
uint64_t policy_min_key_bits(const struct policy *policy, uint64_t mechanism);

/*
 * The rule that denies the curve in this value of CKA_EC_PARAMS, NULL if none does or it is not
 * understood.
 */
const struct policy_rule *policy_curve(const struct policy *policy, const uint8_t *params,
                                       size_t params_bytes);

/* The rule that denies CKA_PARAMETER_SET set of a key type, NULL if none does. */
const struct policy_rule *policy_parameter_set(const struct policy *policy, uint64_t key_type,
                                               uint64_t set);

/*
 * The rule that denies what is in a DigestInfo that is about to be signed or verified with RSA,
 * NULL if none does or data is no DigestInfo. A digest is denied there if it is denied as a
 * mechanism, or if signing with it and RSA in one step is: MD5withRSA is no other signature when
 * the application digests itself.
 */
const struct policy_rule *policy_digest_info(const struct policy *policy, const uint8_t *data,
                                             size_t data_bytes);

/*
 * The rule that denies a name, as the JDK's AlgorithmConstraints.permits(name) decides (without a
 * key): the whole name, or one of its parts ("MD5withRSA": MD5, RSA), is an item of the list or a
 * synonym of one. Names that mean something in TLS only are denied too if they are listed. CKM_
 * names and numbers answer as policy_mechanism(). One hash lookup for every name that is listed or
 * known; unknown ones are taken apart.
 */
const struct policy_rule *policy_name(const struct policy *policy, const char *name);

/* How many rules there are, and each in the order of the lists. NULL from beyond the end. */
size_t policy_rules_count(const struct policy *policy);
const struct policy_rule *policy_rule(const struct policy *policy, size_t index);

/* Why the rule at that index denies nothing here; NULL if it does, or from beyond the end. Lasts for
 * good. */
const char *policy_rule_no_effect(const struct policy *policy, size_t index);

/*
 * Writes the policy as text: every item with its origin, and what it denies or why it has no effect
 * here. The same lists give the same text. Returns 0, or a negative errno value if out fails.
 */
int policy_print(const struct policy *policy, FILE *out);

#endif
