/* test_guard_data.c - a denied digest does not come back under a raw RSA operation, and a refused operation is over. */
#include "fixture.h"
#include "rows.h"

enum { BLOCK_BYTES = 128, OUTPUT_BYTES = 512 };

static const CK_BYTE zeros[OUTPUT_BYTES];

/* DigestInfo of an MD5 digest (PKCS #1 v1.5), and of a SHA-256 digest. */
static CK_BYTE md5_info[34] =
    "\x30\x20\x30\x0c\x06\x08\x2a\x86\x48\x86\xf7\x0d\x02\x05\x05\x00\x04\x10"
    "0123456789abcdef";
static CK_BYTE sha256_info[51] =
    "\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20"
    "0123456789abcdef0123456789abcdef";

/* What an application that pads by itself signs under CKM_RSA_X_509. */
static void pad(CK_BYTE *block, size_t block_bytes, const CK_BYTE *info, size_t info_bytes)
{
    memset(block, 0xff, block_bytes);
    block[0] = 0x00;
    block[1] = 0x01;
    block[block_bytes - info_bytes - 1] = 0x00;
    memcpy(block + block_bytes - info_bytes, info, info_bytes);
}

static CK_MECHANISM mechanism;
static const CK_BYTE *data;
static CK_ULONG data_bytes, output_bytes;
static CK_BYTE output[OUTPUT_BYTES];
static const struct row *way; /* for data into an operation */

static uintptr_t value_of(const char *name, bool is_pointer)
{
    if (strcmp(name, "hSession") == 0)
        return session;
    if (strcmp(name, "pMechanism") == 0)
        return (uintptr_t)&mechanism;
    if (strcmp(name, way->needs[1]) == 0)
        return (uintptr_t)data;
    if (strcmp(name, way->needs[2]) == 0)
        return data_bytes;
    if (strncmp(name, "pul", 3) == 0)
        return (uintptr_t)&output_bytes;
    return is_pointer ? (uintptr_t)output : 1;
}

static void start_listed(const char *settings)
{
    script("keyring; interfaces 3.2");
    begin(settings);
    list = interface_list(3, 2);
}

/* By the first function for the same purpose. */
static CK_RV begin_operation(CK_MECHANISM_TYPE type)
{
    mechanism = (CK_MECHANISM){type, NULL, 0};
    const struct row *row = rows;
    while (!is_kind(row, "MECH") || strcmp(row->needs[0], way->needs[0]) != 0)
        row++;
    return row->call();
}

static CK_RV give(const CK_BYTE *bytes, CK_ULONG count)
{
    data = bytes;
    data_bytes = count;
    shared->keyring.data_bytes = shared->keyring.longest_bytes = shared->keyring.data_calls = 0;
    output_bytes = sizeof output;
    memset(output, 0, sizeof output);
    return way->call();
}

/* Nothing of it, nor more of anything, gets to the target; nothing to the caller; and the operation is over. */
static void is_refused(CK_MECHANISM_TYPE type, const CK_BYTE *bytes, CK_ULONG count)
{
    EXPECT(begin_operation(type), CKR_OK);
    EXPECT(give(bytes, count), CKR_DATA_INVALID);
    ck_assert_uint_eq(output_bytes, sizeof output);
    ck_assert_mem_eq(output, zeros, sizeof output);
    if (shared->keyring.cancel_answer == CKR_OK)
        ck_assert_uint_eq(shared->keyring.data_calls, 0);
    ck_assert_uint_le(shared->keyring.longest_bytes, count);
    ck_assert_mem_eq(shared->keyring.data, zeros, shared->keyring.data_bytes);
    /* Without C_SessionCancel, that of messages goes on to the next one. */
    if (shared->keyring.cancel_answer == CKR_OK || strstr(way->name, "Message") == NULL)
        EXPECT(give(sha256_info, sizeof sha256_info), CKR_OPERATION_NOT_INITIALIZED);
}

static void is_permitted(CK_MECHANISM_TYPE type, const CK_BYTE *bytes, CK_ULONG count)
{
    EXPECT(begin_operation(type), CKR_OK);
    EXPECT(give(bytes, count), CKR_OK);
    ck_assert_uint_eq(shared->keyring.data_bytes, count);
    ck_assert_mem_eq(shared->keyring.data, bytes, count);
}

