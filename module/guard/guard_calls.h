/* guard_calls.h - the questions that the policy is asked around a call. None is asked where no policy is set. */
#ifndef P11_PROXY_GUARD_CALLS_H
#define P11_PROXY_GUARD_CALLS_H

#include "cryptoki.h"
#include "policy/policy.h"

/*
 * What a mechanism is to do. The ones that leave an operation open on the session are bits, of which
 * struct session remembers some; the others are over with the call.
 */
enum purpose {
    OVER_AT_ONCE = 0,
    TO_GENERATE = OVER_AT_ONCE,
    TO_GENERATE_PAIR = OVER_AT_ONCE,
    TO_WRAP = OVER_AT_ONCE,
    TO_UNWRAP = OVER_AT_ONCE,
    TO_DERIVE = OVER_AT_ONCE,
    TO_ENCAPSULATE = OVER_AT_ONCE,
    TO_DECAPSULATE = OVER_AT_ONCE,
    TO_WRAP_AUTHENTICATED = OVER_AT_ONCE,
    TO_UNWRAP_AUTHENTICATED = OVER_AT_ONCE,
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
    TO_ANYTHING = (1 << 12) - 1
};

/* The keys of a call, as its row in functions.def names them. What it has not is zero. */
struct key_use {
    CK_OBJECT_HANDLE used;    /* by the mechanism */
    const CK_ATTRIBUTE *made; /* the template of the key that comes out, of a pair the public one */
    CK_ULONG made_count;
    const CK_ATTRIBUTE *made_private;
    CK_ULONG made_private_count;
    CK_OBJECT_HANDLE *result; /* where handles of made keys come */
    CK_OBJECT_HANDLE *result_private;
};

/*
 * Before the call: CKR_OK, or what the caller is told and the target never hears. A NULL mechanism ends an
 * operation and is not read; a key is asked for on the caller's session. Any thread, no lock held.
 */
CK_RV guard_call(const struct policy *policy, const char *function, enum purpose purpose,
                 CK_SESSION_HANDLE session, const CK_MECHANISM *mechanism,
                 const struct key_use *use);

/* The same for C_CreateObject. */
CK_RV guard_import(const struct policy *policy, const char *function, const CK_ATTRIBUTE *template,
                   CK_ULONG count);

/*
 * After CKR_OK: looks at keys whose size no template told. If one is denied, what the call made is
 * destroyed again, its handles are taken back, and the answer is no more CKR_OK.
 */
CK_RV guard_made(const struct policy *policy, const char *function, CK_SESSION_HANDLE session,
                 const CK_MECHANISM *mechanism, const struct key_use *use);

/* After CKR_OK of a call that leaves an operation open: remembers whether its data may be a DigestInfo. */
void guard_began(enum purpose purpose, CK_SESSION_HANDLE session, const CK_MECHANISM *mechanism);

/* An operation may be open whose mechanism nobody knows: it was restored, or outlived a close that failed. */
void guard_began_unknown(CK_SESSION_HANDLE session);

/*
 * Data of an operation, before the call that takes it or after the call that gave it: CKR_DATA_INVALID if it
 * is, or with its padding holds, a DigestInfo whose digest is denied. Reads data only if an operation is open
 * that hides its digest so, or if the session is not known.
 */
CK_RV guard_data(const struct policy *policy, const char *function, enum purpose purpose,
                 CK_SESSION_HANDLE session, const CK_BYTE *data, CK_ULONG data_bytes);

/*
 * What a refused operation is ended with at the target: more than any RSA key signs, so that the token
 * refuses it and its operation is over, as it is after any other refused C_Sign.
 */
enum { TOO_MUCH_BYTES = 16 * 1024 };
extern const CK_BYTE too_much[TOO_MUCH_BYTES];

#endif
