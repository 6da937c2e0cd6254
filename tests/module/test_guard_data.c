/* test_guard_data.c - a denied digest does not come back under a raw RSA operation, and a refused operation is over. */
#include "fixture.h"

#include <stdint.h>
#include <string.h>

#include "keyring.h"

enum { BLOCK_BYTES = 128, OUTPUT_BYTES = 512 };

/* DigestInfo of an MD5 digest (PKCS #1 v1.5), and of a SHA-256 digest. */
static const CK_BYTE md5_info[34] = "\x30\x20\x30\x0c\x06\x08\x2a\x86\x48\x86\xf7\x0d\x02\x05\x05"
                                    "\x00\x04\x10"
                                    "0123456789abcdef";
static const CK_BYTE sha256_info[51] =
    "\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20"
    "0123456789abcdef0123456789abcdef";

static struct keyring *keyring;
static const struct p11_functions *list;
static CK_SESSION_HANDLE session;
static CK_BYTE output[OUTPUT_BYTES];
static CK_ULONG output_bytes;

static void start(const char *settings)
{
    proxy_before("keyring", settings);
    keyring = target_symbol("keyring");
    list = interface_list(3, 2);
    initialize();
    session = open_session(0, 0);
}

/* Each way for data into an operation. */
enum way {
    SIGN,
    SIGN_UPDATE,
    VERIFY,
    VERIFY_UPDATE,
    SIGN_RECOVER,
    ENCRYPT,
    DECRYPT,
    VERIFY_SIGNATURE,
    WAYS
};
static const CK_FLAGS flags[WAYS] = {CKF_SIGN,         CKF_SIGN,    CKF_VERIFY,  CKF_VERIFY,
                                     CKF_SIGN_RECOVER, CKF_ENCRYPT, CKF_DECRYPT, CKF_VERIFY};

static CK_RV begin_by(enum way way, CK_MECHANISM_TYPE type)
{
    CK_MECHANISM mechanism = {type, NULL, 0};
    switch (way) {
    case SIGN:
    case SIGN_UPDATE:
        return list->C_SignInit(session, &mechanism, 1);
    case VERIFY:
    case VERIFY_UPDATE:
        return list->C_VerifyInit(session, &mechanism, 1);
    case SIGN_RECOVER:
        return list->C_SignRecoverInit(session, &mechanism, 1);
    case ENCRYPT:
        return list->C_EncryptInit(session, &mechanism, 1);
    case DECRYPT:
        return list->C_DecryptInit(session, &mechanism, 1);
    default:
        return list->C_VerifySignatureInit(session, &mechanism, 1, output, sizeof output);
    }
}

static CK_RV give_by(enum way way, const CK_BYTE *data, CK_ULONG data_bytes)
{
    CK_BYTE *bytes = (CK_BYTE *)data;
    keyring->data_bytes = keyring->longest_bytes = keyring->data_calls = 0;
    output_bytes = sizeof output;
    switch (way) {
    case SIGN:
        return list->C_Sign(session, bytes, data_bytes, output, &output_bytes);
    case SIGN_UPDATE:
        return list->C_SignUpdate(session, bytes, data_bytes);
    case VERIFY:
        return list->C_Verify(session, bytes, data_bytes, output, sizeof output);
    case VERIFY_UPDATE:
        return list->C_VerifyUpdate(session, bytes, data_bytes);
    case SIGN_RECOVER:
        return list->C_SignRecover(session, bytes, data_bytes, output, &output_bytes);
    case ENCRYPT:
        return list->C_Encrypt(session, bytes, data_bytes, output, &output_bytes);
    case DECRYPT:
        return list->C_Decrypt(session, bytes, data_bytes, output, &output_bytes);
    default:
        return list->C_VerifySignature(session, bytes, data_bytes);
    }
}

static void end_by(enum way way)
{
    output_bytes = sizeof output;
    if (way == SIGN_UPDATE)
        EXPECT(list->C_SignFinal(session, output, &output_bytes), CKR_OK);
    if (way == VERIFY_UPDATE)
        EXPECT(list->C_VerifyFinal(session, output, sizeof output), CKR_OK);
}

