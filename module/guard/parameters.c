/* parameters.c - reads what a mechanism's parameter names, and asks the policy about each. */
#include <string.h>

#include "guard/guard.h"

/* Mechanisms within mechanisms: none is nested deeper, and a circle ends here. */
enum { DEPTH_MOST = 4 };

/* Mechanism 0 generates RSA keys and is never meant inside another: there, 0 says "none". */
#define NOTHING 0

enum what { IS_MECHANISM, IS_DIGEST, IS_HASH, IS_MGF, IS_KDF, IS_PRF, IS_INNER, IS_OAEP };

static const struct member {
    enum more_algorithms structure;
    unsigned word;
    enum what what;
} members[] = {
#define MEMBER(structure, word, type, name, what) {MORE_##structure, word, IS_##what},
#include "guard/parameters.def"
};

/* The digests of key derivation functions, CKD_..., of elliptic curves and of X9.42, whose numbers agree. */
static const uint16_t kdfs[] = {
    [0x02] = 0x220,  0x220,  0x220,         /* SHA-1: X9.63, ASN.1, concatenated */
    [0x05] = 0x255,  0x250,  0x260,  0x270, /* SHA-2 */
    [0x0a] = 0x2b5,  0x2b0,  0x2c0,  0x2d0, /* SHA-3 */
    [0x0e] = 0x220,                         /* from here on: SP800-56A's */
    [0x0f] = 0x255,  0x250,  0x260,  0x270, /* SHA-2 */
    [0x13] = 0x2b5,  0x2b0,  0x2c0,  0x2d0, /* SHA-3 */
    [0x17] = 0x400c, 0x4011, 0x4016, 0x401b /* BLAKE2b */
};

/* A switch, not mechanism_find(), which looks through the table: calls with an IV come here too. */
static enum more_algorithms more_in(uint64_t number)
{
    switch (number) {
#define MECHANISM(number, names, atoms, full_names, use, more, size)                               \
    case number:                                                                                   \
        return MORE_##more;
#include "policy/mechanisms.def"
#undef MECHANISM
    default:
        return MORE_NONE;
    }
}

/* The mechanism that a number of CKG_MGF1_..., CKD_... or CKP_PKCS5_PBKD2_HMAC_... stands for; or the one that does in
 * one step what is named apart: HMAC with that hash, or that signature with that digest. */
static uint64_t mechanism_of(enum what what, uint64_t number, uint64_t signature)
{
    if (what == IS_KDF)
        return number < sizeof kdfs / sizeof *kdfs ? kdfs[number] : NOTHING;
    for (const struct digest *d = digests; number != NOTHING && d < digests + digest_count; d++) {
        if (number != (what == IS_MGF ? d->mgf : what == IS_PRF ? d->prf : d->mechanism))
            continue;
        if (what != IS_DIGEST)
            return what == IS_MGF ? d->mechanism : what == IS_MECHANISM ? NOTHING : d->hmac;
        return signature == CKM_HASH_ML_DSA     ? d->ml_dsa
               : signature == CKM_HASH_SLH_DSA  ? d->slh_dsa
               : more_in(signature) == MORE_PSS ? d->pss
                                                : NOTHING;
    }
    return NOTHING;
}

/* What is asked: the same policy, for the same use, about all that a mechanism names. */
struct question {
    const struct policy *policy;
    enum mechanism_use use;
    unsigned depth; /* that is left */
};

static const struct policy_rule *ask(const struct question *q, uint64_t number)
{
    return number == NOTHING ? NULL : policy_mechanism(q->policy, number, q->use);
}

static const struct policy_rule *structure_denied(const struct question *q,
                                                  const CK_MECHANISM *mechanism)
{
    const struct question deeper = {q->policy, q->use, q->depth - 1};
    enum more_algorithms structure = more_in(mechanism->mechanism);
    const struct policy_rule *rule = NULL;
    CK_ULONG value;
    if (structure == MORE_NONE || mechanism->pParameter == NULL)
        return NULL;
    for (size_t i = 0; rule == NULL && i < sizeof members / sizeof *members; i++) {
        enum what what = members[i].what;
        bool is_pointer = what == IS_INNER || what == IS_OAEP;
        size_t at = members[i].word * sizeof value;
        if (members[i].structure != structure || mechanism->ulParameterLen < at + sizeof value)
            continue;
        memcpy(&value, (const char *)mechanism->pParameter + at, sizeof value);
        if (is_pointer && (value == 0 || q->depth == 0))
            continue;
        /* Structures that are pointed to come without a length. */
        CK_MECHANISM inner = {CKM_RSA_PKCS_OAEP, (void *)value, sizeof(CK_RSA_PKCS_OAEP_PARAMS)};
        if (what == IS_INNER)
            memcpy(&inner, (const void *)value, sizeof inner);
        if (what == IS_INNER || what == IS_MECHANISM || what == IS_DIGEST || what == IS_HASH)
            rule = ask(q, what == IS_INNER ? inner.mechanism : value);
        if (rule == NULL)
            rule = is_pointer ? structure_denied(&deeper, &inner)
                              : ask(q, mechanism_of(what, value, mechanism->mechanism));
    }
    return rule;
}

struct refusal parameters_denied(const struct policy *policy, enum mechanism_use use,
                                 const CK_MECHANISM *mechanism)
{
    const struct question q = {policy, use, DEPTH_MOST};
    return (struct refusal){structure_denied(&q, mechanism), CKR_MECHANISM_PARAM_INVALID};
}
