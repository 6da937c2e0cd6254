/* test_policy_verdicts.c - which mechanisms an item denies, and which it leaves alone. */
#include "policy_helper.h"

/* Names of mechanisms, separated by blanks. */
static const struct {
    const char *list, *denied, *permitted;
} verdicts[] = {
    {"MD5", "CKM_MD5 CKM_MD5_RSA_PKCS CKM_MD5_KEY_DERIVATION CKM_PBE_MD5_DES_CBC",
     "CKM_MD5_HMAC CKM_MD5_HMAC_GENERAL CKM_RSA_PKCS CKM_SHA256_RSA_PKCS CKM_MD2"},
    /* Whole atoms only. */
    {"DES", "CKM_DES_CBC CKM_DES_KEY_GEN CKM_PBE_MD5_DES_CBC",
     "CKM_DES3_CBC CKM_DES2_KEY_GEN CKM_PBE_SHA1_DES3_EDE_CBC CKM_DES3_KEY_GEN"},
    {"DSA", "CKM_DSA CKM_DSA_SHA1 CKM_DSA_SHA256 CKM_DSA_KEY_PAIR_GEN",
     "CKM_ECDSA CKM_ECDSA_SHA1 CKM_EDDSA CKM_ML_DSA CKM_SLH_DSA"},
    {"SHA-512", "CKM_SHA512 CKM_SHA512_RSA_PKCS CKM_ECDSA_SHA512",
     "CKM_SHA512_256 CKM_SHA512_224 CKM_SHA3_512 CKM_SHA512_HMAC"},
    {"DH", "CKM_DH_PKCS_DERIVE CKM_X9_42_DH_DERIVE CKM_DH_PKCS_KEY_PAIR_GEN",
     "CKM_ECDH1_DERIVE CKM_EC_KEY_PAIR_GEN"},
    {"CAST5", "CKM_CAST5_CBC", "CKM_CAST_CBC CKM_CAST3_CBC"},
    {"HmacSHA1", "CKM_SHA_1_HMAC CKM_SHA_1_HMAC_GENERAL",
     "CKM_SHA_1 CKM_SHA1_RSA_PKCS CKM_SHA256_HMAC"},
    /* Two names of one algorithm. */
    {"SHA1", "CKM_SHA_1 CKM_SHA1_RSA_PKCS CKM_SHA1_RSA_PKCS_PSS CKM_DSA_SHA1 CKM_SHA1_RSA_X9_31",
     "CKM_RSA_PKCS_PSS CKM_RSA_PKCS_OAEP CKM_SHA256_RSA_PKCS CKM_SHA224 CKM_SHA_1_HMAC CKM_ECDSA"},
    {"Sha-1", "CKM_SHA_1 CKM_ECDSA_SHA1 CKM_SHA1_KEY_DERIVATION", "CKM_SHA256"},
    {"SHA", "CKM_SHA_1 CKM_SHA1_RSA_PKCS", "CKM_SHA512 CKM_SHA224"},
    {"SHA-224", "CKM_SHA224", "CKM_SHA512_224"},
    {"SHA-256", "CKM_SHA256_RSA_PKCS", "CKM_SHA512_256"},
    {"SHA-384", "CKM_ECDSA_SHA384", "CKM_SHA512"},
    {"SHA-512/224", "CKM_SHA512_224", "CKM_SHA512 CKM_SHA224"},
    {"SHA512/256", "CKM_SHA512_256", "CKM_SHA512 CKM_SHA256"},
    {"ARCFOUR", "CKM_RC4 CKM_RC4_KEY_GEN CKM_PBE_SHA1_RC4_128", "CKM_RC2_CBC CKM_RC5_CBC"},
    {"TripleDES", "CKM_DES3_ECB CKM_DES3_KEY_GEN CKM_DES2_KEY_GEN CKM_DES3_CMAC", "CKM_DES_CBC"},
    {"3DES", "CKM_DES3_ECB CKM_DES3_KEY_GEN", "CKM_DES_KEY_GEN"},
    {"DiffieHellman", "CKM_DH_PKCS_DERIVE CKM_X9_42_DH_DERIVE", "CKM_ECDH1_DERIVE"},
    {"CAST128", "CKM_CAST5_CBC CKM_CAST128_CBC", "CKM_CAST_CBC"},
    {"CKM_CAST128_CBC", "CKM_CAST5_CBC", "CKM_CAST5_ECB"},
    /* Names of TLS suites' ciphers. */
    {"RC4_40", "CKM_RC4 CKM_RC4_KEY_GEN", "CKM_AES_CBC"},
    {"RC4_128", "CKM_RC4", "CKM_RC2_CBC"},
    {"DES40_CBC", "CKM_DES_CBC CKM_DES_KEY_GEN", "CKM_DES3_CBC"},
    {"DES_CBC", "CKM_DES_CBC CKM_DES_ECB", "CKM_DES3_CBC"},
    {"3DES_EDE_CBC", "CKM_DES3_CBC CKM_DES3_CBC_PAD", "CKM_DES3_ECB CKM_DES3_KEY_GEN CKM_DES_CBC"},
    /* Families. */
    {"RSA",
     "CKM_RSA_PKCS CKM_RSA_X_509 CKM_RSA_PKCS_OAEP CKM_RSA_PKCS_PSS CKM_SHA256_RSA_PKCS "
     "CKM_RSA_9796 "
     "CKM_RSA_PKCS_KEY_PAIR_GEN CKM_RSA_AES_KEY_WRAP CKM_SHA3_256_RSA_PKCS_PSS",
     "CKM_ECDSA CKM_AES_CBC CKM_SHA256"},
    {"EC",
     "CKM_EC_KEY_PAIR_GEN CKM_ECDSA CKM_ECDSA_SHA256 CKM_ECDH1_DERIVE CKM_ECMQV_DERIVE CKM_EDDSA "
     "CKM_ECDH_AES_KEY_WRAP CKM_EC_EDWARDS_KEY_PAIR_GEN CKM_EC_MONTGOMERY_KEY_PAIR_GEN CKM_XEDDSA",
     "CKM_RSA_PKCS CKM_DSA CKM_DH_PKCS_DERIVE CKM_SHA256"},
    {"ECDSA", "CKM_ECDSA CKM_ECDSA_SHA1", "CKM_ECDH1_DERIVE CKM_EC_KEY_PAIR_GEN CKM_EDDSA"},
    {"ECDH", "CKM_ECDH1_DERIVE CKM_ECDH1_COFACTOR_DERIVE CKM_ECDH_AES_KEY_WRAP", "CKM_ECDSA"},
    /* Names of the whole. */
    {"MD5withRSA", "CKM_MD5_RSA_PKCS", "CKM_MD5 CKM_RSA_PKCS CKM_SHA1_RSA_PKCS"},
    {"SHA1withECDSA", "CKM_ECDSA_SHA1", "CKM_ECDSA CKM_ECDSA_SHA256 CKM_SHA_1 CKM_DSA_SHA1"},
    {"SHA256withRSAandMGF1", "CKM_SHA256_RSA_PKCS_PSS", "CKM_SHA256_RSA_PKCS CKM_RSA_PKCS_PSS"},
    {"AES/ECB/NoPadding", "CKM_AES_ECB", "CKM_AES_CBC CKM_AES_KEY_GEN CKM_DES_ECB"},
    {"PBEWithMD5AndDES", "CKM_PBE_MD5_DES_CBC", "CKM_MD5"},
    {"NONEwithRSA", "CKM_RSA_PKCS", "CKM_RSA_X_509 CKM_SHA256_RSA_PKCS"},
    /* Protocol versions. */
    {"SSLv3",
     "CKM_SSL3_PRE_MASTER_KEY_GEN CKM_SSL3_MASTER_KEY_DERIVE CKM_SSL3_MASTER_KEY_DERIVE_DH "
     "CKM_SSL3_KEY_AND_MAC_DERIVE CKM_SSL3_MD5_MAC CKM_SSL3_SHA1_MAC",
     "CKM_TLS_MASTER_KEY_DERIVE CKM_MD5"},
    {"TLSv1", "CKM_TLS_MASTER_KEY_DERIVE CKM_TLS_KEY_AND_MAC_DERIVE CKM_TLS_PRF",
     "CKM_TLS12_MASTER_KEY_DERIVE CKM_TLS12_MAC CKM_TLS_MAC CKM_TLS_KDF"},
    {"TLSv1.1", "CKM_TLS_MASTER_KEY_DERIVE CKM_TLS_PRF", "CKM_TLS12_KEY_AND_MAC_DERIVE"},
    /* Vendors' mechanisms that are made of the same. */
    {"SHA3-256", "CKM_IBM_SHA3_256 CKM_SHA3_256", "CKM_IBM_SHA3_512"},
    {"ML-KEM", "CKM_NSS_ML_KEM CKM_ML_KEM CKM_IBM_ML_KEM", "CKM_ML_DSA"},
    {"ChaCha20", "CKM_NSS_CHACHA20_POLY1305 CKM_CHACHA20_POLY1305", "CKM_SALSA20"},
};

