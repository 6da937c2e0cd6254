/* guard_data.c - the digest that stands in data which an RSA key signs as it is. */
#include "guard/guard_calls.h"
#include "guard/guard_parameters.h"
#include "guard/guard_report.h"
#include "state/sessions.h"

const CK_BYTE too_much[TOO_MUCH_BYTES];

void guard_began(enum purpose purpose, CK_SESSION_HANDLE handle, const CK_MECHANISM *mechanism)
{
    struct session *session = session_find(handle);
    if (session == NULL || mechanism == NULL)
        return;
    bool hides = mechanism_signs_digest_info(mechanism->mechanism);
    bool hid = (atomic_load_explicit(&session->digest_info, memory_order_relaxed) & purpose) != 0;
    if (hides && !hid)
        atomic_fetch_or(&session->digest_info, purpose);
    else if (hid && !hides)
        atomic_fetch_and(&session->digest_info, ~(unsigned)purpose);
}

void guard_began_unknown(CK_SESSION_HANDLE handle)
{
    struct session *session = session_find(handle);
    if (session != NULL)
        atomic_store(&session->digest_info, TO_ANYTHING);
}

/* A session that we do not know may have any operation open. */
static bool may_hide(CK_SESSION_HANDLE handle, enum purpose purpose)
{
    struct session *session = session_find(handle);
    return session == NULL ||
           (atomic_load_explicit(&session->digest_info, memory_order_relaxed) & purpose) != 0;
}

/*
 * Skips the padding of PKCS #1 v1.5 that an application put there itself, "00 01 FF .. FF 00", with or
 * without the first 00. Data that does not begin so stays as it is.
 */
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

CK_RV guard_data(const struct policy *policy, const char *function, enum purpose purpose,
                 CK_SESSION_HANDLE session, const CK_BYTE *data, CK_ULONG data_bytes)
{
    if (data == NULL || data_bytes == 0 || !may_hide(session, purpose))
        return CKR_OK;
    skip_padding(&data, &data_bytes);
    return guard_verdict(policy, function, CKM_RSA_PKCS,
                         policy_digest_info(policy, data, data_bytes), CKR_DATA_INVALID);
}