static const char *const denying[] = {"x-disabled-algorithms: MD5",
                                      "x-disabled-algorithms: MD5withRSA",
                                      "x-disabled-algorithms: CKM_MD5_RSA_PKCS"};

TEST_EACH(a_denied_digest_under_raw_rsa_is_refused, 0, 3)
{
    CK_BYTE block[BLOCK_BYTES];
    start_listed(denying[_i]);
    FOR_EACH_ROW(row, "DATA")
    {
        way = row;
        shared->keyring.cancel_answer =
            (row - rows) % 2 == _i % 2 ? CKR_OK : CKR_FUNCTION_NOT_SUPPORTED;
        is_refused(CKM_RSA_PKCS, md5_info, sizeof md5_info);
        is_permitted(CKM_RSA_PKCS, sha256_info, sizeof sha256_info);
        is_permitted(CKM_RSA_PKCS, md5_info, sizeof md5_info - 1);
        is_permitted(CKM_RSA_PKCS, md5_info, 0);
        pad(block, sizeof block, md5_info, sizeof md5_info);
        is_refused(CKM_RSA_X_509, block, sizeof block);
        is_refused(CKM_RSA_X_509, block + 1, sizeof block - 1);
        pad(block, sizeof block, sha256_info, sizeof sha256_info);
        is_permitted(CKM_RSA_X_509, block, sizeof block);
        is_permitted(CKM_RSA_X_509, block, 2);
        memset(block + 2, 0xff, sizeof block - 2);
        is_permitted(CKM_RSA_X_509, block, sizeof block);
        /* As data of a mechanism that digests by itself they are only data. */
        is_permitted(CKM_SHA256_RSA_PKCS, md5_info, sizeof md5_info);
    }
}

/* Only data that the mechanism of C_UnwrapKey itself decrypts: AES could meet such bytes by chance. */
TEST(data_of_an_unwrapped_key_is_looked_at)
{
    static const struct {
        CK_MECHANISM_TYPE type;
        const CK_BYTE *bytes;
        CK_ULONG count;
        CK_RV rv;
    } cases[] = {{CKM_RSA_PKCS, md5_info, sizeof md5_info, CKR_DATA_INVALID},
                 {CKM_RSA_PKCS, sha256_info, sizeof sha256_info, CKR_OK},
                 {CKM_AES_CBC, md5_info, sizeof md5_info, CKR_OK}};
    CK_OBJECT_HANDLE key;
    start_listed(denying[0]);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        mechanism = (CK_MECHANISM){cases[i].type, NULL, 0};
        EXPECT(fn->C_UnwrapKey(session, &mechanism, 1, (CK_BYTE *)cases[i].bytes, cases[i].count,
                               NULL, 0, &key),
               cases[i].rv);
        ck_assert_uint_eq(shared->keyring.calls, i);
    }
}

TEST(audit_permits_the_data)
{
    start_listed("x-disabled-algorithms: MD5\nx-policy: audit");
    FOR_EACH_ROW(row, "DATA")
    {
        way = row;
        is_permitted(CKM_RSA_PKCS, md5_info, sizeof md5_info);
    }
    ck_assert_uint_eq(messages_with("'MD5' would refuse CKM_RSA_PKCS in C_Encrypt"), 1);
}

/* Whatever operation an unknown session has open, it may be a raw one. */
TEST(an_unknown_session_is_looked_at)
{
    start_listed(denying[0]);
    EXPECT(bare_list()->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session), CKR_OK);
    way = row_named("C_Sign");
    is_refused(CKM_SHA256_RSA_PKCS, md5_info, sizeof md5_info);
    is_permitted(CKM_SHA256_RSA_PKCS, sha256_info, sizeof sha256_info);
}

/* The session lives on, and so does what it has open. */
TEST(a_close_that_fails_forgets_nothing)
{
    start_listed(denying[0]);
    way = row_named("C_Sign");
    EXPECT(begin_operation(CKM_RSA_PKCS), CKR_OK);
    script("C_CloseSession: fail 0x6");
    EXPECT(fn->C_CloseSession(session), CKR_FUNCTION_FAILED);
    EXPECT(give(md5_info, sizeof md5_info), CKR_DATA_INVALID);
}
