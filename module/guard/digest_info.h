/* digest_info.h - the digest that stands in data which an RSA key signs as it is. */
#ifndef P11_PROXY_DIGEST_INFO_H
#define P11_PROXY_DIGEST_INFO_H

#include "cryptoki.h"
#include "policy/policy.h"

/* Whether the data of that mechanism may be a DigestInfo: it hides the digest from all other rules. */
static inline bool is_raw_rsa(CK_MECHANISM_TYPE type)
{
    return type == CKM_RSA_PKCS || type == CKM_RSA_X_509;
}

/* The rule that denies the digest in a DigestInfo, which may have the padding of PKCS #1 v1.5 before it; NULL if none
 * does, or if data is something else. Any thread. */
const struct policy_rule *digest_info_denied(const struct policy *policy, const CK_BYTE *data,
                                             CK_ULONG data_bytes);

#endif
