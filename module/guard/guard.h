/* guard.h - the questions that the policy is asked around a call. None is asked where no policy is set. */
#ifndef P11_PROXY_GUARD_H
#define P11_PROXY_GUARD_H

#include "cryptoki.h"
#include "policy/policy.h"
#include "state/sessions.h"
#include "target/target.h"

/* What a mechanism is to do, as the flags of C_GetMechanismInfo and C_SessionCancel have it. */
enum purpose {
    TO_ENCRYPT = CKF_ENCRYPT,
    TO_DECRYPT = CKF_DECRYPT,
    TO_DIGEST = CKF_DIGEST,
    TO_SIGN = CKF_SIGN,
    TO_SIGN_RECOVER = CKF_SIGN_RECOVER,
    TO_VERIFY = CKF_VERIFY,
    TO_VERIFY_RECOVER = CKF_VERIFY_RECOVER,
    TO_MESSAGE_ENCRYPT = CKF_MESSAGE_ENCRYPT,
    TO_MESSAGE_DECRYPT = CKF_MESSAGE_DECRYPT,
    TO_MESSAGE_SIGN = CKF_MESSAGE_SIGN,
    TO_MESSAGE_VERIFY = CKF_MESSAGE_VERIFY,
    TO_WRAP = CKF_WRAP,
    TO_MAKE_KEYS = CKF_GENERATE, /* generate, derive, encapsulate, decapsulate */
    TO_UNWRAP = CKF_UNWRAP | TO_MAKE_KEYS,
    ONE_CALL = TO_WRAP | TO_UNWRAP /* the others leave an operation open on the session */
};

/* The purposes of each use that a rule of jdk.crypto.disabledAlgorithms tells apart; USE_OTHER has none. */
extern const CK_FLAGS guard_purposes[USES];

/* The keys of a call, as its row in functions.def names them. What it has not is zero. */
struct key_use {
    CK_OBJECT_HANDLE used;            /* by the mechanism */
    const CK_ATTRIBUTE *templates[2]; /* of the key that is made; of a pair the public one first */
    CK_ULONG counts[2];
    CK_OBJECT_HANDLE *results[2]; /* where handles of made keys come */
    const CK_BYTE *data;          /* of C_UnwrapKey: what the mechanism decrypts */
    CK_ULONG data_bytes;
};

/* Whether guard_mechanism() must be asked. A NULL mechanism ends an operation and is not read. */
static inline bool guard_concerns(const struct policy *policy, enum purpose purpose,
                                  const CK_MECHANISM *mechanism)
{
    return mechanism != NULL &&
           ((purpose & TO_MAKE_KEYS) || policy_concerns(policy, mechanism->mechanism));
}

/*
 * Before the call: CKR_OK, or what the caller is told and the target never sees. Keys are read on the caller's session.
 * Sets *unsure if a key is made whose size no template tells: then guard_created_key() is to be asked after CKR_OK. Any
 * thread, no lock held, as all functions here.
 */
CK_RV guard_mechanism(const struct policy *policy, const char *function, enum purpose purpose,
                      CK_SESSION_HANDLE session, const CK_MECHANISM *mechanism,
                      const struct key_use *use, bool *unsure);

/* After CKR_OK. If a key is denied, all that the call made is destroyed again, its handles are taken back, and the
 * answer is no more CKR_OK. */
CK_RV guard_created_key(const struct policy *policy, const char *function,
                        CK_SESSION_HANDLE session, const CK_MECHANISM *mechanism,
                        const struct key_use *use);

/* Before a template makes an object without a mechanism, or changes one (object; CK_INVALID_HANDLE: none). */
CK_RV guard_template(const struct policy *policy, const char *function, CK_SESSION_HANDLE session,
                     CK_OBJECT_HANDLE object, const CK_ATTRIBUTE *template, CK_ULONG count);

/* Whether the data of that mechanism may be a DigestInfo: it hides the digest from all other rules. */
static inline bool is_raw_rsa(CK_MECHANISM_TYPE type)
{
    return type == CKM_RSA_PKCS || type == CKM_RSA_X_509;
}

/* After CKR_OK of a call that leaves an operation open: notes whether its data may be a DigestInfo. NULL is fine. */
static inline void guard_note_operation(struct session *session, enum purpose purpose,
                                        const CK_MECHANISM *mechanism)
{
    if (session == NULL || mechanism == NULL)
        return;
    bool hides = is_raw_rsa(mechanism->mechanism);
    bool hid = (atomic_load_explicit(&session->digest_info, memory_order_relaxed) & purpose) != 0;
    if (hides && !hid)
        atomic_fetch_or(&session->digest_info, (unsigned)purpose);
    else if (hid && !hides)
        atomic_fetch_and(&session->digest_info, ~(unsigned)purpose);
}

/*
 * Data of an operation: CKR_DATA_INVALID if it is, or with its padding holds, a DigestInfo whose digest is denied. Reads
 * data only if the operation may be one that hides its digest so: a raw RSA one, or any of a session that is not known.
 * A refused operation is over at the target as well: by C_SessionCancel, else by as many zero bytes in place of data,
 * whose result is thrown away.
 */
CK_RV guard_digest_info(const struct policy *policy, const struct p11_functions *functions,
                        const char *function, enum purpose purpose, CK_SESSION_HANDLE session,
                        const CK_BYTE *data, CK_ULONG data_bytes);

/* At the end of C_Finalize: logs how often each rule refused what, and begins anew. */
void guard_reports_end(void);

#endif
