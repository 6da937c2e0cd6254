/* guard.h - the questions that the policy is asked around a call. None is asked where no policy is set. */
#ifndef P11_PROXY_GUARD_H
#define P11_PROXY_GUARD_H

#include "cryptoki.h"
#include "functions.h"
#include "policy/policy.h"
#include "state/sessions.h"

/* What a mechanism is to do. The first ones leave an operation open on the session; the others are over with the call. */
enum purpose {
    TO_ENCRYPT = 1 << 0,
    TO_DECRYPT = 1 << 1,
    TO_DIGEST = 1 << 2,
    TO_SIGN = 1 << 3,
    TO_SIGN_RECOVER = 1 << 4,
    TO_VERIFY = 1 << 5,
    TO_VERIFY_RECOVER = 1 << 6,
    TO_MESSAGE_ENCRYPT = 1 << 7,
    TO_MESSAGE_DECRYPT = 1 << 8,
    TO_MESSAGE_SIGN = 1 << 9,
    TO_MESSAGE_VERIFY = 1 << 10,
    TO_VERIFY_SIGNATURE = 1 << 11,
    OPERATIONS = (1 << 12) - 1,
    TO_WRAP = 1 << 12,
    TO_MAKE_KEYS = 1 << 13, /* generate, derive, encapsulate, decapsulate */
    TO_UNWRAP = TO_WRAP | TO_MAKE_KEYS,
};

/* The keys of a call, as its row in functions.def names them. What it has not is zero. */
struct key_use {
    CK_OBJECT_HANDLE used;            /* by the mechanism */
    const CK_ATTRIBUTE *templates[2]; /* of the key that is made; of a pair the public one first */
    CK_ULONG counts[2];
    CK_OBJECT_HANDLE *results[2]; /* where handles of made keys come */
    const CK_BYTE *data;          /* of C_UnwrapKey: what the mechanism decrypts */
    CK_ULONG data_bytes;
};

/* Whether the data of that mechanism may be a DigestInfo: it hides the digest from all other rules. */
static inline bool is_raw_rsa(CK_MECHANISM_TYPE type)
{
    return type == CKM_RSA_PKCS || type == CKM_RSA_X_509;
}

/* Whether guard_mechanism() must be asked. A NULL mechanism ends an operation and is not read. */
static inline bool guard_concerns(const struct policy *policy, enum purpose purpose,
                                  const CK_MECHANISM *mechanism)
{
    return mechanism != NULL &&
           ((purpose & TO_MAKE_KEYS) || policy_concerns(policy, mechanism->mechanism));
}

/*
 * Before the call: CKR_OK, or what the caller is told and the target never sees. Keys are read on the caller's session. Sets *unsure if a key is made whose size no template tells: then
 * guard_created_key() is to be asked after CKR_OK. Any thread, no lock held, as all functions here.
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
 */
CK_RV guard_digest_info(const struct policy *policy, const char *function, enum purpose purpose,
                        CK_SESSION_HANDLE session, const CK_BYTE *data, CK_ULONG data_bytes);

/*
 * Ends the operation whose data was refused, so that the session is ready for the next one: by C_SessionCancel, else by
 * as many zero bytes, or in parts by none, into a buffer of its own. Returns refusal, or what the token says of the
 * operation or session itself.
 */
CK_RV guard_end_operation(const struct p11_functions *functions, enum purpose purpose,
                          bool in_parts, CK_SESSION_HANDLE session, CK_ULONG data_bytes,
                          CK_RV refusal);

/* More than any RSA key signs or encrypts. */
enum { GUARD_OUTPUT_BYTES = 2048 };

/* Once, after memory_map(). */
void guard_prepare(void);

#endif
