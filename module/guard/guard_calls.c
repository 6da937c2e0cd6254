/* guard_calls.c - asks the policy about a call's mechanism and keys. */
#include "guard/guard_calls.h"

#include "guard/guard_parameters.h"
#include "guard/guard_report.h"
#include "guard/key_cache.h"
#include "state/sessions.h"
#include "target/target.h"

/* A key that the token has. False if the token does not say what it is: then the token decides. */
static bool facts_of_key(struct key_facts *facts, CK_SESSION_HANDLE session, CK_OBJECT_HANDLE key)
{
    const struct slot *slot = session_slot(session);
    struct key_cache_ticket ticket;
    if (slot == NULL)
        return key_facts_read(facts, session, key);
    if (key_cache_get(slot, key, facts, &ticket))
        return true;
    if (!key_facts_read(facts, session, key))
        return false;
    key_cache_put(slot, key, facts, &ticket);
    return true;
}

static CK_RV judge_facts(const struct policy *policy, const char *function, uint64_t mechanism,
                         uint64_t asked_mechanism, const struct key_facts *facts)
{
    CK_RV code;
    const struct policy_rule *rule = key_facts_denied(policy, asked_mechanism, facts, &code);
    return guard_verdict(policy, function, mechanism, rule, code);
}

/* What the templates say of the key that comes out. */
static struct key_facts facts_of_made(const CK_MECHANISM *mechanism, const struct key_use *use)
{
    struct key_facts facts = key_facts_of(mechanism->mechanism);
    /* The type may stand in either, and which attributes count depends on it. The public one has the last
     * word: that is where the size belongs. */
    key_facts_add(&facts, use->made, use->made_count);
    key_facts_add(&facts, use->made_private, use->made_private_count);
    key_facts_add(&facts, use->made, use->made_count);
    return facts;
}

/*
 * Rules about a mechanism's keys mean the keys that it works with, and those that it generates. A derived or
 * unwrapped key is another matter: an AES key from ECDH is no small ECDH key.
 */
static uint64_t maker(const CK_MECHANISM *mechanism, const struct key_use *use)
{
    return use->used == CK_INVALID_HANDLE ? mechanism->mechanism : NO_MECHANISM;
}

static CK_RV guard_keys(const struct policy *policy, const char *function,
                        CK_SESSION_HANDLE session, const CK_MECHANISM *mechanism,
                        const struct key_use *use)
{
    struct key_facts facts;
    CK_RV rv = CKR_OK;
    if (use->used != CK_INVALID_HANDLE && facts_of_key(&facts, session, use->used))
        rv = judge_facts(policy, function, mechanism->mechanism, mechanism->mechanism, &facts);
    if (rv == CKR_OK && use->result != NULL) {
        facts = facts_of_made(mechanism, use);
        rv = judge_facts(policy, function, mechanism->mechanism, maker(mechanism, use), &facts);
    }
    return rv;
}

/* As jdk.crypto.disabledAlgorithms tells uses apart. */
static enum mechanism_use use_of(enum purpose purpose)
{
    switch (purpose) {
    case TO_DIGEST:
        return USE_DIGEST;
    case TO_SIGN:
    case TO_SIGN_RECOVER:
    case TO_VERIFY:
    case TO_VERIFY_RECOVER:
    case TO_MESSAGE_SIGN:
    case TO_MESSAGE_VERIFY:
    case TO_VERIFY_SIGNATURE:
        return USE_SIGN;
    case TO_ENCRYPT:
    case TO_DECRYPT:
    case TO_MESSAGE_ENCRYPT:
    case TO_MESSAGE_DECRYPT:
        return USE_CIPHER;
    default:
        return USE_OTHER;
    }
}

CK_RV guard_call(const struct policy *policy, const char *function, enum purpose purpose,
                 CK_SESSION_HANDLE session, const CK_MECHANISM *mechanism,
                 const struct key_use *use)
{
    (void)purpose;
    if (mechanism == NULL)
        return CKR_OK;
    CK_RV rv = guard_verdict(policy, function, mechanism->mechanism,
                             policy_mechanism(policy, mechanism->mechanism, use_of(purpose)),
                             CKR_MECHANISM_INVALID);
    if (rv == CKR_OK)
        rv = guard_verdict(policy, function, mechanism->mechanism,
                           parameters_denied(policy, use_of(purpose), mechanism),
                           CKR_MECHANISM_PARAM_INVALID);
    if (rv == CKR_OK && policy_has_key_rules(policy))
        rv = guard_keys(policy, function, session, mechanism, use);
    return rv;
}

CK_RV guard_import(const struct policy *policy, const char *function, const CK_ATTRIBUTE *template,
                   CK_ULONG count)
{
    if (!policy_has_key_rules(policy) || !template_is_key(template, count))
        return CKR_OK;
    struct key_facts facts = key_facts_of(NO_MECHANISM);
    key_facts_add(&facts, template, count);
    return judge_facts(policy, function, NO_MECHANISM, NO_MECHANISM, &facts);
}

static CK_RV guard_result(const struct policy *policy, const char *function,
                          CK_SESSION_HANDLE session, const CK_MECHANISM *mechanism,
                          const struct key_use *use, CK_OBJECT_HANDLE *result)
{
    struct key_facts facts;
    if (result == NULL || *result == CK_INVALID_HANDLE || !facts_of_key(&facts, session, *result))
        return CKR_OK;
    return judge_facts(policy, function, mechanism->mechanism, maker(mechanism, use), &facts);
}

static void take_back(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE *result)
{
    if (result == NULL || *result == CK_INVALID_HANDLE)
        return;
    target()->C_DestroyObject(session, *result);
    struct slot *slot = session_slot(session);
    if (slot != NULL)
        slot_invalidate(slot, SLOT_KEY_CHANGED);
    *result = CK_INVALID_HANDLE;
}

CK_RV guard_made(const struct policy *policy, const char *function, CK_SESSION_HANDLE session,
                 const CK_MECHANISM *mechanism, const struct key_use *use)
{
    if (mechanism == NULL || use->result == NULL || !policy_has_key_rules(policy))
        return CKR_OK;
    struct key_facts facts = facts_of_made(mechanism, use);
    if (key_facts_are_enough(&facts))
        return CKR_OK;
    CK_RV rv = guard_result(policy, function, session, mechanism, use, use->result);
    if (rv == CKR_OK)
        rv = guard_result(policy, function, session, mechanism, use, use->result_private);
    if (rv != CKR_OK) {
        take_back(session, use->result);
        take_back(session, use->result_private);
    }
    return rv;
}
