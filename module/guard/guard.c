/* guard.c - asks the policy about a call's mechanism and keys. */
#include "guard/guard.h"

#include "guard/digest_info.h"
#include "guard/key.h"
#include "guard/parameters.h"
#include "guard/report.h"
#include "target/target.h"

/* The uses that a rule of jdk.crypto.disabledAlgorithms tells apart. */
static enum mechanism_use use_of(enum purpose purpose)
{
    if (purpose & (TO_SIGN | TO_SIGN_RECOVER | TO_VERIFY | TO_VERIFY_RECOVER | TO_MESSAGE_SIGN |
                   TO_MESSAGE_VERIFY | TO_VERIFY_SIGNATURE))
        return USE_SIGN;
    if (purpose & (TO_ENCRYPT | TO_DECRYPT | TO_MESSAGE_ENCRYPT | TO_MESSAGE_DECRYPT | TO_WRAP))
        return USE_CIPHER;
    return purpose == TO_DIGEST ? USE_DIGEST : USE_OTHER;
}

/*
 * Rules about a mechanism's keys mean the keys that it works with, and those that it generates. A derived or unwrapped
 * key is another matter: an AES key from ECDH is no small ECDH key.
 */
static uint64_t maker(const CK_MECHANISM *mechanism, const struct key_use *use)
{
    return use->used == CK_INVALID_HANDLE ? mechanism->mechanism : NO_MECHANISM;
}

static CK_RV judge_key(const struct policy *policy, const char *function, uint64_t mechanism,
                       uint64_t rules_about, const struct key_info *key)
{
    bool is_curve;
    const struct policy_rule *rule = policy_key(policy, rules_about, key, &is_curve);
    return guard_refuse(policy, function, mechanism, rule,
                        is_curve ? CKR_CURVE_NOT_SUPPORTED : CKR_KEY_SIZE_RANGE);
}

static CK_RV judge_keys(const struct policy *policy, const char *function, bool makes,
                        CK_SESSION_HANDLE session, const CK_MECHANISM *mechanism,
                        const struct key_use *use, bool *unsure)
{
    CK_MECHANISM_TYPE type = mechanism->mechanism;
    struct key_info key;
    CK_RV rv = CKR_OK, code;
    if (use->used != CK_INVALID_HANDLE && policy_looks_at_keys_of(policy, type) &&
        key_find(&key, session, use->used))
        rv = judge_key(policy, function, type, type, &key);
    if (rv != CKR_OK || !makes)
        return rv;
    const struct policy_rule *rule =
        templates_denied(policy, maker(mechanism, use), key_type_generated(type), use->templates,
                         use->counts, unsure, &code);
    return guard_refuse(policy, function, type, rule, code);
}

CK_RV guard_mechanism(const struct policy *policy, const char *function, enum purpose purpose,
                      CK_SESSION_HANDLE session, const CK_MECHANISM *mechanism,
                      const struct key_use *use, bool *unsure)
{
    CK_MECHANISM_TYPE type = mechanism->mechanism;
    const struct policy_rule *rule = policy_mechanism(policy, type, use_of(purpose));
    CK_RV code, rv = guard_refuse(policy, function, type, rule, CKR_MECHANISM_INVALID);
    if (rv == CKR_OK && mechanism->pParameter != NULL) {
        rule = parameters_denied(policy, use_of(purpose), mechanism, use, &code);
        rv = guard_refuse(policy, function, type, rule, code);
    }
    if (rv == CKR_OK && policy_has_key_rules(policy))
        rv = judge_keys(policy, function, (purpose & TO_MAKE_KEYS) != 0, session, mechanism, use,
                        unsure);
    if (rv == CKR_OK && use->data != NULL && is_raw_rsa(type))
        rv = guard_refuse(policy, function, type,
                          digest_info_denied(policy, use->data, use->data_bytes), CKR_DATA_INVALID);
    return rv;
}

CK_RV guard_created_key(const struct policy *policy, const char *function,
                        CK_SESSION_HANDLE session, const CK_MECHANISM *mechanism,
                        const struct key_use *use)
{
    CK_RV rv = CKR_OK;
    struct key_info key;
    for (int i = 0; i < 2 && rv == CKR_OK; i++)
        if (use->results[i] != NULL && *use->results[i] != CK_INVALID_HANDLE &&
            key_find(&key, session, *use->results[i]))
            rv = judge_key(policy, function, mechanism->mechanism, maker(mechanism, use), &key);
    for (int i = 0; i < 2 && rv != CKR_OK; i++) {
        if (use->results[i] == NULL || *use->results[i] == CK_INVALID_HANDLE)
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
    const CK_ATTRIBUTE *templates[2] = {template, NULL};
    const CK_ULONG counts[2] = {count, 0};
    struct key_info key = key_info_of(NULL);
    bool unsure;
    CK_RV code;
    if (!policy_has_key_rules(policy) ||
        (object == CK_INVALID_HANDLE
             ? !template_is_key(template, count)
             : !template_tells_size(template, count) || !key_find(&key, session, object)))
        return CKR_OK;
    const struct policy_rule *rule =
        templates_denied(policy, NO_MECHANISM, key.type, templates, counts, &unsure, &code);
    return guard_refuse(policy, function, NO_MECHANISM, rule, code);
}

void guard_prepare(void)
{
    guard_reports_prepare();
    key_cache_prepare();
}
