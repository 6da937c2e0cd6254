/* test_guard_data.c - a denied digest does not come back under a raw RSA operation, and a refused operation is over. */
#include "guarded.h"

#include <string.h>

#include "rows.h"

enum { BLOCK_BYTES = 128, OUTPUT_BYTES = 512 };

/* DigestInfo of an MD5 digest (PKCS #1 v1.5), and of a SHA-256 digest. */
static const CK_BYTE md5_info[34] = "\x30\x20\x30\x0c\x06\x08\x2a\x86\x48\x86\xf7\x0d\x02\x05\x05"
                                    "\x00\x04\x10"
                                    "0123456789abcdef";
static const CK_BYTE sha256_info[51] =
    "\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20"
    "0123456789abcdef0123456789abcdef";
static const CK_BYTE zeros[OUTPUT_BYTES];

#define list interface_list(3, 2)
static CK_MECHANISM mechanism;
static const CK_BYTE *data;
static CK_ULONG data_bytes, output_bytes;
static CK_BYTE output[OUTPUT_BYTES];

struct row {
    const char *purpose;
    CK_RV (*call)(void);
    const char *data, *data_bytes; /* the names of these two parameters */
};
static const struct row *row;

static uintptr_t value_of(const char *name, bool is_pointer)
{
    if (strcmp(name, "hSession") == 0)
        return session;
    if (strcmp(name, "pMechanism") == 0)
        return (uintptr_t)&mechanism;
    if (strcmp(name, row->data) == 0)
        return (uintptr_t)data;
    if (strcmp(name, row->data_bytes) == 0)
        return data_bytes;
    if (strncmp(name, "pul", 3) == 0)
        return (uintptr_t)&output_bytes;
    return is_pointer ? (uintptr_t)output : 1;
}

