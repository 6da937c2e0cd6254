/* test_guard.c - what is disabled never reaches the token, as a mechanism of any function or in its parameter. */
#include "fixture.h"

#include <unistd.h>

#include "rows.h"

enum { MECHANISM_FUNCTIONS = 21, WORDS_MOST = 12 };

static _Alignas(16) unsigned char scratch[4096];
static CK_MECHANISM mechanism;
static CK_MECHANISM *mechanism_argument = &mechanism;

/* Counts are 0, so that no template is read; handles of keys are 1; pointers lead to zeros. */
static uintptr_t value_of(const char *name, bool is_pointer)
{
    if (strcmp(name, "hSession") == 0)
        return session;
    if (strcmp(name, "pMechanism") == 0)
        return (uintptr_t)mechanism_argument;
    return is_pointer ? (uintptr_t)scratch : name[0] == 'h';
}

static void start_without(const char *item)
{
    script("interfaces 3.2 3.0 2.40");
    begin(text_of("x-pool: off\nx-disabled-algorithms: %s", item));
    list = interface_list(3, 2);
}

#define ANYTHING (~0UL)

/* Each row in a session of its own. calls: how many of it reach the target. */
static void all_answer(CK_RV rv, unsigned calls)
{
    FOR_EACH_ROW(row, "MECH")
    {
        session = open_session(0, 0);
        unsigned before = target_calls_in_all();
        CK_RV got = row->call();
        ck_assert_msg(got == rv || rv == ANYTHING, "%s answers 0x%lx, not 0x%lx", row->name, got,
                      rv);
        ck_assert_msg(target_calls_in_all() - before == calls, "%s: %u calls reach the target",
                      row->name, target_calls_in_all() - before);
    }
}

TEST(every_function_that_takes_a_mechanism_is_guarded)
{
    unsigned found = 0;
    for (const struct row *row = rows; row < rows + FUNCTIONS_3_2; row++) {
        bool takes = strstr(row->parameters, "CK_MECHANISM_PTR") != NULL;
        ck_assert_msg(takes == is_kind(row, "MECH"), "%s", row->name);
        found += takes;
    }
    ck_assert_uint_eq(found, MECHANISM_FUNCTIONS);
}

/* By name, by number, by a vendor's number. */
static const struct {
    const char *disabled;
    CK_MECHANISM_TYPE denied, permitted;
} lists[] = {
    {"MD5", CKM_MD5_RSA_PKCS, CKM_SHA256_RSA_PKCS},
    {"0x80001234", 0x80001234, 0x80001235},
    {"RSA", 0, 0x7fffffff},
    {"CKM_MD5", CKM_MD5, 0x100000000 | CKM_MD5}, /* no number is cut */
};

TEST_EACH(a_denied_mechanism_never_reaches_the_token, 0, COUNT_OF(lists))
{
    start_without(lists[_i].disabled);
    mechanism.mechanism = lists[_i].denied;
    all_answer(CKR_MECHANISM_INVALID, 0);
    mechanism.mechanism = lists[_i].permitted;
    all_answer(CKR_OK, 1);
}

TEST(no_mechanism_is_handed_on_unread)
{
    start_without("RSA, MD5, AES, RSA keySize < 2048");
    mechanism_argument = NULL;
    all_answer(ANYTHING, 1);
}

/* The message at the first of them names the place of the rule. */
static const struct {
    const char *settings;
    CK_RV rv;
    unsigned calls; /* of each row that reach the target */
    const char *first;
} modes[] = {
    {"DES,   MD5", CKR_MECHANISM_INVALID, 0,
     "/config:3: 'MD5' refuses CKM_MD5_RSA_PKCS in C_EncryptInit"},
    {"MD5, SHA1\nx-policy: audit", CKR_OK, 1,
     "/config:3: 'MD5' would refuse CKM_MD5_RSA_PKCS in C_EncryptInit"},
};

TEST_EACH(what_the_policy_meets_is_logged_once, 0, 2)
{
    start_without(modes[_i].settings);
    mechanism.mechanism = CKM_MD5_RSA_PKCS;
    all_answer(modes[_i].rv, modes[_i].calls);
    all_answer(modes[_i].rv, modes[_i].calls);
    ck_assert_uint_eq(messages_with(modes[_i].first), 1);
    ck_assert_uint_eq(messages_with("CKM_MD5_RSA_PKCS"), 1);
}

