/* digest_info.h - the digest that stands in data which an RSA key signs as it is. */
#ifndef P11_PROXY_DIGEST_INFO_H
#define P11_PROXY_DIGEST_INFO_H

#include "cryptoki.h"
#include "policy/policy.h"

/* The rule that denies the digest in a DigestInfo, which may have the padding of PKCS #1 v1.5 before it; NULL if none
 * does, or if data is something else. Any thread. */
const struct policy_rule *digest_info_denied(const struct policy *policy, const CK_BYTE *data,
                                             CK_ULONG data_bytes);

#endif