/* Nothing of it, nor more of anything, gets to the target; nothing to the caller; and the operation is over. */
static void is_refused(enum way way, CK_MECHANISM_TYPE type, const CK_BYTE *data,
                       CK_ULONG data_bytes)
{
    static const CK_BYTE zeros[OUTPUT_BYTES];
    EXPECT(begin_by(way, type), CKR_OK);
    memset(output, 0, sizeof output);
    EXPECT(give_by(way, data, data_bytes), CKR_DATA_INVALID);
    ck_assert_uint_eq(output_bytes, sizeof output);
    ck_assert_mem_eq(output, zeros, sizeof output);
    ck_assert_uint_le(keyring->longest_bytes, data_bytes);
    ck_assert_mem_eq(keyring->data, zeros, keyring->data_bytes);
    EXPECT(give_by(way, sha256_info, sizeof sha256_info), CKR_OPERATION_NOT_INITIALIZED);
}

static void is_permitted(enum way way, CK_MECHANISM_TYPE type, const CK_BYTE *data,
                         CK_ULONG data_bytes)
{
    EXPECT(begin_by(way, type), CKR_OK);
    EXPECT(give_by(way, data, data_bytes), CKR_OK);
    ck_assert_uint_eq(keyring->data_bytes, data_bytes);
    ck_assert_mem_eq(keyring->data, data, data_bytes);
    end_by(way);
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
    for (enum way way = 0; way < WAYS; way++) {
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
    }
}

/* Of which the target hears nothing but that. */
TEST(a_token_that_can_cancel_is_told_to)
{
    start(denying[0]);
    keyring->cancel_answer = CKR_OK;
    for (enum way way = 0; way < WAYS; way++) {
        keyring->cancelled = 0;
        EXPECT(begin_by(way, CKM_RSA_PKCS), CKR_OK);
        EXPECT(give_by(way, md5_info, sizeof md5_info), CKR_DATA_INVALID);
        ck_assert_uint_eq(keyring->data_calls, 0);
        ck_assert_uint_eq(keyring->cancelled, flags[way]);
        is_permitted(way, CKM_RSA_PKCS, sha256_info, sizeof sha256_info);
    }
}

/* As tokens say of a mechanism that has none, and keep the operation open. */
TEST(a_token_without_parts_ends_it_as_a_whole)
{
    start(denying[0]);
    keyring->no_parts = CK_TRUE;
    is_refused(SIGN_UPDATE, CKM_RSA_PKCS, md5_info, sizeof md5_info);
    is_refused(VERIFY_UPDATE, CKM_RSA_PKCS, md5_info, sizeof md5_info);
}

