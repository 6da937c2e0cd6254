/* digest_info.c - the digest that stands in data which an RSA key signs as it is, and the end of such an operation. */
#include "guard/digest_info.h"

#include <string.h>

#include "guard/report.h"

/* Skips "00 01 FF .. FF 00", with or without the first 00, which an application put there itself. Other data stays. */
static void skip_padding(const CK_BYTE **data, CK_ULONG *data_bytes)
{
    const CK_BYTE *at = *data, *end = *data + *data_bytes;
    if (at < end && *at == 0x00)
        at++;
    if (at == end || *at++ != 0x01)
        return;
    while (at < end && *at == 0xff)
        at++;
    if (at == end || *at++ != 0x00)
        return;
    *data_bytes = (CK_ULONG)(end - at);
    *data = at;
}

const struct policy_rule *digest_info_denied(const struct policy *policy, const CK_BYTE *data,
                                             CK_ULONG data_bytes)
{
    skip_padding(&data, &data_bytes);
    return policy_digest_info(policy, data, data_bytes);
}

CK_RV guard_digest_info(const struct policy *policy, const char *function, enum purpose purpose,
                        CK_SESSION_HANDLE handle, const CK_BYTE *data, CK_ULONG data_bytes)
{
    struct session *session = session_find(handle);
    /* A session that is not known may have any operation open. */
    if (data == NULL || data_bytes == 0 ||
        (session != NULL &&
         !(atomic_load_explicit(&session->digest_info, memory_order_relaxed) & purpose)))
        return CKR_OK;
    return guard_refuse(policy, function, CKM_RSA_PKCS,
                        digest_info_denied(policy, data, data_bytes), CKR_DATA_INVALID);
}

/* Whether the token says something that the caller must know instead of the refusal. */
static bool is_about_session(CK_RV rv)
{
    switch (rv) {
    case CKR_OPERATION_NOT_INITIALIZED:
    case CKR_USER_NOT_LOGGED_IN:
    case CKR_SESSION_HANDLE_INVALID:
    case CKR_SESSION_CLOSED:
    case CKR_DEVICE_REMOVED:
    case CKR_CRYPTOKI_NOT_INITIALIZED:
        return true;
    default:
        return false;
    }
}

static CK_RV end_whole(const struct p11_functions *functions, enum purpose purpose,
                       CK_SESSION_HANDLE session, CK_ULONG data_bytes)
{
    static const CK_BYTE constant[GUARD_OUTPUT_BYTES];
    CK_BYTE_PTR zeros = (CK_BYTE_PTR)constant;
    CK_BYTE output[GUARD_OUTPUT_BYTES];
    CK_ULONG output_bytes = sizeof output;
    if (data_bytes > sizeof constant)
        data_bytes = sizeof constant;
    switch (purpose) {
    case TO_SIGN:
        return functions->C_Sign(session, zeros, data_bytes, output, &output_bytes);
    case TO_SIGN_RECOVER:
        return functions->C_SignRecover(session, zeros, data_bytes, output, &output_bytes);
    case TO_VERIFY:
        return functions->C_Verify(session, zeros, data_bytes, zeros, 1);
    case TO_VERIFY_SIGNATURE:
        return functions->C_VerifySignature(session, zeros, data_bytes);
    case TO_ENCRYPT:
        return functions->C_Encrypt(session, zeros, data_bytes, output, &output_bytes);
    default:
        return functions->C_Decrypt(session, zeros, data_bytes, output, &output_bytes);
    }
}

static CK_RV end_parts(const struct p11_functions *functions, enum purpose purpose,
                       CK_SESSION_HANDLE session)
{
    CK_BYTE output[GUARD_OUTPUT_BYTES] = {0};
    CK_ULONG output_bytes = sizeof output;
    switch (purpose) {
    case TO_SIGN:
        return functions->C_SignFinal(session, output, &output_bytes);
    case TO_VERIFY:
        return functions->C_VerifyFinal(session, output, 1);
    default:
        return functions->C_VerifySignatureFinal(session);
    }
}

static CK_FLAGS flags_of(enum purpose purpose)
{
    switch (purpose) {
    case TO_SIGN:
        return CKF_SIGN;
    case TO_SIGN_RECOVER:
        return CKF_SIGN_RECOVER;
    case TO_VERIFY:
    case TO_VERIFY_SIGNATURE:
        return CKF_VERIFY;
    case TO_ENCRYPT:
        return CKF_ENCRYPT;
    case TO_DECRYPT:
        return CKF_DECRYPT;
    default:
        return 0;
    }
}

CK_RV guard_end_operation(const struct p11_functions *functions, enum purpose purpose,
                          bool in_parts, CK_SESSION_HANDLE session, CK_ULONG data_bytes,
                          CK_RV refusal)
{
    /* The end of a message is the application's: its operation goes on to the next one. */
    if (flags_of(purpose) == 0 || target_session_cancel(session, flags_of(purpose)) == CKR_OK)
        return refusal;
    CK_RV rv = in_parts ? end_parts(functions, purpose, session) : CKR_OPERATION_NOT_INITIALIZED;
    /* Tokens say that of operations, too, that are open and have no parts. */
    if (rv == CKR_OPERATION_NOT_INITIALIZED)
        rv = end_whole(functions, purpose, session, data_bytes);
    return is_about_session(rv) ? rv : refusal;
}
