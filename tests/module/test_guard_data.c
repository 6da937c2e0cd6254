/* test_guard_data.c - a denied digest does not come back under a raw RSA signature, nor in a saved operation. */
#include "run.h"

#include <stdint.h>
#include <string.h>

#include "keyring.h"

enum { DIGEST_INFO_BYTES = 34, BLOCK_BYTES = 128 };

/* DigestInfo of an MD5 digest (PKCS #1 v1.5), and of a SHA-256 digest. */
static const CK_BYTE md5_info[DIGEST_INFO_BYTES] =
    "\x30\x20\x30\x0c\x06\x08\x2a\x86\x48\x86\xf7\x0d\x02\x05\x05"
    "\x00\x04\x10"
    "0123456789abcdef";
static const CK_BYTE sha256_info[51] =
    "\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20"
    "0123456789abcdef0123456789abcdef";

static struct keyring *keyring;
static CK_SESSION_HANDLE session;
static CK_BYTE output[512];
static CK_ULONG output_bytes = sizeof output;

static void begin(const char *settings)
{
    proxy_before("keyring", settings);
    keyring = target_symbol("keyring");
    initialize();
    session = open_session(0, 0);
}

static void begin_all(CK_MECHANISM_TYPE type)
{
    CK_MECHANISM mechanism = {type, NULL, 0};
    EXPECT(fn->C_SignInit(session, &mechanism, 1), CKR_OK);
    EXPECT(fn->C_VerifyInit(session, &mechanism, 1), CKR_OK);
    EXPECT(fn->C_SignRecoverInit(session, &mechanism, 1), CKR_OK);
    EXPECT(fn->C_VerifyRecoverInit(session, &mechanism, 1), CKR_OK);
    EXPECT(fn->C_EncryptInit(session, &mechanism, 1), CKR_OK);
}

/* The answer to an operation on such data, by each function that takes it. */
static CK_RV by_function(int which, const CK_BYTE *data, CK_ULONG data_bytes)
{
    CK_BYTE *bytes = (CK_BYTE *)data;
    keyring->data_bytes = 0;
    switch (which) {
    case 0:
        return fn->C_Sign(session, bytes, data_bytes, output, &output_bytes);
    case 1:
        return fn->C_Verify(session, bytes, data_bytes, output, sizeof output);
    case 2:
        return fn->C_SignRecover(session, bytes, data_bytes, output, &output_bytes);
    case 3:
        return fn->C_Encrypt(session, bytes, data_bytes, output, &output_bytes);
    case 4:
        return fn->C_SignUpdate(session, bytes, data_bytes);
    default:
        return fn->C_VerifyUpdate(session, bytes, data_bytes);
    }
}
enum { FUNCTIONS = 6, FUNCTIONS_THAT_END = 4 };

/* The token never sees the data, and hears of the end of the operation by data that it must refuse. */
static void is_refused(int which, const CK_BYTE *data, CK_ULONG data_bytes)
{
    static const CK_BYTE zeros[16 * 1024];
    keyring->answer = CKR_DATA_LEN_RANGE;
    EXPECT(by_function(which, data, data_bytes), CKR_DATA_INVALID);
    ck_assert_uint_eq(keyring->data_bytes, which < FUNCTIONS_THAT_END ? sizeof zeros : 0);
    ck_assert_mem_eq(keyring->data, zeros, keyring->data_bytes);
    keyring->answer = CKR_OK;
}