/* The same bytes as data of a mechanism that digests by itself are only data. */
TEST(other_mechanisms_may_sign_any_data)
{
    start(denying[0]);
    for (enum way way = 0; way < WAYS; way++) {
        is_permitted(way, CKM_RSA_PKCS, sha256_info, sizeof sha256_info);
        is_permitted(way, CKM_SHA256_RSA_PKCS, md5_info, sizeof md5_info);
        is_refused(way, CKM_RSA_PKCS, md5_info, sizeof md5_info);
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

/* The messages of 3.0, of which the target hears none. */
TEST(data_of_messages_is_looked_at)
{
    CK_MECHANISM rsa = {CKM_RSA_PKCS, NULL, 0};
    CK_BYTE *bytes = (CK_BYTE *)md5_info;
    start(denying[0]);
    EXPECT(list->C_MessageSignInit(session, &rsa, 1), CKR_OK);
    EXPECT(list->C_MessageVerifyInit(session, &rsa, 1), CKR_OK);
    EXPECT(list->C_SignMessage(session, NULL, 0, bytes, sizeof md5_info, output, &output_bytes),
           CKR_DATA_INVALID);
    EXPECT(list->C_SignMessageNext(session, NULL, 0, bytes, sizeof md5_info, output, &output_bytes),
           CKR_DATA_INVALID);
    EXPECT(list->C_VerifyMessage(session, NULL, 0, bytes, sizeof md5_info, output, 1),
           CKR_DATA_INVALID);
    EXPECT(list->C_VerifyMessageNext(session, NULL, 0, bytes, sizeof md5_info, output, 1),
           CKR_DATA_INVALID);
    ck_assert_uint_eq(keyring->data_calls, 0);
    EXPECT(list->C_VerifyMessage(session, NULL, 0, (CK_BYTE *)sha256_info, sizeof sha256_info,
                                 output, 1),
           CKR_OK);
}

/* A question for the length signs nothing, so the target answers. */
TEST(a_question_for_the_length_is_the_targets)
{
    CK_MECHANISM mechanism = {CKM_RSA_PKCS, NULL, 0};
    start(denying[0]);
    EXPECT(fn->C_SignInit(session, &mechanism, 1), CKR_OK);
    EXPECT(fn->C_Sign(session, (CK_BYTE *)md5_info, sizeof md5_info, NULL, &output_bytes), CKR_OK);
    EXPECT(give_by(SIGN, md5_info, sizeof md5_info), CKR_DATA_INVALID);
}

/* What the caller must know counts for more than the refusal; whatever else the target says of zeros does not. */
TEST_EACH(what_the_target_says_of_the_session_is_told, 0, 7)
{
    static const struct {
        CK_RV answer, told;
    } answers[] = {{CKR_DATA_LEN_RANGE, CKR_DATA_INVALID},
                   {CKR_SIGNATURE_INVALID, CKR_DATA_INVALID},
                   {CKR_OPERATION_NOT_INITIALIZED, CKR_OPERATION_NOT_INITIALIZED},
                   {CKR_SESSION_CLOSED, CKR_SESSION_CLOSED},
                   {CKR_SESSION_HANDLE_INVALID, CKR_SESSION_HANDLE_INVALID},
                   {CKR_DEVICE_REMOVED, CKR_DEVICE_REMOVED},
                   {CKR_USER_NOT_LOGGED_IN, CKR_USER_NOT_LOGGED_IN}};
    start(denying[0]);
    EXPECT(begin_by(SIGN, CKM_RSA_PKCS), CKR_OK);
    keyring->answer = answers[_i].answer;
    EXPECT(give_by(SIGN, md5_info, sizeof md5_info), answers[_i].told);
}

TEST(what_verify_recover_gives_stays_here)
{
    CK_MECHANISM mechanism = {CKM_RSA_PKCS, NULL, 0};
    static const CK_BYTE zeros[sizeof output];
    start(denying[0]);
    memcpy(keyring->output, md5_info, sizeof md5_info);
    keyring->output_bytes = sizeof md5_info;
    EXPECT(fn->C_VerifyRecoverInit(session, &mechanism, 1), CKR_OK);
    EXPECT(fn->C_VerifyRecover(session, output, 128, NULL, &output_bytes), CKR_OK);
    ck_assert_uint_eq(output_bytes, sizeof md5_info);
    output_bytes = sizeof md5_info - 1;
    EXPECT(fn->C_VerifyRecover(session, output, 128, output, &output_bytes), CKR_BUFFER_TOO_SMALL);
    ck_assert_uint_eq(output_bytes, sizeof md5_info);
    EXPECT(fn->C_VerifyRecover(session, output, 128, output, &output_bytes), CKR_DATA_INVALID);
    ck_assert_mem_eq(output, zeros, sizeof output);

    memcpy(keyring->output, sha256_info, sizeof sha256_info);
    output_bytes = keyring->output_bytes = sizeof sha256_info;
    EXPECT(fn->C_VerifyRecoverInit(session, &mechanism, 1), CKR_OK);
    EXPECT(fn->C_VerifyRecover(session, output, 128, output, &output_bytes), CKR_OK);
    ck_assert_mem_eq(output, sha256_info, sizeof sha256_info);
    ck_assert_mem_eq(output + sizeof sha256_info, zeros, sizeof output - sizeof sha256_info);
}

TEST(audit_permits_the_data)
{
    start("x-disabled-algorithms: MD5\nx-policy: audit");
    for (enum way way = 0; way < WAYS; way++)
        is_permitted(way, CKM_RSA_PKCS, md5_info, sizeof md5_info);
    ck_assert_uint_eq(messages_with("'MD5' would refuse CKM_RSA_PKCS in C_Sign"), 1);
}

/* Whatever operation an unknown session has open, it may be a raw one. */
TEST(an_unknown_session_is_looked_at)
{
    start(denying[0]);
    session = 4711;
    is_refused(SIGN, CKM_SHA256_RSA_PKCS, md5_info, sizeof md5_info);
    is_permitted(SIGN, CKM_SHA256_RSA_PKCS, sha256_info, sizeof sha256_info);
}

/* The session lives on, and so does what it has open. */
TEST(a_close_that_fails_forgets_nothing)
{
    start(denying[0]);
    EXPECT(begin_by(SIGN, CKM_RSA_PKCS), CKR_OK);
    keyring->close_answer = CKR_FUNCTION_FAILED;
    EXPECT(fn->C_CloseSession(session), CKR_FUNCTION_FAILED);
    EXPECT(give_by(SIGN, md5_info, sizeof md5_info), CKR_DATA_INVALID);
}

int main(void)
{
    return test_main("guard_data", set_up, tear_down);
}
