/* test_guard_parameters.c - algorithms in parameters are refused too, and nothing is read that is not there. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

enum { WORDS_MOST = 12 };

/* A pointer to what follows the words: a CK_MECHANISM of CKM_MD5, or the parameter of OAEP with SHA-1. */
#define TO_MD5  (~0UL)
#define TO_OAEP (~1UL)

/* An item that denies it, one that is near and does not, and the parameter as words of CK_ULONG. */
static const struct nested {
    const char *denies, *permits;
    CK_MECHANISM_TYPE mechanism;
    unsigned needed; /* words that must be there to see it */
    CK_ULONG words[WORDS_MOST];
} nested[] = {
    {"SHA1", "SHA384", CKM_RSA_PKCS_OAEP, 1, {0x220, 2, 1, 0, 0}},
    {"SHA1", "SHA256", CKM_RSA_PKCS_OAEP, 2, {0x260, 1, 1, 0, 0}},
    {"SHA384", "SHA1", CKM_RSA_PKCS_OAEP, 2, {0x250, 3, 1, 0, 0}},
    {"SHA1", "MD5", CKM_RSA_PKCS_PSS, 1, {0x220, 2, 20}},
    {"SHA224", "SHA1", CKM_RSA_PKCS_PSS, 2, {0x250, 5, 20}},
    {"SHA1withRSASSA-PSS", "SHA1withRSA", CKM_RSA_PKCS_PSS, 1, {0x220, 2, 20}},
    {"SHA3-256", "SHA384", CKM_RSA_PKCS_PSS, 2, {0x250, 7, 20}},
    {"SHA512", "SHA1", 0x43 /* SHA256_RSA_PKCS_PSS */, 2, {0x250, 4, 20}},
    {"SHA1", "SHA256", CKM_ECDH1_DERIVE, 1, {2, 0, 0, 65, 0}},
    {"SHA256", "SHA1", CKM_ECDH1_DERIVE, 1, {6, 0, 0, 65, 0}},
    {"SHA1", "SHA256", CKM_ECDH1_COFACTOR_DERIVE, 1, {0x0e, 0, 0, 65, 0}},
    {"SHA1", "SHA256", CKM_ECMQV_DERIVE, 1, {2, 0, 0, 65, 0}},
    {"SHA1", "SHA256", CKM_X9_42_DH_DERIVE, 1, {3, 0, 0, 65, 0}},
    {"SHA1", "SHA256", CKM_X9_42_DH_HYBRID_DERIVE, 1, {4, 0, 0, 65, 0}},
    {"SHA1", "SHA256", CKM_X9_42_MQV_DERIVE, 1, {4, 0, 0, 65, 0}},
    {"HmacSHA1", "SHA1", CKM_PKCS5_PBKD2, 5, {1, 0, 0, 1000, 1, 0, 0, 0, 0}},
    {"HmacSHA256", "HmacSHA1", CKM_PKCS5_PBKD2, 5, {1, 0, 0, 1000, 4, 0, 0, 0, 0}},
    {"SHA1", "SHA256", 0x402a /* HKDF_DERIVE */, 2, {1, 0x220, 1, 0, 0, 0, 0, 0}},
    {"HmacSHA1", "HmacMD5", 0x402b /* HKDF_DATA */, 2, {1, 0x220, 1, 0, 0, 0, 0, 0}},
    {"MD5", "SHA1", 0x3d8 /* TLS12_MAC */, 1, {0x210, 12, 1}},
    {"TLSv1", "SSLv3", 0x3e4 /* TLS_MAC */, 1, {0x378, 12, 1}},
    {"SHA256", "SHA384", 0x3e5 /* TLS_KDF */, 1, {0x250, 0, 0, 0, 0, 0, 0, 0, 0}},
    {"SHA384", "SHA256", 0x3e0 /* TLS12_MASTER_KEY_DERIVE */, 6, {0, 0, 0, 0, 0, 0x260}},
    {"SHA384",
     "SHA256",
     0x3e1 /* TLS12_KEY_AND_MAC_DERIVE */,
     10,
     {0, 0, 0, 0, 0, 0, 0, 0, 0, 0x260}},
    {"SHA1", "SHA256", 0x56 /* TLS12_EXTENDED_MASTER_KEY_DERIVE */, 1, {0x220, 0, 0, 0}},
    {"SHA1", "SHA256", 0x3d3 /* WTLS_PRF */, 1, {0x220, 0, 0, 0, 0, 0, 0}},
    {"HmacSHA1", "SHA1", 0x3ac /* SP800_108_COUNTER_KDF */, 1, {0x221, 0, 0, 0, 0}},
    {"HmacSHA1", "HmacSHA256", 0x3ad /* SP800_108_FEEDBACK_KDF */, 1, {0x221, 0, 0, 0, 0, 0, 0}},
    {"SHA256", "SHA1", 0x1f /* HASH_ML_DSA */, 4, {0, 0, 0, 0x250}},
    {"CKM_HASH_ML_DSA_SHA512", "CKM_HASH_SLH_DSA_SHA512", 0x1f, 4, {0, 0, 0, 0x270}},
    {"CKM_HASH_SLH_DSA_SHA512",
     "CKM_HASH_ML_DSA_SHA512",
     0x34 /* HASH_SLH_DSA */,
     4,
     {0, 0, 0, 0x270}},
    {"SHA512", "SHA256", 0x4029 /* XEDDSA */, 1, {0x270}},
    {"MD5", "SHA1", CKM_CMS_SIG, 2, {1, TO_MD5, 0, 0, 0, 0, 0, 0}},
    {"MD5", "SHA1", CKM_CMS_SIG, 3, {1, 0, TO_MD5, 0, 0, 0, 0, 0}},
    {"MD5", "SHA1", CKM_KIP_DERIVE, 1, {TO_MD5, 0, 0, 0}},
    {"SHA1", "SHA256", 0x1054 /* RSA_AES_KEY_WRAP */, 2, {256, TO_OAEP}},
    {"SHA1", "SHA256", 0x1053 /* ECDH_AES_KEY_WRAP */, 2, {256, 2, 0, 0}},
    {"HmacSHA1", "HmacSHA256", 0x402f /* IKE_PRF_DERIVE */, 1, {0x221, 0, 0, 0, 0, 0, 0}},
    {"HmacSHA1", "HmacSHA256", 0xce534375 /* NSS_IKE1_APP_B_PRF_DERIVE */, 1, {0x221}},
    {"HmacMD5", "HmacSHA1", 0xce534363 /* NSS_HMAC_CONSTANT_TIME */, 1, {0x211, 0, 0, 0}},
};
enum { NESTED = sizeof nested / sizeof *nested };

