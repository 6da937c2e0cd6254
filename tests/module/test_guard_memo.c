/* test_guard_memo.c - what was permitted a moment ago is permitted again, and only that. */
#include "run.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keyring.h"

static struct keyring *keyring;
static CK_SESSION_HANDLE session;
static CK_MECHANISM raw = {CKM_RSA_PKCS, NULL, 0};
static CK_MECHANISM hashed = {CKM_SHA256_RSA_PKCS, NULL, 0};

/* DigestInfo of an MD5 digest (PKCS #1 v1.5). */
static const CK_BYTE md5_info[34] = "\x30\x20\x30\x0c\x06\x08\x2a\x86\x48\x86\xf7\x0d\x02\x05\x05"
                                    "\x00\x04\x10"
                                    "0123456789abcdef";

static void has_rsa_key(CK_ULONG bits)
{
    keyring->key_type = CKK_RSA;
    keyring->attribute = CKA_MODULUS;
    memset(keyring->value, 0xff, bits / 8);
    keyring->value_bytes = bits / 8;
}

static void begin(const char *settings)
{
    proxy_before("keyring", settings);
    keyring = target_symbol("keyring");
    initialize();
    session = open_session(0, 0);
    has_rsa_key(2048);
}

static CK_RV sign_md5_info(void)
{
    CK_BYTE signature[512];
    CK_ULONG signature_bytes = sizeof signature;
    return fn->C_Sign(session, (CK_BYTE_PTR)md5_info, sizeof md5_info, signature, &signature_bytes);
}

START_TEST(another_key_mechanism_or_purpose_is_looked_at)
{
    CK_MECHANISM md5 = {CKM_MD5_RSA_PKCS, NULL, 0};
    begin("x-disabled-algorithms: MD5, RSA keySize < 2048");
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_OK);
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_OK);
    EXPECT(fn->C_SignInit(session, &md5, 1), CKR_MECHANISM_INVALID);
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_OK);
    has_rsa_key(1024);
    EXPECT(fn->C_SignInit(session, &hashed, 2), CKR_KEY_SIZE_RANGE);
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_OK);
    EXPECT(fn->C_VerifyInit(session, &md5, 1), CKR_MECHANISM_INVALID);
}
END_TEST

START_TEST(the_parameter_is_looked_at_each_time)
{
    CK_RSA_PKCS_PSS_PARAMS good = {CKM_SHA256, CKG_MGF1_SHA256, 32};
    CK_RSA_PKCS_PSS_PARAMS bad = {CKM_MD5, CKG_MGF1_SHA256, 16};
    CK_MECHANISM pss = {CKM_RSA_PKCS_PSS, &good, sizeof good};
    begin("x-disabled-algorithms: MD5");
    EXPECT(fn->C_SignInit(session, &pss, 1), CKR_OK);
    EXPECT(fn->C_SignInit(session, &pss, 1), CKR_OK);
    pss.pParameter = &bad;
    EXPECT(fn->C_SignInit(session, &pss, 1), CKR_MECHANISM_PARAM_INVALID);
    /* Without one it names nothing; with one it may. */
    pss.pParameter = NULL;
    pss.ulParameterLen = 0;
    EXPECT(fn->C_SignInit(session, &pss, 1), CKR_OK);
    pss.pParameter = &bad;
    pss.ulParameterLen = sizeof bad;
    EXPECT(fn->C_SignInit(session, &pss, 1), CKR_MECHANISM_PARAM_INVALID);
}
END_TEST

START_TEST(a_key_that_was_not_known_is_looked_at_when_it_is)
{
    begin("x-disabled-algorithms: RSA keySize < 2048");
    has_rsa_key(1024);
    keyring->key_type = CK_UNAVAILABLE_INFORMATION;
    EXPECT(fn->C_SignInit(session, &hashed, 5), CKR_OK); /* the token would say */
    has_rsa_key(1024);
    EXPECT(fn->C_SignInit(session, &hashed, 5), CKR_KEY_SIZE_RANGE);
}
END_TEST

START_TEST(a_key_that_was_replaced_is_looked_at)
{
    begin("x-disabled-algorithms: RSA keySize < 2048");
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_OK);
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_OK);
    EXPECT(fn->C_DestroyObject(session, 1), CKR_OK);
    has_rsa_key(1024);
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_KEY_SIZE_RANGE);
}
END_TEST

static void another_key_comes(void)
{
    has_rsa_key(1024);
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_KEY_SIZE_RANGE);
}

START_TEST(a_key_that_is_being_destroyed_is_looked_at)
{
    begin("x-disabled-algorithms: RSA keySize < 2048");
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_OK);
    keyring->destroying = another_key_comes;
    EXPECT(fn->C_DestroyObject(session, 1), CKR_OK);
    ck_assert_uint_eq(keyring->calls, 1);
}
END_TEST

static void the_old_key_is_there_yet(void)
{
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_OK);
}

START_TEST(a_key_that_was_permitted_in_its_last_moment_is_looked_at)
{
    begin("x-disabled-algorithms: RSA keySize < 2048");
    keyring->destroying = the_old_key_is_there_yet;
    EXPECT(fn->C_DestroyObject(session, 1), CKR_OK);
    has_rsa_key(1024);
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_KEY_SIZE_RANGE);
}
END_TEST

/* Another token came, or another user of the target finalized it and initialized it anew. */
static const CK_RV ends[] = {CKR_DEVICE_REMOVED, CKR_CRYPTOKI_NOT_INITIALIZED};

/* Who has a session there now has the old one's number, as with many tokens. */
START_TEST(another_token_in_the_slot_is_looked_at)
{
    begin("x-disabled-algorithms: RSA keySize < 2048");
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_OK);
    keyring->answer = ends[_i];
    EXPECT(sign_md5_info(), ends[_i]);
    keyring->answer = CKR_OK;
    has_rsa_key(1024);
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_KEY_SIZE_RANGE);
}
END_TEST

