/* guard.h - the questions that the policy is asked around a call. None is asked where no policy is set. */
#ifndef P11_PROXY_GUARD_H
#define P11_PROXY_GUARD_H

#include "cryptoki.h"
#include "policy/policy.h"
#include "state/sessions.h"
#include "target/target.h"

/* A call that the policy is asked about, as its row in functions.def names it. What it has not is zero. */
struct guarded_call {
    const struct policy *policy;
    const char *function;
    CK_SESSION_HANDLE session; /* keys are read on it */
    CK_FLAGS purpose;          /* what the mechanism is to do: a flag of C_GetMechanismInfo */
    const CK_MECHANISM *mechanism;
    CK_OBJECT_HANDLE used; /* the key that the mechanism uses, or the object that changes */
    const CK_ATTRIBUTE *templates[2]; /* of the key that is made; of a pair the public one first */
    CK_ULONG counts[2];
    CK_OBJECT_HANDLE *results[2]; /* where handles of made keys come */
    const CK_BYTE *data;          /* of an operation, or what C_UnwrapKey decrypts */
    CK_ULONG data_bytes;
};

enum {
    MAKES_KEYS = CKF_GENERATE | CKF_GENERATE_KEY_PAIR | CKF_DERIVE | CKF_UNWRAP | CKF_ENCAPSULATE |
                 CKF_DECAPSULATE,
    ONE_CALL = MAKES_KEYS | CKF_WRAP /* the others leave an operation open on the session */
};

/* The purposes of each use that a rule of jdk.crypto.disabledAlgorithms tells apart; USE_OTHER has none. */
extern const CK_FLAGS guard_purposes[USES];

/* Whether guard_mechanism() must be asked. A NULL mechanism ends an operation and is not read. */
static inline bool guard_concerns(const struct policy *policy, CK_FLAGS purpose,
                                  const CK_MECHANISM *mechanism)
{
    return mechanism != NULL &&
           ((purpose & MAKES_KEYS) || policy_concerns(policy, mechanism->mechanism));
}

/*
 * Before the call: CKR_OK, or what the caller is told and the target never sees. Sets *unsure if a key is made whose
 * size no template tells: then guard_created_key() is to be asked after CKR_OK. Any thread, no lock held while the
 * token is asked, as all functions here.
 */
CK_RV guard_mechanism(const struct guarded_call *call, bool *unsure);

/* After CKR_OK. If a key is denied, all that the call made is destroyed again, its handles are taken back, and the
 * answer is no more CKR_OK. */
CK_RV guard_created_key(const struct guarded_call *call);

/* Before a call makes an object by a template and without a mechanism, or changes an object. */
CK_RV guard_template(const struct guarded_call *call);

/* Whether the data of that mechanism may be a DigestInfo: it hides the digest from all other rules. */
static inline bool is_raw_rsa(CK_MECHANISM_TYPE type)
{
    return type == CKM_RSA_PKCS || type == CKM_RSA_X_509;
}

/* After CKR_OK of a call that leaves an operation open: notes whether its data may be a DigestInfo. NULL is fine. */
static inline void guard_note_operation(struct session *session, CK_FLAGS purpose,
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
CK_RV guard_digest_info(const struct guarded_call *call, const struct p11_functions *functions);

/* What follows is between the files of this folder. */

/* A rule that denies what a call asks for, and what the call is then answered. The rule is NULL if none does. */
struct refusal {
    const struct policy_rule *rule;
    CK_RV code;
};

/*
 * Whether something is denied that the mechanism's parameter names, such as the hash of RSA-PSS. Of the parameter it
 * reads no more than ulParameterLen bytes, at any alignment. What is missing, too short, or of a mechanism that is in no
 * table names nothing: that is for the token to judge. Structures that the parameter points to are read as the token
 * would read them.
 */
struct refusal parameters_denied(const struct policy *policy, enum mechanism_use use,
                                 const CK_MECHANISM *mechanism);

/* What the token says of a key. False if it does not say what type of key it is: it will then say itself what is wrong
 * with the handle. */
bool key_read(struct key_info *key, CK_SESSION_HANDLE session, CK_OBJECT_HANDLE handle);

/* Whether the key that the call uses is denied to its mechanism. If not, and if that is to be remembered,
 * key_is_permitted() says so for the same mechanism and purpose, until slot_invalidate() says that keys may have
 * changed. */
struct refusal used_key_denied(const struct guarded_call *call, bool remember);
bool key_is_permitted(const struct guarded_call *call);

/* Whether a key that the call made is denied. */
struct refusal made_key_denied(const struct guarded_call *call, const struct key_info *key);

/*
 * The same for a key that is made of the call's templates. Every value of every attribute is judged, because tokens
 * differ in which of two they take. Sets *unsure if no template tells the size. Reads no attribute whose length is
 * wrong. type: of the key, if the templates do not say it; NULL: not known.
 */
struct refusal templates_denied(const struct guarded_call *call, const struct key_type *type,
                                bool *unsure);

/* Whether a template has anything that rules are about. */
bool template_tells_size(const CK_ATTRIBUTE *template, CK_ULONG count);

#endif