static CK_SESSION_HANDLE session;
static char *page_end;
static unsigned calls_before;

static void start(const char *item)
{
    char settings[256];
    page_end = (char *)before_a_fault(0);
    snprintf(settings, sizeof settings, "x-pool: off\nx-disabled-algorithms: %s", item);
    proxy_with(settings);
    initialize();
    session = open_session(0, 0);
    calls_before = target_calls_in_all();
}

/* The first len_bytes of the parameter, right before a page that faults. */
static CK_RV derive(const struct nested *from, size_t len_bytes)
{
    static CK_MECHANISM md5 = {CKM_MD5, NULL, 0};
    static CK_RSA_PKCS_OAEP_PARAMS oaep = {.hashAlg = CKM_SHA_1, .mgf = 1};
    CK_ULONG words[WORDS_MOST];
    CK_OBJECT_HANDLE key;
    memcpy(words, from->words, sizeof words);
    for (unsigned i = 0; i < WORDS_MOST; i++)
        words[i] = words[i] == TO_MD5    ? (CK_ULONG)&md5
                   : words[i] == TO_OAEP ? (CK_ULONG)&oaep
                                         : words[i];
    memcpy(page_end - len_bytes, words, len_bytes);
    CK_MECHANISM mechanism = {from->mechanism, page_end - len_bytes, len_bytes};
    return fn->C_DeriveKey(session, &mechanism, 1, NULL, 0, &key);
}

TEST_EACH(an_algorithm_in_a_parameter_is_refused, 0, NESTED)
{
    const struct nested *one = &nested[_i];
    start(one->denies);
    EXPECT(derive(one, sizeof one->words), CKR_MECHANISM_PARAM_INVALID);
    EXPECT(derive(one, one->needed * sizeof(CK_ULONG)), CKR_MECHANISM_PARAM_INVALID);
    ck_assert_uint_eq(target_calls_in_all() - calls_before, 0);
    for (size_t len_bytes = 0; len_bytes < one->needed * sizeof(CK_ULONG); len_bytes++)
        EXPECT(derive(one, len_bytes), CKR_OK);
    ck_assert_uint_eq(target_calls_in_all() - calls_before, one->needed * sizeof(CK_ULONG));
}

TEST_EACH(a_near_one_is_not, 0, NESTED)
{
    start(nested[_i].permits);
    EXPECT(derive(&nested[_i], sizeof nested[_i].words), CKR_OK);
    ck_assert_uint_eq(target_calls_in_all() - calls_before, 1);
}

/* Mechanism 0 makes RSA keys; in a parameter 0 says that there is nothing. */
TEST(zero_in_a_parameter_is_no_mechanism)
{
    static const struct nested zeros[] = {{.mechanism = CKM_ECDH1_DERIVE},
                                          {.mechanism = 0x4029},
                                          {.mechanism = CKM_CMS_SIG},
                                          {.mechanism = 0x402a}};
    start("RSA, SHA1");
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++)
        EXPECT(derive(&zeros[i], sizeof zeros[i].words), CKR_OK);
}

TEST(mechanisms_that_contain_each_other_end)
{
    CK_ULONG words[8] = {0};
    CK_OBJECT_HANDLE key;
    CK_MECHANISM circle = {CKM_CMS_SIG, words, sizeof words};
    words[1] = words[2] = (CK_ULONG)&circle;
    start("MD5");
    EXPECT(fn->C_DeriveKey(session, &circle, 1, NULL, 0, &key), CKR_OK);
}

TEST(audit_permits_what_a_parameter_names)
{
    start("SHA1\nx-policy: audit");
    EXPECT(derive(&nested[0], sizeof nested[0].words), CKR_OK);
    ck_assert_uint_eq(messages_with("'SHA1' would refuse CKM_RSA_PKCS_OAEP in C_DeriveKey"), 1);
}

int main(void)
{
    return test_main("guard_parameters", set_up, tear_down);
}
