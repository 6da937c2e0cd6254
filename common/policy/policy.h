/* policy.h - which algorithms the owner disabled: compiled once, asked on every call. */
#ifndef P11_PROXY_POLICY_H
#define P11_PROXY_POLICY_H

#include <stdio.h>

#include "base/message.h"
#include "config/config.h"
#include "policy/tables.h"

#define BITS_UNKNOWN UINT64_MAX
#define SET_UNKNOWN  UINT64_MAX

/* All that a rule can ask. No secret. */
struct key_info {
    const struct key_type *type; /* NULL: not known, or in no table */
    uint64_t bits;               /* BITS_UNKNOWN: not known */
    uint64_t set;                /* CKA_PARAMETER_SET; SET_UNKNOWN: not known */
    const struct curve *curve;   /* NULL: none that is known */
    bool has_params;             /* CKA_EC_PARAMS was there, understood or not */
    bool spelled_out;            /* as explicit parameters: known by its order alone */
};

/* Nothing but the type. */
static inline struct key_info key_info_of(const struct key_type *type)
{
    return (struct key_info){.type = type, .bits = BITS_UNKNOWN, .set = SET_UNKNOWN};
}

/*
 * Notes the curve that a value of CKA_EC_PARAMS names, and its order's bits: an OID, a PrintableString
 * or UTF8String with the curve's name, or explicit parameters. No curve is noted if the value is not
 * one strict DER value, or if nothing in the table fits. Any thread.
 */
void key_info_params(struct key_info *key, const uint8_t *params, size_t params_bytes);

/* Bits of a big-endian number without its leading zeros. Any thread. */
uint64_t number_bits(const uint8_t *number, size_t number_bytes);

/* Bits of a curve's group order. Any thread. */
uint64_t curve_bits(const struct curve *curve);

/* Compiled lists. Nothing changes them, so any thread may ask; NULL permits everything. */
struct policy;

/* One item of a list, as it stands there. Belongs to its policy, and has one address for good. */
struct policy_rule {
    const char *text; /* white space reduced to single blanks */
    const char *file;
    const char *key;       /* the property of a list file; NULL: the inline list */
    unsigned line;         /* from 1 */
    const char *no_effect; /* why it denies nothing here, for good; NULL: it denies something */
};

/* Is told what is odd but no error. message is valid during the call only. */
typedef void policy_warning(const char *message);

struct policy_sources {
    /* The inline list, and the path of a list file, which is joined with it; where they stand, for messages. A text of
     * NULL: there is none. */
    struct policy_rule list, file;
    int64_t now_s;        /* for denyAfter: seconds since 1970-01-01 UTC */
    bool audit;           /* handed back by policy_is_audit(), nothing else */
    policy_warning *warn; /* may be NULL */
};

enum { POLICY_WARNINGS_MAX = 50 };

/*
 * Compiles the lists into *policy. Everything in sources is borrowed during the call only.
 * On 0 the caller owns *policy and ends it with policy_free(); it is NULL if there are no lists, or
 * only an inline list without any item. Otherwise *policy is untouched, and the message reads
 * "file:line: what would be right: 'what came'":
 *   -EINVAL  an item of the inline list is unknown, an item is malformed, nothing in a list takes
 *            effect, a file is not regular, larger than 1 MiB, cut off or being written
 *   -ENOENT, -EACCES and others of open() and read()  a file cannot be read
 *   -ENOMEM
 * Unknown names in a file are warnings, one a name. After POLICY_WARNINGS_MAX one more says that there are more.
 */
int policy_compile(struct policy **policy, const struct policy_sources *sources,
                   struct message *message);

/* The same for the lists that a configuration names, as of now. */
int policy_load(struct policy **policy, const struct config *config, policy_warning *warn,
                struct message *message);

/* Takes NULL. The rules that were handed out go with it. */
void policy_free(struct policy *policy);

/* Whether what is denied is to be permitted and only counted. */
bool policy_is_audit(const struct policy *policy);

/*
 * The rule that denies a mechanism to a use, NULL if it is permitted. One bit is looked at for
 * numbers of the standard, one bucket of a hash for others, whatever the length of the list. Nested
 * mechanisms (hashAlg, prf ...) are asked about in the same way, with the use of the whole.
 */
const struct policy_rule *policy_mechanism(const struct policy *policy, uint64_t number,
                                           enum mechanism_use use);