/* Each way for data into an operation, and to begin one. */
#define P11_UPTO 302
#define ROW(name, ...)
#define MECH(purpose, keys, name, ...)                     CALLER(name, __VA_ARGS__)
#define DATA(purpose, data, data_bytes, output, name, ...) CALLER(name, __VA_ARGS__)
#include "functions.def"
static const struct row beginnings[] = {
#define P11_UPTO 302
#define ROW(name, ...)
#define MECH(purpose, keys, name, ...) {#purpose, call_##name, "", ""},
#include "functions.def"
};
static const struct row ways[] = {
#define P11_UPTO 302
#define ROW(name, ...)
#define DATA(purpose, data, data_bytes, output, name, ...)                                         \
    {#purpose, call_##name, #data, #data_bytes},
#include "functions.def"
};
enum { WAYS = sizeof ways / sizeof *ways };

static CK_RV begin_by(int way, CK_MECHANISM_TYPE type)
{
    mechanism = (CK_MECHANISM){type, NULL, 0};
    for (row = beginnings; strcmp(row->purpose, ways[way].purpose) != 0;)
        row++;
    return row->call();
}

static CK_RV give_by(int way, const CK_BYTE *bytes, CK_ULONG count)
{
    row = &ways[way];
    data = bytes;
    data_bytes = count;
    keyring->data_bytes = keyring->longest_bytes = keyring->data_calls = 0;
    output_bytes = sizeof output;
    memset(output, 0, sizeof output);
    return row->call();
}

/* Nothing of it, nor more of anything, gets to the target; nothing to the caller; and the operation is over. */
static void is_refused(int way, CK_MECHANISM_TYPE type, const CK_BYTE *bytes, CK_ULONG count)
{
    EXPECT(begin_by(way, type), CKR_OK);
    EXPECT(give_by(way, bytes, count), CKR_DATA_INVALID);
    ck_assert_uint_eq(output_bytes, sizeof output);
    ck_assert_mem_eq(output, zeros, sizeof output);
    if (keyring->cancel_answer == CKR_OK)
        ck_assert_uint_eq(keyring->data_calls, 0);
    ck_assert_uint_le(keyring->longest_bytes, count);
    ck_assert_mem_eq(keyring->data, zeros, keyring->data_bytes);
    /* Without C_SessionCancel, that of messages goes on to the next one. */
    if (keyring->cancel_answer == CKR_OK || strncmp(ways[way].purpose, "TO_MESSAGE", 10) != 0)
        EXPECT(give_by(way, sha256_info, sizeof sha256_info), CKR_OPERATION_NOT_INITIALIZED);
}

static void is_permitted(int way, CK_MECHANISM_TYPE type, const CK_BYTE *bytes, CK_ULONG count)
{
    EXPECT(begin_by(way, type), CKR_OK);
    EXPECT(give_by(way, bytes, count), CKR_OK);
    ck_assert_uint_eq(keyring->data_bytes, count);
    ck_assert_mem_eq(keyring->data, bytes, count);
}

/* What an application that pads by itself signs under CKM_RSA_X_509. */
static void pad(CK_BYTE block[BLOCK_BYTES], const CK_BYTE *info, size_t info_bytes)
{
    memset(block, 0xff, BLOCK_BYTES);
    block[0] = 0x00;
    block[1] = 0x01;
    block[BLOCK_BYTES - info_bytes - 1] = 0x00;
    memcpy(block + BLOCK_BYTES - info_bytes, info, info_bytes);
}

static const char *const denying[] = {"x-disabled-algorithms: MD5",
                                      "x-disabled-algorithms: MD5withRSA",
                                      "x-disabled-algorithms: CKM_MD5_RSA_PKCS"};
enum { DENYING = sizeof denying / sizeof *denying };

TEST_EACH(a_denied_digest_under_raw_rsa_is_refused, 0, DENYING)
{
    CK_BYTE block[BLOCK_BYTES];
    start(denying[_i]);
    for (int way = 0; way < WAYS; way++) {
        keyring->cancel_answer = way % 2 == _i % 2 ? CKR_OK : CKR_FUNCTION_NOT_SUPPORTED;
        is_refused(way, CKM_RSA_PKCS, md5_info, sizeof md5_info);
        is_permitted(way, CKM_RSA_PKCS, sha256_info, sizeof sha256_info);
        is_permitted(way, CKM_RSA_PKCS, md5_info, sizeof md5_info - 1);
        is_permitted(way, CKM_RSA_PKCS, md5_info, 0);
        pad(block, md5_info, sizeof md5_info);
        is_refused(way, CKM_RSA_X_509, block, sizeof block);
        is_refused(way, CKM_RSA_X_509, block + 1, sizeof block - 1);
        pad(block, sha256_info, sizeof sha256_info);
        is_permitted(way, CKM_RSA_X_509, block, sizeof block);
        is_permitted(way, CKM_RSA_X_509, block, 2);
        memset(block + 2, 0xff, sizeof block - 2);
        is_permitted(way, CKM_RSA_X_509, block, sizeof block);
        /* As data of a mechanism that digests by itself they are only data. */
        is_permitted(way, CKM_SHA256_RSA_PKCS, md5_info, sizeof md5_info);
    }
}

/* Only data that the mechanism of C_UnwrapKey itself decrypts: AES could meet such bytes by chance. */
TEST(data_of_an_unwrapped_key_is_looked_at)
{
    CK_MECHANISM rsa = {CKM_RSA_PKCS, NULL, 0}, aes = {CKM_AES_CBC, NULL, 0};
    CK_OBJECT_HANDLE key;
    start(denying[0]);
    EXPECT(fn->C_UnwrapKey(session, &rsa, 1, (CK_BYTE *)md5_info, sizeof md5_info, NULL, 0, &key),
           CKR_DATA_INVALID);
    ck_assert_uint_eq(keyring->calls, 0);
    EXPECT(fn->C_UnwrapKey(session, &rsa, 1, (CK_BYTE *)sha256_info, sizeof sha256_info, NULL, 0,
                           &key),
           CKR_OK);
    EXPECT(fn->C_UnwrapKey(session, &aes, 1, (CK_BYTE *)md5_info, sizeof md5_info, NULL, 0, &key),
           CKR_OK);
}

TEST(audit_permits_the_data)
{
    start("x-disabled-algorithms: MD5\nx-policy: audit");
    for (int way = 0; way < WAYS; way++)
        is_permitted(way, CKM_RSA_PKCS, md5_info, sizeof md5_info);
    ck_assert_uint_eq(messages_with("'MD5' would refuse CKM_RSA_PKCS in C_Encrypt"), 1);
}

/* Whatever operation an unknown session has open, it may be a raw one. */
TEST(an_unknown_session_is_looked_at)
{
    start(denying[0]);
    EXPECT(bare_list()->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session), CKR_OK);
    is_refused(0, CKM_SHA256_RSA_PKCS, md5_info, sizeof md5_info);
    is_permitted(0, CKM_SHA256_RSA_PKCS, sha256_info, sizeof sha256_info);
}

/* The session lives on, and so does what it has open. */
TEST(a_close_that_fails_forgets_nothing)
{
    start(denying[0]);
    EXPECT(begin_by(0, CKM_RSA_PKCS), CKR_OK);
    script("C_CloseSession: fail 0x6");
    EXPECT(fn->C_CloseSession(session), CKR_FUNCTION_FAILED);
    EXPECT(give_by(0, md5_info, sizeof md5_info), CKR_DATA_INVALID);
}

int main(void)
{
    return test_main("guard_data", set_up, tear_down);
}
