/* digest_info.h - the digest that stands in data which an RSA key signs as it is. */
#ifndef P11_PROXY_DIGEST_INFO_H
#define P11_PROXY_DIGEST_INFO_H

#include "guard/purpose.h"
#include "policy/policy.h"
#include "state/sessions.h"
#include "target/target.h"

/* Whether the data of that mechanism may be a DigestInfo: it hides the digest from all other rules. */
static inline bool is_raw_rsa(CK_MECHANISM_TYPE type)
{
    return type == CKM_RSA_PKCS || type == CKM_RSA_X_509;
}

/* The rule that denies the digest in a DigestInfo, which may have the padding of PKCS #1 v1.5 before it; NULL if none
 * does, or if data is something else. Any thread. */
const struct policy_rule *digest_info_denied(const struct policy *policy, const CK_BYTE *data,
                                             CK_ULONG data_bytes);

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

#endif