static void is_permitted(int which, const CK_BYTE *data, CK_ULONG data_bytes)
{
    EXPECT(by_function(which, data, data_bytes), CKR_OK);
    ck_assert_uint_eq(keyring->data_bytes, data_bytes);
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

START_TEST(a_denied_digest_under_raw_rsa_is_refused)
{
    CK_BYTE block[BLOCK_BYTES];
    begin(denying[_i]);
    begin_all(CKM_RSA_PKCS);
    for (int i = 0; i < FUNCTIONS; i++) {
        is_refused(i, md5_info, sizeof md5_info);
        is_permitted(i, sha256_info, sizeof sha256_info);
        is_permitted(i, md5_info, sizeof md5_info - 1);
        is_permitted(i, md5_info, 0);
    }
    begin_all(CKM_RSA_X_509);
    for (int i = 0; i < FUNCTIONS; i++) {
        pad(block, md5_info, sizeof md5_info);
        is_refused(i, block, sizeof block);
        is_refused(i, block + 1, sizeof block - 1);
        pad(block, sha256_info, sizeof sha256_info);
        is_permitted(i, block, sizeof block);
        is_permitted(i, block, 2);
        memset(block + 2, 0xff, sizeof block - 2);
        is_permitted(i, block, sizeof block);
    }
}
END_TEST

/* The same bytes as data of a mechanism that digests by itself are only data. */
START_TEST(other_mechanisms_may_sign_any_data)
{
    begin(denying[0]);
    begin_all(CKM_RSA_PKCS);
    begin_all(CKM_SHA256_RSA_PKCS);
    for (int i = 0; i < FUNCTIONS; i++)
        is_permitted(i, md5_info, sizeof md5_info);
}
END_TEST

/* A question for the length signs nothing, and a small buffer ends nothing: the target answers both. */
START_TEST(lengths_and_states_are_the_targets_answer)
{
    CK_MECHANISM mechanism = {CKM_RSA_PKCS, NULL, 0};
    begin(denying[0]);
    EXPECT(fn->C_SignInit(session, &mechanism, 1), CKR_OK);
    EXPECT(fn->C_Sign(session, (CK_BYTE *)md5_info, sizeof md5_info, NULL, &output_bytes), CKR_OK);
    keyring->answer = CKR_BUFFER_TOO_SMALL;
    EXPECT(fn->C_Sign(session, (CK_BYTE *)md5_info, sizeof md5_info, output, &output_bytes),
           CKR_BUFFER_TOO_SMALL);
    keyring->answer = CKR_OPERATION_NOT_INITIALIZED;
    EXPECT(fn->C_Sign(session, (CK_BYTE *)md5_info, sizeof md5_info, output, &output_bytes),
           CKR_OPERATION_NOT_INITIALIZED);
    keyring->answer = CKR_OK; /* a token that signs it all the same */
    EXPECT(fn->C_Sign(session, (CK_BYTE *)md5_info, sizeof md5_info, output, &output_bytes),
           CKR_DATA_INVALID);
}
END_TEST

START_TEST(what_verify_recover_gives_is_taken_back)
{
    CK_MECHANISM mechanism = {CKM_RSA_PKCS, NULL, 0};
    static const CK_BYTE zeros[sizeof md5_info];
    begin(denying[0]);
    memcpy(keyring->output, md5_info, sizeof md5_info);
    keyring->output_bytes = sizeof md5_info;
    EXPECT(fn->C_VerifyRecoverInit(session, &mechanism, 1), CKR_OK);
    EXPECT(fn->C_VerifyRecover(session, output, 128, NULL, &output_bytes), CKR_OK);
    EXPECT(fn->C_VerifyRecover(session, output, 128, output, &output_bytes), CKR_DATA_INVALID);
    ck_assert_mem_eq(output, zeros, sizeof zeros);
}
END_TEST

START_TEST(audit_permits_the_data)
{
    begin("x-disabled-algorithms: MD5\nx-policy: audit");
    begin_all(CKM_RSA_PKCS);
    is_permitted(0, md5_info, sizeof md5_info);
    ck_assert_uint_eq(messages_with("'MD5' would refuse CKM_RSA_PKCS in C_Sign"), 1);
}
END_TEST

/* Whatever operation an unknown session has open, it may be a raw one. */
START_TEST(an_unknown_session_is_looked_at)
{
    begin(denying[0]);
    session = 4711;
    is_refused(0, md5_info, sizeof md5_info);
    is_permitted(0, sha256_info, sizeof sha256_info);
}
END_TEST

START_TEST(a_close_that_fails_forgets_nothing)
{
    begin(denying[0]);
    begin_all(CKM_RSA_PKCS);
    keyring->close_answer = CKR_FUNCTION_FAILED;
    EXPECT(fn->C_CloseSession(session), CKR_FUNCTION_FAILED);
    is_refused(0, md5_info, sizeof md5_info);
}
END_TEST

START_TEST(only_states_that_came_from_here_are_restored)
{
    CK_BYTE state[64];
    CK_ULONG state_bytes = sizeof state;
    begin(_i == 0   ? "x-disabled-algorithms: MD5"
          : _i == 1 ? "x-disabled-algorithms: MD5\nx-policy: audit"
                    : "");
    memcpy(keyring->output, "state of an operation", 21);
    keyring->output_bytes = 21;
    EXPECT(fn->C_SetOperationState(session, (CK_BYTE *)"state of an operation", 21, 0, 0),
           _i == 0 ? CKR_SAVED_STATE_INVALID : CKR_OK);
    ck_assert_uint_eq(keyring->calls, _i == 0 ? 0 : 1);
    EXPECT(fn->C_GetOperationState(session, NULL, &state_bytes), CKR_OK);
    EXPECT(fn->C_GetOperationState(session, state, &state_bytes), CKR_OK);
    EXPECT(fn->C_SetOperationState(session, state, state_bytes, 0, 0), CKR_OK);
    if (_i != 0)
        return;
    is_refused(0, md5_info, sizeof md5_info);
    state[3] ^= 1;
    EXPECT(fn->C_SetOperationState(session, state, state_bytes, 0, 0), CKR_SAVED_STATE_INVALID);
    state[3] ^= 1;
    EXPECT(fn->C_SetOperationState(session, state, state_bytes - 1, 0, 0), CKR_SAVED_STATE_INVALID);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    initialize();
    session = open_session(0, 0);
    EXPECT(fn->C_SetOperationState(session, state, state_bytes, 0, 0), CKR_SAVED_STATE_INVALID);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_denied_digest_under_raw_rsa_is_refused, 0, 3);
    tcase_add_test(tcase, other_mechanisms_may_sign_any_data);
    tcase_add_test(tcase, lengths_and_states_are_the_targets_answer);
    tcase_add_test(tcase, what_verify_recover_gives_is_taken_back);
    tcase_add_test(tcase, audit_permits_the_data);
    tcase_add_test(tcase, an_unknown_session_is_looked_at);
    tcase_add_test(tcase, a_close_that_fails_forgets_nothing);
    tcase_add_loop_test(tcase, only_states_that_came_from_here_are_restored, 0, 3);
}

int main(void)
{
    return run_tests("guard_data", add_tests);
}
