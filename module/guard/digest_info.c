/* digest_info.c - the digest that stands in data which an RSA key signs as it is, and the end of such an operation. */
#include "guard/internal.h"

/* More than any RSA key signs or encrypts. */
enum { OUTPUT_BYTES = 2048 };

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
    if (data == NULL || data_bytes == 0)
        return NULL;
    skip_padding(&data, &data_bytes);
    return policy_digest_info(policy, data, data_bytes);
}

/* Whatever the target says of zero bytes, the operation is over then. That of messages goes on to the next one. */
static void end_with_zeros(const struct p11_functions *functions, enum purpose purpose,
                           CK_SESSION_HANDLE session, CK_ULONG data_bytes)
{
    static const CK_BYTE constant[OUTPUT_BYTES];
    CK_BYTE_PTR zeros = (CK_BYTE_PTR)constant;
    CK_BYTE output[OUTPUT_BYTES];
    CK_ULONG output_bytes = sizeof output;
    if (data_bytes > sizeof constant)
        data_bytes = sizeof constant;
    if (purpose == TO_SIGN)
        functions->C_Sign(session, zeros, data_bytes, output, &output_bytes);
    else if (purpose == TO_SIGN_RECOVER)
        functions->C_SignRecover(session, zeros, data_bytes, output, &output_bytes);
    else if (purpose == TO_VERIFY)
        functions->C_Verify(session, zeros, data_bytes, zeros, 1);
    else if (purpose == TO_ENCRYPT)
        functions->C_Encrypt(session, zeros, data_bytes, output, &output_bytes);
    else if (purpose == TO_DECRYPT)
        functions->C_Decrypt(session, zeros, data_bytes, output, &output_bytes);
}

CK_RV guard_digest_info(const struct policy *policy, const struct p11_functions *functions,
                        const char *function, enum purpose purpose, CK_SESSION_HANDLE handle,
                        const CK_BYTE *data, CK_ULONG data_bytes)
{
    struct session *session = session_find(handle);
    /* A session that is not known may have any operation open. */
    if (session != NULL &&
        !(atomic_load_explicit(&session->digest_info, memory_order_relaxed) & purpose))
        return CKR_OK;
    CK_RV rv = guard_refuse(policy, function, CKM_RSA_PKCS,
                            digest_info_denied(policy, data, data_bytes), CKR_DATA_INVALID);
    if (rv != CKR_OK && functions->C_SessionCancel(handle, purpose) != CKR_OK)
        end_with_zeros(functions, purpose, handle, data_bytes);
    return rv;
}
