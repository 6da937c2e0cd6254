/* parameters.c - reads what a mechanism's parameter names, and asks the policy about each. */
#include <string.h>

#include "guard/internal.h"

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

/* What is asked: the same policy, for the same use, about all that a mechanism names. */
struct question {
    const struct policy *policy;
    enum mechanism_use use;
};

static const struct policy_rule *ask(const struct question *q, uint64_t number)
{
    return number == NOTHING ? NULL : policy_mechanism(q->policy, number, q->use);
}

/* The mechanism that does in one step what is named apart: HMAC with that hash, or that signature with that digest. */
static uint64_t whole_of(enum what what, uint64_t digest, uint64_t signature)
{
    const struct digest *hash = what == IS_HASH || what == IS_DIGEST ? digest_find(digest) : NULL;
    if (hash == NULL)
        return NOTHING;
    if (what == IS_HASH)
        return hash->hmac;
    if (signature == CKM_HASH_ML_DSA)
        return hash->ml_dsa;
    if (signature == CKM_HASH_SLH_DSA)
        return hash->slh_dsa;
    return more_in(signature) == MORE_PSS ? hash->pss : NOTHING;
}

/* The mechanism that a number of CKG_MGF1_..., CKD_... or CKP_PKCS5_PBKD2_HMAC_... stands for. */
static uint64_t mechanism_of(enum what what, uint64_t number)
{
    if (what == IS_KDF)
        return number < sizeof kdfs / sizeof *kdfs ? kdfs[number] : NOTHING;
    for (size_t i = 0; number != NOTHING && i < DIGESTS; i++)
        if (number == (what == IS_MGF ? digests[i].mgf : digests[i].prf))
            return what == IS_MGF ? digests[i].mechanism : digests[i].hmac;
    return NOTHING;
}

static const struct policy_rule *mechanism_denied(const struct question *q,
                                                  const CK_MECHANISM *mechanism,
                                                  enum more_algorithms structure, unsigned depth);

/* The mechanism at that address, itself and with what is in its parameter. */
static const struct policy_rule *inner_denied(const struct question *q, uintptr_t address,
                                              unsigned depth)
{
    CK_MECHANISM inner;
    if (address == 0 || depth == 0)
        return NULL;
    memcpy(&inner, (const void *)address, sizeof inner);
    const struct policy_rule *rule = ask(q, inner.mechanism);
    return rule != NULL ? rule : mechanism_denied(q, &inner, more_in(inner.mechanism), depth - 1);
}

/* The structure at that address, which comes without a length. */
static const struct policy_rule *oaep_denied(const struct question *q, uintptr_t address)
{
    CK_MECHANISM oaep = {CKM_RSA_PKCS_OAEP, (void *)address, sizeof(CK_RSA_PKCS_OAEP_PARAMS)};
    return mechanism_denied(q, &oaep, MORE_OAEP, /* depth= */ 0);
}

static const struct policy_rule *member_denied(const struct question *q,
                                               const CK_MECHANISM *mechanism,
                                               const struct member *member, unsigned depth)
{
    const struct policy_rule *rule;
    CK_ULONG value;
    size_t at = member->word * sizeof value;
    if (mechanism->pParameter == NULL || mechanism->ulParameterLen < at + sizeof value)
        return NULL;
    memcpy(&value, (const char *)mechanism->pParameter + at, sizeof value);
    switch (member->what) {
    case IS_MGF:
    case IS_KDF:
    case IS_PRF:
        return ask(q, mechanism_of(member->what, value));
    case IS_INNER:
        return inner_denied(q, value, depth);
    case IS_OAEP:
        return oaep_denied(q, value);
    default:
        rule = ask(q, value);
        return rule != NULL ? rule : ask(q, whole_of(member->what, value, mechanism->mechanism));
    }
}

static const struct policy_rule *mechanism_denied(const struct question *q,
                                                  const CK_MECHANISM *mechanism,
                                                  enum more_algorithms structure, unsigned depth)
{
    const struct policy_rule *rule = NULL;
    for (size_t i = 0;
         structure != MORE_NONE && rule == NULL && i < sizeof members / sizeof *members; i++)
        if (members[i].structure == structure)
            rule = member_denied(q, mechanism, &members[i], depth);
    return rule;
}

const struct policy_rule *parameters_denied(const struct policy *policy, enum mechanism_use use,
                                            const CK_MECHANISM *mechanism)
{
    const struct question q = {policy, use};
    return mechanism_denied(&q, mechanism, more_in(mechanism->mechanism), DEPTH_MOST);
}