static void check_each(const struct policy *policy, const char *list, bool is_denied,
                       const char *names)
{
    while (*names) {
        char name[64];
        size_t len = strcspn(names, " ");
        snprintf(name, sizeof name, "%.*s", (int)len, names);
        ck_assert_msg((denied(policy, ckm(name)) != NULL) == is_denied, "%s: %s", list, name);
        names += len + (names[len] == ' ');
    }
}

TEST(an_item_denies_the_mechanisms_that_it_stands_for)
{
    for (size_t i = 0; i < COUNT_OF(verdicts); i++) {
        struct policy *policy = policy_of(verdicts[i].list, NULL);
        check_each(policy, verdicts[i].list, true, verdicts[i].denied);
        check_each(policy, verdicts[i].list, false, verdicts[i].permitted);
        policy_free(policy);
    }
}

TEST(unknown_numbers_are_permitted_and_none_is_cut)
{
    static const uint64_t numbers[] = {0x7fff,     0x8000,      0x7fffffff,         0x80000143,
                                       0xffffffff, 0x100000210, 0x8000000000000210, UINT64_MAX};
    struct policy *policy = policy_of("MD5, SHA1, RSA, EC, AES, 0x80000142, DES", NULL);

    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        ck_assert_ptr_null(denied(policy, numbers[i]));
    policy_free(policy);
}

