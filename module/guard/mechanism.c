/* mechanism.c - asks the policy about a call's mechanism and keys. */
#include "guard/internal.h"

const CK_FLAGS guard_purposes[USES] = {
    [USE_DIGEST] = TO_DIGEST,
    [USE_SIGN] = TO_SIGN | TO_SIGN_RECOVER | TO_VERIFY | TO_VERIFY_RECOVER | TO_MESSAGE_SIGN |
                 TO_MESSAGE_VERIFY,
    [USE_CIPHER] =
        TO_ENCRYPT | TO_DECRYPT | TO_WRAP | CKF_UNWRAP | TO_MESSAGE_ENCRYPT | TO_MESSAGE_DECRYPT,
};

static enum mechanism_use use_of(enum purpose purpose)
{
    enum mechanism_use use = 0;
    while (use != USE_OTHER && !(purpose & guard_purposes[use]))
        use++;
    return use;
}

/*
 * Rules about a mechanism's keys mean the keys that it works with, and those that it generates. A derived or unwrapped
 * key is another matter: an AES key from ECDH is no small ECDH key.
 */
static uint64_t maker(const CK_MECHANISM *mechanism, const struct key_use *use)
{
    return use->used == CK_INVALID_HANDLE ? mechanism->mechanism : NO_MECHANISM;
}

/* Parameters and templates differ from call to call, and in audit mode each call is counted that a rule would refuse. */
static bool can_be_remembered(const struct policy *policy, enum purpose purpose,
                              const CK_MECHANISM *mechanism)
{
    return mechanism->pParameter == NULL && !(purpose & TO_MAKE_KEYS) && !policy_is_audit(policy);
}

static CK_RV judge_key(const struct policy *policy, const char *function, uint64_t mechanism,
                       uint64_t rules_about, const struct key_info *key)
{
    bool is_curve;
    const struct policy_rule *rule = policy_key(policy, rules_about, key, &is_curve);
    return guard_refuse(policy, function, mechanism, rule,
                        is_curve ? CKR_CURVE_NOT_SUPPORTED : CKR_KEY_SIZE_RANGE);
}

static CK_RV judge_keys(const struct policy *policy, const char *function, enum purpose purpose,
                        CK_SESSION_HANDLE session, const CK_MECHANISM *mechanism,
                        const struct key_use *use, bool *unsure)
{
    CK_MECHANISM_TYPE type = mechanism->mechanism;
    struct known_key key;
    CK_RV rv = CKR_OK, code;
    if (use->used != CK_INVALID_HANDLE && policy_looks_at_keys_of(policy, type) &&
        key_find(&key, session, use->used)) {
        rv = judge_key(policy, function, type, type, &key.info);
        if (rv == CKR_OK && can_be_remembered(policy, purpose, mechanism))
            key_note_permitted(&key, type, purpose);
    }
    if (rv != CKR_OK || !(purpose & TO_MAKE_KEYS))
        return rv;
    const struct policy_rule *rule = templates_denied(policy, maker(mechanism, use),
                                                      key_type_generated(type), use, unsure, &code);
    return guard_refuse(policy, function, type, rule, code);
}

/* Apart from guard_mechanism(), because most calls are as permitted as the last one. */
__attribute__((noinline)) static CK_RV judge_mechanism(const struct policy *policy,
                                                       const char *function, enum purpose purpose,
                                                       CK_SESSION_HANDLE session,
                                                       const CK_MECHANISM *mechanism,
                                                       const struct key_use *key_use, bool *unsure)
{
    CK_MECHANISM_TYPE type = mechanism->mechanism;
    enum mechanism_use use = use_of(purpose);
    CK_RV rv = guard_refuse(policy, function, type, policy_mechanism(policy, type, use),
                            CKR_MECHANISM_INVALID);
    if (rv == CKR_OK && mechanism->pParameter != NULL)
        rv = guard_refuse(policy, function, type, parameters_denied(policy, use, mechanism),
                          CKR_MECHANISM_PARAM_INVALID);
    if (rv == CKR_OK && policy_has_key_rules(policy))
        rv = judge_keys(policy, function, purpose, session, mechanism, key_use, unsure);
    if (rv == CKR_OK && key_use->data != NULL && is_raw_rsa(type))
        rv = guard_refuse(policy, function, type,
                          digest_info_denied(policy, key_use->data, key_use->data_bytes),
                          CKR_DATA_INVALID);
    return rv;
}

CK_RV guard_mechanism(const struct policy *policy, const char *function, enum purpose purpose,
                      CK_SESSION_HANDLE session, const CK_MECHANISM *mechanism,
                      const struct key_use *key_use, bool *unsure)
{
    if (mechanism->pParameter == NULL && key_use->used != CK_INVALID_HANDLE &&
        key_is_permitted(session, key_use->used, mechanism->mechanism, purpose))
        return CKR_OK;
    return judge_mechanism(policy, function, purpose, session, mechanism, key_use, unsure);
}

static bool has_made(const struct key_use *use, int i)
{
    return use->results[i] != NULL && *use->results[i] != CK_INVALID_HANDLE;
}

CK_RV guard_created_key(const struct policy *policy, const char *function,
                        CK_SESSION_HANDLE session, const CK_MECHANISM *mechanism,
                        const struct key_use *use)
{
    CK_RV rv = CKR_OK;
    struct known_key key;
    for (int i = 0; i < 2 && rv == CKR_OK; i++)
        if (has_made(use, i) && key_find(&key, session, *use->results[i]))
            rv =
                judge_key(policy, function, mechanism->mechanism, maker(mechanism, use), &key.info);
    for (int i = 0; i < 2 && rv != CKR_OK; i++) {
        if (!has_made(use, i))
            continue;
        struct slot *slot = session_slot(session);
        target()->C_DestroyObject(session, *use->results[i]);
        *use->results[i] = CK_INVALID_HANDLE;
        if (slot != NULL)
            slot_invalidate(slot, SLOT_KEY_CHANGED);
    }
    return rv;
}

CK_RV guard_template(const struct policy *policy, const char *function, CK_SESSION_HANDLE session,
                     CK_OBJECT_HANDLE object, const CK_ATTRIBUTE *template, CK_ULONG count)
{
    const struct key_use use = {.templates = {template}, .counts = {count}};
    struct known_key key = {.info = key_info_of(NULL)};
    bool unsure;
    CK_RV code;
    /* What is made without a type is no key; and what changes nothing of a key's size need not be asked about. */
    if (!policy_has_key_rules(policy) ||
        (object != CK_INVALID_HANDLE &&
         (!template_tells_size(template, count) || !key_find(&key, session, object))))
        return CKR_OK;
    const struct policy_rule *rule =
        templates_denied(policy, NO_MECHANISM, key.info.type, &use, &unsure, &code);
    return guard_refuse(policy, function, NO_MECHANISM, rule, code);
}
