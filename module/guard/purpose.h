/* purpose.h - what a call is for, and which keys it uses and makes, as its row in functions.def says. */
#ifndef P11_PROXY_PURPOSE_H
#define P11_PROXY_PURPOSE_H

#include "cryptoki.h"

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

#endif
