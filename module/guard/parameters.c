/* parameters.c - reads what a mechanism's parameter names, and asks the policy about each. */
#include "guard/parameters.h"

#include <string.h>

#include "guard/key.h"

/* Mechanisms within mechanisms: none is nested deeper, and a circle ends here. */
enum { DEPTH_MOST = 4 };

/* Mechanism 0 generates RSA keys and is never meant inside another: there, 0 says "none". */
#define NOTHING 0

enum what {
    IS_MECHANISM,
    IS_DIGEST,
    IS_HASH,
    IS_MGF,
    IS_KDF,
    IS_PRF,
    IS_INNER,
    IS_OAEP,
    IS_SIZES,
    IS_KEYS
};

static const struct member {
    enum more_algorithms structure;
    unsigned word;
    enum what what;
} members[] = {
#define MEMBER(structure, word, type, name, what) {MORE_##structure, word, IS_##what},
#include "guard/parameters.def"
};

static const struct {
    uint64_t number, digest;
} kdfs[] = {
#define KDF(number, digest) {number, digest},
#include "guard/kdfs.def"
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
    const struct key_use *keys;
    CK_RV *code;
};

static const struct policy_rule *ask(const struct question *q, uint64_t number)
{
    return number == NOTHING ? NULL : policy_mechanism(q->policy, number, q->use);
}

static const struct policy_rule *ask_both(const struct question *q, uint64_t one, uint64_t other)
{
    const struct policy_rule *rule = ask(q, one);
    return rule != NULL ? rule : ask(q, other);
}

/* Signing a digest that is named apart is no other signature than the mechanism that does both. */
static const struct policy_rule *digest_denied(const struct question *q, uint64_t digest,
                                               uint64_t signature)
{
    const struct digest *hash = digest_find(digest);
    uint64_t whole = NOTHING;
    if (hash != NULL && signature == CKM_HASH_ML_DSA)
        whole = hash->ml_dsa;
    else if (hash != NULL && signature == CKM_HASH_SLH_DSA)
        whole = hash->slh_dsa;
    else if (hash != NULL && more_in(signature) == MORE_PSS)
        whole = hash->pss;
    return ask_both(q, digest, whole);
}

static const struct policy_rule *hash_denied(const struct question *q, uint64_t number)
{
    const struct digest *hash = digest_find(number);
    return ask_both(q, number, hash != NULL ? hash->hmac : NOTHING);
}

static const struct policy_rule *mgf_denied(const struct question *q, uint64_t mgf)
{
    for (size_t i = 0; mgf != NOTHING && i < DIGESTS; i++)
        if (digests[i].mgf == mgf)
            return ask(q, digests[i].mechanism);
    return NULL;
}

static const struct policy_rule *prf_denied(const struct question *q, uint64_t prf)
{
    for (size_t i = 0; prf != NOTHING && i < DIGESTS; i++)
        if (digests[i].prf == prf)
            return ask(q, digests[i].hmac);
    return NULL;
}

static const struct policy_rule *kdf_denied(const struct question *q, uint64_t kdf)
{
    for (size_t i = 0; i < sizeof kdfs / sizeof *kdfs; i++)
        if (kdfs[i].number == kdf)
            return ask(q, kdfs[i].digest);
    return NULL;
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

/* A key of that size that a template makes; of no size: none. */
static const struct policy_rule *size_denied(const struct question *q, const CK_ATTRIBUTE *template,
                                             CK_ULONG count, CK_ULONG bits)
{
    CK_ULONG len_bytes = bits / 8;
    CK_ATTRIBUTE size = {CKA_VALUE_LEN, &len_bytes, sizeof len_bytes};
    const CK_ATTRIBUTE *templates[2] = {template, &size};
    const CK_ULONG counts[2] = {count, 1};
    bool unsure;
    return bits == 0 ? NULL
                     : templates_denied(q->policy, NO_MECHANISM, NULL, templates, counts, &unsure,
                                        q->code);
}

/* The MAC keys, and the keys that the template of the call is for. */
static const struct policy_rule *sizes_denied(const struct question *q, const CK_ULONG bits[2])
{
    CK_KEY_TYPE type = CKK_GENERIC_SECRET;
    CK_ATTRIBUTE mac = {CKA_KEY_TYPE, &type, sizeof type};
    const struct policy_rule *rule = size_denied(q, &mac, 1, bits[0]);
    return rule != NULL ? rule : size_denied(q, q->keys->templates[0], q->keys->counts[0], bits[1]);
}

/* So many CK_DERIVED_KEYs at that address: keys that are made besides. */
static const struct policy_rule *keys_denied(const struct question *q, CK_ULONG count,
                                             uintptr_t address)
{
    struct {
        const CK_ATTRIBUTE *attributes;
        CK_ULONG count;
        CK_OBJECT_HANDLE *handle;
    } key;
    const struct policy_rule *rule = NULL;
    for (CK_ULONG i = 0; i < count && address != 0 && rule == NULL; i++) {
        memcpy(&key, (const char *)address + i * sizeof key, sizeof key);
        const CK_ATTRIBUTE *templates[2] = {key.attributes, NULL};
        const CK_ULONG counts[2] = {key.count, 0};
        bool unsure;
        rule = templates_denied(q->policy, NO_MECHANISM, NULL, templates, counts, &unsure, q->code);
    }
    return rule;
}

static const struct policy_rule *member_denied(const struct question *q,
                                               const CK_MECHANISM *mechanism,
                                               const struct member *member, unsigned depth)
{
    CK_ULONG values[2] = {0, 0}, value;
    bool is_pair = member->what == IS_SIZES || member->what == IS_KEYS;
    size_t at = member->word * sizeof value, len_bytes = is_pair ? sizeof values : sizeof value;
    if (mechanism->pParameter == NULL || mechanism->ulParameterLen < at + len_bytes ||
        (is_pair && !policy_has_key_rules(q->policy)))
        return NULL;
    memcpy(values, (const char *)mechanism->pParameter + at, len_bytes);
    value = values[0];
    switch (member->what) {
    case IS_MECHANISM:
        return ask(q, value);
    case IS_DIGEST:
        return digest_denied(q, value, mechanism->mechanism);
    case IS_HASH:
        return hash_denied(q, value);
    case IS_MGF:
        return mgf_denied(q, value);
    case IS_KDF:
        return kdf_denied(q, value);
    case IS_PRF:
        return prf_denied(q, value);
    case IS_INNER:
        return inner_denied(q, value, depth);
    case IS_OAEP:
        return oaep_denied(q, value);
    case IS_SIZES:
        return sizes_denied(q, values);
    case IS_KEYS:
        return keys_denied(q, value, values[1]);
    }
    return NULL;
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
                                            const CK_MECHANISM *mechanism,
                                            const struct key_use *keys, CK_RV *code)
{
    const struct question q = {policy, use, keys, code};
    *code = CKR_MECHANISM_PARAM_INVALID;
    if (mechanism->ulParameterLen < sizeof(CK_ULONG))
        return NULL;
    return mechanism_denied(&q, mechanism, more_in(mechanism->mechanism), DEPTH_MOST);
}
