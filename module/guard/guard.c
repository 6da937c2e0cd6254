/* guard.c - asks the policy about a call's mechanism, keys and data, and reports what it refuses. */
#include "guard/guard.h"

#include "base/log.h"
#include "base/probes.h"
#include "state/counters.h"

/* OUTPUT_BYTES: more than any RSA key signs or encrypts. */
enum { NAME_BYTES = 48, OUTPUT_BYTES = 2048 };

/* The answer to a call that is denied that mechanism (NO_MECHANISM: a key). CKR_OK if it is not, or if the policy only
 * audits. */
static CK_RV refuse(const struct guarded_call *call, uint64_t mechanism, struct refusal refusal)
{
    const struct policy_rule *rule = refusal.rule;
    char name[NAME_BYTES];
    bool audit = policy_is_audit(call->policy);
    if (rule == NULL)
        return CKR_OK;
    PROBE(refusal, mechanism, rule->text, call->function, audit);
    if (count_refusal(mechanism, rule))
        log_write(audit ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "%s:%u: '%s' %s %s in %s", rule->file,
                  rule->line, rule->text, audit ? "would refuse" : "refuses",
                  mechanism == NO_MECHANISM ? "a key"
                                            : mechanism_name(mechanism, name, sizeof name),
                  call->function);
    return audit ? CKR_OK : refusal.code;
}

const CK_FLAGS guard_purposes[USES] = {
    [USE_DIGEST] = CKF_DIGEST,
    [USE_SIGN] = CKF_SIGN | CKF_SIGN_RECOVER | CKF_VERIFY | CKF_VERIFY_RECOVER | CKF_MESSAGE_SIGN |
                 CKF_MESSAGE_VERIFY,
    [USE_CIPHER] = CKF_ENCRYPT | CKF_DECRYPT | CKF_WRAP | CKF_UNWRAP | CKF_MESSAGE_ENCRYPT |
                   CKF_MESSAGE_DECRYPT,
};

static enum mechanism_use use_of(CK_FLAGS purpose)
{
    enum mechanism_use use = 0;
    while (use != USE_OTHER && !(purpose & guard_purposes[use]))
        use++;
    return use;
}

/* Whether the digest in a DigestInfo is denied; not if the data is something else or NULL. Before it may be
 * "00 01 FF .. FF 00", with or without the first 00, which an application put there itself. */
static struct refusal digest_info_denied(const struct guarded_call *call)
{
    const CK_BYTE *info = call->data, *at = info, *end = at + call->data_bytes;
    if (info == NULL || at == end)
        return (struct refusal){NULL, CKR_OK};
    if (*at == 0x00)
        at++;
    if (at < end && *at == 0x01) {
        do
            at++;
        while (at < end && *at == 0xff);
        if (at < end && *at == 0x00)
            info = at + 1;
    }
    return (struct refusal){policy_digest_info(call->policy, info, (size_t)(end - info)),
                            CKR_DATA_INVALID};
}

/* Apart from guard_mechanism(), because most calls are as permitted as the last one. */
__attribute__((noinline)) static CK_RV judge_mechanism(const struct guarded_call *call,
                                                       bool permitted, bool *unsure)
{
    const struct policy *policy = call->policy;
    CK_MECHANISM_TYPE type = call->mechanism->mechanism;
    enum mechanism_use use = use_of(call->purpose);
    struct refusal denied = {policy_mechanism(policy, type, use), CKR_MECHANISM_INVALID};
    CK_RV rv = refuse(call, type, denied);
    if (rv == CKR_OK && call->mechanism->pParameter != NULL)
        rv = refuse(call, type, parameters_denied(policy, use, call->mechanism));
    if (rv == CKR_OK && call->used != CK_INVALID_HANDLE && !permitted &&
        policy_looks_at_keys_of(policy, type))
        rv = refuse(call, type, used_key_denied(call, /* remember= */ denied.rule == NULL));
    if (rv == CKR_OK && (call->purpose & MAKES_KEYS) &&
        policy_looks_at_keys_of(policy, NO_MECHANISM))
        rv = refuse(call, type, templates_denied(call, key_type_generated(type), unsure));
    if (rv == CKR_OK && call->data != NULL && is_raw_rsa(type))
        rv = refuse(call, type, digest_info_denied(call));
    return rv;
}