TEST(the_rule_that_denies_is_the_first_and_tells_its_origin)
{
    struct policy *policy = policy_of("RC4, MD5withRSA, MD5, RSA", NULL);
    const struct policy_rule *rule = denied(policy, ckm("CKM_MD5_RSA_PKCS"));
    ck_assert_str_eq(rule->text, "MD5withRSA");
    ck_assert_str_eq(rule->file, "proxy.module");
    ck_assert_uint_eq(rule->line, 7);
    ck_assert_ptr_null(rule->key);
    ck_assert_ptr_eq(rule, policy_rule(policy, 1));
    ck_assert_str_eq(denied(policy, ckm("CKM_RSA_PKCS"))->text, "RSA");
    policy_free(policy);
}

TEST(a_mechanism_is_denied_by_its_own_name_and_no_other_with_it)
{
    for (size_t i = 0; i < MECHANISMS; i++) {
        char list[64];
        struct policy *policy =
            policy_of(mechanism_name(mechanisms[i].number, list, sizeof list), NULL);
        for (size_t j = 0; j < MECHANISMS; j++)
            ck_assert_int_eq(denied(policy, mechanisms[j].number) != NULL, i == j);
        ck_assert_uint_eq(policy_denied_uses(policy, mechanisms[i].number), FOR_ANY);
        policy_free(policy);
    }
}

TEST(thousands_of_vendor_numbers_are_each_found)
{
    char *list = malloc(300000), *to = list;
    for (unsigned i = 0; i < 20000; i++)
        to += sprintf(to, "0x%x,", 0x80000000u + 7 * i);
    struct policy *policy = policy_of(list, NULL);
    for (uint64_t i = 0; i < 140000; i++)
        ck_assert_int_eq(denied(policy, 0x80000000u + i) != NULL, i % 7 == 0);
    policy_free(policy);
    free(list);
}