/* A child of a process that had it goes on under it, without any call of its own. */
TEST(a_forked_child_goes_on_under_the_policy)
{
    start_without("MD5");
    mechanism.mechanism = CKM_MD5;
    pid_t child = check_fork();
    if (child == 0) {
        unsigned before = target_calls_in_all();
        FOR_EACH_ROW(row, "MECH")
        CHILD_EXPECT(row->call(), CKR_MECHANISM_INVALID);
        _exit(target_calls_in_all() == before ? 0 : 2);
    }
    /* One after the other: the target counts the calls of both. */
    reap(child);
    all_answer(CKR_MECHANISM_INVALID, 0);
}

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
    {"SHA384", "SHA256", 0x3e1 /* TLS12_KEY_AND_MAC_DERIVE */, 10, {[9] = 0x260}},
    {"SHA1", "SHA256", 0x56 /* TLS12_EXTENDED_MASTER_KEY_DERIVE */, 1, {0x220, 0, 0, 0}},
    {"SHA1", "SHA256", 0x3d3 /* WTLS_PRF */, 1, {0x220, 0, 0, 0, 0, 0, 0}},
    {"HmacSHA1", "SHA1", 0x3ac /* SP800_108_COUNTER_KDF */, 1, {0x221, 0, 0, 0, 0}},
    {"HmacSHA1", "HmacSHA256", 0x3ad /* SP800_108_FEEDBACK_KDF */, 1, {0x221, 0, 0, 0, 0, 0, 0}},
    {"SHA256", "SHA1", 0x1f /* HASH_ML_DSA */, 4, {0, 0, 0, 0x250}},
    {"CKM_HASH_ML_DSA_SHA512", "CKM_HASH_SLH_DSA_SHA512", 0x1f, 4, {0, 0, 0, 0x270}},
    {"CKM_HASH_SLH_DSA_SHA512", "CKM_HASH_ML_DSA_SHA512", 0x34, 4, {0, 0, 0, 0x270}},
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

/* The first len_bytes of the parameter, right before a page that faults. */
static CK_RV derive(const struct nested *from, size_t len_bytes)
{
    static CK_MECHANISM md5 = {CKM_MD5, NULL, 0};
    static CK_RSA_PKCS_OAEP_PARAMS oaep = {.hashAlg = CKM_SHA_1, .mgf = 1};
    static char *page_end;
    CK_ULONG words[WORDS_MOST];
    CK_OBJECT_HANDLE key;
    for (unsigned i = 0; i < WORDS_MOST; i++)
        words[i] = from->words[i] == TO_MD5    ? (CK_ULONG)&md5
                   : from->words[i] == TO_OAEP ? (CK_ULONG)&oaep
                                               : from->words[i];
    if (page_end == NULL)
        page_end = before_a_fault(0);
    memcpy(page_end - len_bytes, words, len_bytes);
    mechanism = (CK_MECHANISM){from->mechanism, page_end - len_bytes, len_bytes};
    return fn->C_DeriveKey(session, &mechanism, 1, NULL, 0, &key);
}

TEST_EACH(an_algorithm_in_a_parameter_is_refused_and_nothing_is_read_that_is_not_there, 0,
          COUNT_OF(nested))
{
    const struct nested *one = &nested[_i];
    start_without(one->denies);
    unsigned before = target_calls_in_all();
    EXPECT(derive(one, sizeof one->words), CKR_MECHANISM_PARAM_INVALID);
    EXPECT(derive(one, one->needed * sizeof(CK_ULONG)), CKR_MECHANISM_PARAM_INVALID);
    ck_assert_uint_eq(target_calls_in_all(), before);
    for (size_t len_bytes = 0; len_bytes < one->needed * sizeof(CK_ULONG); len_bytes++)
        EXPECT(derive(one, len_bytes), CKR_OK);
}

TEST_EACH(a_near_one_is_not, 0, COUNT_OF(nested))
{
    start_without(nested[_i].permits);
    EXPECT(derive(&nested[_i], sizeof nested[_i].words), CKR_OK);
}

/* Mechanism 0 makes RSA keys; in a parameter 0 says that there is nothing. */
TEST_EACH(zero_in_a_parameter_is_no_mechanism, 0, 4)
{
    static const CK_MECHANISM_TYPE types[] = {CKM_ECDH1_DERIVE, 0x4029, CKM_CMS_SIG, 0x402a};
    struct nested zeros = {.mechanism = types[_i]};
    start_without("RSA, SHA1");
    EXPECT(derive(&zeros, sizeof zeros.words), CKR_OK);
}

TEST(mechanisms_that_contain_each_other_end)
{
    CK_ULONG words[8] = {0};
    mechanism = (CK_MECHANISM){CKM_CMS_SIG, words, sizeof words};
    words[1] = words[2] = (CK_ULONG)&mechanism;
    start_without("MD5");
    all_answer(CKR_OK, 1);
}