CK_RV guard_mechanism(const struct guarded_call *call, bool *unsure)
{
    bool permitted = key_is_permitted(call);
    if (permitted && call->mechanism->pParameter == NULL && !(call->purpose & MAKES_KEYS))
        return CKR_OK;
    return judge_mechanism(call, permitted, unsure);
}

CK_RV guard_created_key(const struct guarded_call *call)
{
    struct key_info key;
    CK_RV rv = CKR_OK;
    for (int i = 0; i < 2 && rv == CKR_OK; i++) {
        const CK_OBJECT_HANDLE *made = call->results[i];
        if (made != NULL && *made != CK_INVALID_HANDLE && key_read(&key, call->session, *made))
            rv = refuse(call, call->mechanism->mechanism, made_key_denied(call, &key));
    }
    for (int i = 0; i < 2 && rv != CKR_OK; i++) {
        CK_OBJECT_HANDLE *made = call->results[i];
        if (made == NULL || *made == CK_INVALID_HANDLE)
            continue;
        target()->C_DestroyObject(call->session, *made);
        *made = CK_INVALID_HANDLE;
    }
    return rv;
}

CK_RV guard_template(const struct guarded_call *call)
{
    struct key_info key = key_info_of(NULL);
    bool unsure;
    /* What is made without a type is no key; and what changes nothing of a key's size need not be asked about. */
    if (!policy_looks_at_keys_of(call->policy, NO_MECHANISM) ||
        (call->used != CK_INVALID_HANDLE &&
         (!template_tells_size(call->templates[0], call->counts[0]) ||
          !key_read(&key, call->session, call->used))))
        return CKR_OK;
    return refuse(call, NO_MECHANISM, templates_denied(call, key.type, &unsure));
}

/* Whatever the target says of zero bytes, the operation is over then. That of messages goes on to the next one. */
static void end_with_zeros(const struct guarded_call *call, const struct p11_functions *functions)
{
    static const CK_BYTE constant[OUTPUT_BYTES];
    CK_BYTE_PTR zeros = (CK_BYTE_PTR)constant;
    CK_BYTE output[OUTPUT_BYTES];
    CK_ULONG output_bytes = sizeof output;
    CK_ULONG bytes = call->data_bytes < sizeof constant ? call->data_bytes : sizeof constant;
    if (call->purpose == CKF_SIGN)
        functions->C_Sign(call->session, zeros, bytes, output, &output_bytes);
    else if (call->purpose == CKF_SIGN_RECOVER)
        functions->C_SignRecover(call->session, zeros, bytes, output, &output_bytes);
    else if (call->purpose == CKF_VERIFY)
        functions->C_Verify(call->session, zeros, bytes, zeros, 1);
    else if (call->purpose == CKF_ENCRYPT)
        functions->C_Encrypt(call->session, zeros, bytes, output, &output_bytes);
    else if (call->purpose == CKF_DECRYPT)
        functions->C_Decrypt(call->session, zeros, bytes, output, &output_bytes);
}

CK_RV guard_digest_info(const struct guarded_call *call, const struct p11_functions *functions)
{
    struct session *session = session_find(call->session);
    /* A session that is not known may have any operation open. */
    if (session != NULL &&
        !(atomic_load_explicit(&session->digest_info, memory_order_relaxed) & call->purpose))
        return CKR_OK;
    CK_RV rv = refuse(call, CKM_RSA_PKCS, digest_info_denied(call));
    if (rv != CKR_OK && functions->C_SessionCancel(call->session, call->purpose) != CKR_OK)
        end_with_zeros(call, functions);
    return rv;
}