/* "Service.Algorithm" of jdk.crypto.disabledAlgorithms. */
TEST(a_service_limits_an_item_to_its_uses)
{
    static const char text[] =
        "jdk.crypto.disabledAlgorithms=MessageDigest.MD5, KeyStore.JKS, \\\n"
        " signature.SHA1withRSA, Cipher.RSA/ECB/PKCS1Padding, Mac.HmacSHA1, \\\n"
        " MessageDigest.AES, Cipher.AES/CBC/PKCS5Padding, Recipe.DES\n";
    struct policy *policy = policy_of(NULL, text);

    ck_assert_ptr_nonnull(policy_mechanism(policy, ckm("CKM_MD5"), USE_DIGEST));
    ck_assert_ptr_null(policy_mechanism(policy, ckm("CKM_MD5"), USE_SIGN));
    ck_assert_ptr_null(denied(policy, ckm("CKM_MD5_RSA_PKCS")));
    ck_assert_ptr_null(denied(policy, ckm("CKM_SHA_1")));
    ck_assert_ptr_nonnull(policy_mechanism(policy, ckm("CKM_SHA1_RSA_PKCS"), USE_SIGN));
    ck_assert_ptr_nonnull(policy_mechanism(policy, ckm("CKM_RSA_PKCS"), USE_CIPHER));
    ck_assert_ptr_null(policy_mechanism(policy, ckm("CKM_RSA_PKCS"), USE_SIGN));
    ck_assert_ptr_nonnull(policy_mechanism(policy, ckm("CKM_SHA_1_HMAC"), USE_SIGN));
    ck_assert_ptr_null(policy_mechanism(policy, ckm("CKM_SHA_1_KEY_GEN"), USE_OTHER));
    /* What is left of a mechanism's own uses. */
    ck_assert_uint_eq(policy_denied_uses(policy, ckm("CKM_MD5")), FOR_ANY);
    ck_assert_uint_eq(policy_denied_uses(policy, ckm("CKM_RSA_PKCS")), FOR_CIPHER);

    ck_assert_str_eq(policy_no_effect(policy_rule(policy, 1)), "no token has this service");
    ck_assert_str_eq(policy_no_effect(policy_rule(policy, 5)),
                     "no mechanism of this service has it");
    ck_assert_ptr_nonnull(strstr(policy_no_effect(policy_rule(policy, 6)), "Java pads itself"));
    ck_assert_str_eq(policy_no_effect(policy_rule(policy, 7)), "an unknown name");
    policy_free(policy);

    /* Both together are the whole. */
    policy =
        policy_of("RSA keySize < 100", "jdk.crypto.disabledAlgorithms=Signature.RSA, Cipher.RSA\n");
    ck_assert_uint_eq(policy_denied_uses(policy, ckm("CKM_RSA_PKCS")), FOR_ANY);
    ck_assert_ptr_null(policy_mechanism(policy, ckm("CKM_RSA_PKCS_KEY_PAIR_GEN"), USE_OTHER));
    policy_free(policy);
}

TEST(no_policy_permits_everything)
{
    struct key_info key = key_info_of(key_type_find(0));
    key.bits = 1;
    ck_assert_ptr_null(denied(NULL, 0x210));
    ck_assert_ptr_null(policy_name(NULL, "MD5"));
    ck_assert_ptr_null(policy_listed(NULL, "MD5"));
    ck_assert_ptr_null(policy_key(NULL, 0, &key, NULL));
    ck_assert_ptr_null(policy_digest_info(NULL, (const uint8_t *)"", 0));
    ck_assert_uint_eq(policy_min_key_bits(NULL, 0), 0);
    ck_assert_uint_eq(policy_denied_uses(NULL, 0), 0);
    ck_assert_ptr_null(policy_rule(NULL, 0));
    ck_assert_uint_eq(count_of(NULL).items, 0);
    ck_assert(!policy_has_key_rules(NULL));
    policy_free(NULL);
}

int main(void)
{
    return test_main("policy verdicts", NULL, NULL);
}