/* The token of the first went without a word, and the second one's gives its sessions the same numbers. */
START_TEST(a_session_of_that_number_on_another_slot_is_looked_at)
{
    begin("x-disabled-algorithms: RSA keySize < 2048");
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_OK);
    keyring->sessions = 0;
    ck_assert_uint_eq(open_session(1, 0), session);
    has_rsa_key(1024);
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_KEY_SIZE_RANGE);
}
END_TEST

START_TEST(a_derived_key_is_looked_at_though_the_same_key_wraps)
{
    CK_KEY_TYPE type = CKK_RSA;
    CK_ULONG bits = 1024;
    CK_ATTRIBUTE small[] = {{CKA_KEY_TYPE, &type, sizeof type},
                            {CKA_MODULUS_BITS, &bits, sizeof bits}};
    CK_BYTE wrapped[16];
    CK_ULONG wrapped_bytes = sizeof wrapped;
    CK_OBJECT_HANDLE made;
    begin("x-disabled-algorithms: RSA keySize < 2048");
    EXPECT(fn->C_WrapKey(session, &raw, 1, 2, wrapped, &wrapped_bytes), CKR_OK);
    EXPECT(fn->C_DeriveKey(session, &raw, 1, small, 2, &made), CKR_KEY_SIZE_RANGE);
}
END_TEST

static void *begin_hashed(void *unused)
{
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_OK);
    return unused;
}

/* This thread knows that raw is permitted, and another one has used the session meanwhile. */
START_TEST(data_that_hides_a_digest_is_looked_at_whatever_other_threads_did)
{
    pthread_t other;
    begin("x-disabled-algorithms: MD5");
    EXPECT(fn->C_SignInit(session, &raw, 1), CKR_OK);
    EXPECT(sign_md5_info(), CKR_DATA_INVALID);
    ck_assert_int_eq(pthread_create(&other, NULL, begin_hashed, NULL), 0);
    pthread_join(other, NULL);
    EXPECT(sign_md5_info(), CKR_OK);
    EXPECT(fn->C_SignInit(session, &raw, 1), CKR_OK);
    EXPECT(sign_md5_info(), CKR_DATA_INVALID);
}
END_TEST

START_TEST(another_policy_permits_anew)
{
    begin("x-disabled-algorithms: MD5");
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_OK);
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_OK);
    FILE *file = fopen(getenv("P11_PROXY_CONFIG"), "we");
    fputs("x-log: off\nx-disabled-algorithms: SHA256\n", file);
    fclose(file);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    initialize();
    keyring->sessions = 0;
    ck_assert_uint_eq(open_session(0, 0), session);
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_MECHANISM_INVALID);
}
END_TEST

START_TEST(what_an_audit_permits_is_counted_each_time)
{
    begin("x-disabled-algorithms: SHA256\nx-policy: audit");
    for (int i = 0; i < 7; i++)
        EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_OK);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    ck_assert_uint_eq(messages_with("7 times in all"), 1);
}
END_TEST

START_TEST(the_end_of_an_operation_is_handed_on)
{
    begin("x-disabled-algorithms: MD5");
    EXPECT(fn->C_SignInit(session, &hashed, 1), CKR_OK);
    EXPECT(fn->C_SignInit(session, NULL, 1), CKR_OK);
    ck_assert_uint_eq(keyring->calls, 2);
}
END_TEST

/* It goes on as its parent would have, without the sessions that its parent knew. */
START_TEST(a_forked_child_is_refused_what_its_parent_would_be)
{
    int status;
    begin("x-disabled-algorithms: MD5, RSA keySize < 2048");
    EXPECT(fn->C_SignInit(session, &raw, 1), CKR_OK);
    EXPECT(fn->C_SignInit(session, &raw, 1), CKR_OK);
    pid_t child = fork();
    if (child == 0) {
        bool right =
            fn->C_SignInit(session, &raw, 1) == CKR_OK && sign_md5_info() == CKR_DATA_INVALID;
        has_rsa_key(1024);
        right = right && fn->C_DestroyObject(session, 1) == CKR_OK &&
                fn->C_SignInit(session, &raw, 1) == CKR_KEY_SIZE_RANGE;
        _exit(right ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, another_key_mechanism_or_purpose_is_looked_at);
    tcase_add_test(tcase, the_parameter_is_looked_at_each_time);
    tcase_add_test(tcase, a_key_that_was_not_known_is_looked_at_when_it_is);
    tcase_add_test(tcase, a_key_that_was_replaced_is_looked_at);
    tcase_add_test(tcase, a_key_that_is_being_destroyed_is_looked_at);
    tcase_add_test(tcase, a_key_that_was_permitted_in_its_last_moment_is_looked_at);
    tcase_add_loop_test(tcase, another_token_in_the_slot_is_looked_at, 0,
                        sizeof ends / sizeof *ends);
    tcase_add_test(tcase, a_session_of_that_number_on_another_slot_is_looked_at);
    tcase_add_test(tcase, a_derived_key_is_looked_at_though_the_same_key_wraps);
    tcase_add_test(tcase, data_that_hides_a_digest_is_looked_at_whatever_other_threads_did);
    tcase_add_test(tcase, another_policy_permits_anew);
    tcase_add_test(tcase, what_an_audit_permits_is_counted_each_time);
    tcase_add_test(tcase, the_end_of_an_operation_is_handed_on);
    tcase_add_test(tcase, a_forked_child_is_refused_what_its_parent_would_be);
}

int main(void)
{
    return run_tests("guard_memo", add_tests);
}