/* Whether any rule may be about a mechanism, its parameter or the keys that it uses. If not, nothing else need be asked.
 * One bit for numbers of the standard; policy must not be NULL. */
bool policy_concerns(const struct policy *policy, uint64_t number);

/* The uses (FOR_...) that a mechanism is denied; FOR_ANY if that leaves none that it has. */
unsigned policy_denied_uses(const struct policy *policy, uint64_t number);

/* Whether any rule may deny a key to that mechanism, or to anything (NO_MECHANISM). If not, none need be read.
 * One bit for numbers of the standard; policy must not be NULL. */
bool policy_looks_at_keys_of(const struct policy *policy, uint64_t mechanism);

/*
 * The rule that denies a key, NULL if none does.
 *   mechanism  that is to use or make the key; NO_MECHANISM on import
 *   is_curve   set with a rule: whether it is about the key's curve, not its size; may be NULL
 * A rule whose name is a key type's (RSA, EC, AES) is about keys of that type; any other name
 * (ECDSA, SHA1withRSA, HMAC, CKM_RSA_PKCS) is about keys that the mechanisms it stands for use or
 * make. While any rule is about curves or their sizes, a key on a curve that is not known is denied.
 * An unknown size is permitted, and size 0 denied if any size is, as in the JDK.
 */
const struct policy_rule *policy_key(const struct policy *policy, uint64_t mechanism,
                                     const struct key_info *key, bool *is_curve);

/*
 * The smallest key size in bits that rules leave to a permitted mechanism: 0 if they raise nothing,
 * BITS_UNKNOWN if they leave no size.
 */
uint64_t policy_min_key_bits(const struct policy *policy, uint64_t mechanism);

/*
 * The rule that denies what is in a DigestInfo (RFC 8017, with or without NULL parameters) that is about to be signed,
 * verified or encrypted with RSA; NULL if none does, if data is something else or the digest is not known. A digest is
 * denied there if it is denied to a signature, or if signing with it and RSA in one step is: MD5withRSA is no other
 * signature if the application digests itself.
 */
const struct policy_rule *policy_digest_info(const struct policy *policy, const uint8_t *data,
                                             size_t data_bytes);

/*
 * The rule that denies a name, as the JDK's AlgorithmConstraints.permits(name) decides without a key:
 * the whole name, or one of its parts ("MD5withRSA": MD5, RSA), is an item of the list or a synonym of
 * one, also of an item that has no effect on a token. CKM_ names and numbers answer as the mechanism.
 */
const struct policy_rule *policy_name(const struct policy *policy, const char *name);

/* What the calls that a name is about are answered. */
enum { POLICY_EXCEPTIONS_MAX = 1024 };
struct policy_answer {
    /* Refused: nothing of the name is left. Without effect: a rule lists it and denies nothing. */
    enum { POLICY_PERMITS, POLICY_REFUSES, POLICY_NO_EFFECT, POLICY_UNKNOWN } verdict;

    /* The rule that refuses the name, or lists it without effect; of a permitted name the one that denies some of its
     * keys, or NULL. */
    const struct policy_rule *rule;

    uint64_t min_key_bits; /* as policy_min_key_bits(), if it is so of all its mechanisms; else 0 */
    const char *nearest;   /* to an unknown name, up to a '|'; NULL if nothing is near */

    /* Mechanisms of a name that is not refused, but they are: to some use at least. */
    size_t exception_count;
    struct policy_exception {
        uint64_t mechanism;
        const struct policy_rule *rule;
    } exceptions[POLICY_EXCEPTIONS_MAX];
};

/* What enforce says of a name; 0, or -ENOMEM. */
int policy_ask(const struct policy *policy, const char *name, struct policy_answer *answer);

/* Writes "file:line: key: text", as policy_print() does. */
void policy_print_rule(const struct policy_rule *rule, FILE *out);

/* The rule at a place in the order of the lists; NULL from beyond the end. */
const struct policy_rule *policy_rule(const struct policy *policy, size_t index);

/* What is in force. */
struct policy_counts {
    size_t items;      /* of all lists */
    size_t mechanisms; /* that are denied, to whatever use */
    size_t curves;
    size_t parameter_sets;
    size_t size_rules;
    size_t no_effect; /* items */
};
struct policy_counts policy_count(const struct policy *policy);

/*
 * Writes the policy as text: every item with its origin, and what it denies or why it has no effect.
 * The same lists give the same text. What is not printable appears as '?'.
 */
void policy_print(const struct policy *policy, FILE *out);

#endif
