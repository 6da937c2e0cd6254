/* test_policy_verdicts.c - which mechanisms an item denies, and which it leaves alone. */
#include "policy_helper.h"

/* Whether a list denies all of the mechanisms named, and of them alone (only) or among others. */
static void check_list(const char *list, bool denied, const char *names)
{
    struct policy *policy = policy_of(list);

    while (*names) {
        char name[64];
        size_t len = strcspn(names, " ");
        snprintf(name, sizeof name, "%.*s", (int)len, names);
        ck_assert_msg((policy_mechanism(policy, ckm(name)) != NULL) == denied, "%s: %s", list,
                      name);
        names += len + (names[len] == ' ');
    }
    policy_free(policy);
}

#define DENIED  true
#define ALLOWED false

START_TEST(md5_goes_with_all_that_digests_with_it)
{
    check_list("MD5", DENIED,
               "CKM_MD5 CKM_MD5_RSA_PKCS CKM_MD5_KEY_DERIVATION CKM_PBE_MD5_DES_CBC");
    check_list("MD5", ALLOWED,
               "CKM_MD5_HMAC CKM_MD5_HMAC_GENERAL CKM_RSA_PKCS CKM_SHA256_RSA_PKCS CKM_MD2");
}
END_TEST

START_TEST(only_whole_atoms_match)
{
    check_list("DES", DENIED, "CKM_DES_CBC CKM_DES_KEY_GEN CKM_PBE_MD5_DES_CBC");
    check_list("DES", ALLOWED,
               "CKM_DES3_CBC CKM_DES2_KEY_GEN CKM_PBE_SHA1_DES3_EDE_CBC CKM_DES3_KEY_GEN");
    check_list("DSA", DENIED, "CKM_DSA CKM_DSA_SHA1 CKM_DSA_SHA256 CKM_DSA_KEY_PAIR_GEN");
    check_list("DSA", ALLOWED, "CKM_ECDSA CKM_ECDSA_SHA1 CKM_EDDSA CKM_ML_DSA CKM_SLH_DSA");
    check_list("SHA-512", DENIED, "CKM_SHA512 CKM_SHA512_RSA_PKCS CKM_ECDSA_SHA512");
    check_list("SHA-512", ALLOWED, "CKM_SHA512_256 CKM_SHA512_224 CKM_SHA3_512 CKM_SHA512_HMAC");
    check_list("DH", DENIED, "CKM_DH_PKCS_DERIVE CKM_X9_42_DH_DERIVE CKM_DH_PKCS_KEY_PAIR_GEN");
    check_list("DH", ALLOWED, "CKM_ECDH1_DERIVE CKM_EC_KEY_PAIR_GEN");
    check_list("RC4", ALLOWED, "CKM_RC2_CBC CKM_RC5_CBC");
    check_list("CAST5", ALLOWED, "CKM_CAST_CBC CKM_CAST3_CBC");
}
END_TEST

START_TEST(sha1_does_not_take_other_digests_or_hmac_along)
{
    static const char *const names[] = {"SHA1", "SHA-1", "SHA", "sha1", "Sha-1"};

    for (size_t i = 0; i < 5; i++) {
        check_list(names[i], DENIED,
                   "CKM_SHA_1 CKM_SHA1_RSA_PKCS CKM_SHA1_RSA_PKCS_PSS CKM_DSA_SHA1 CKM_ECDSA_SHA1 "
                   "CKM_SHA1_KEY_DERIVATION CKM_SHA1_RSA_X9_31");
        check_list(names[i], ALLOWED,
                   "CKM_RSA_PKCS CKM_RSA_PKCS_PSS CKM_RSA_PKCS_OAEP CKM_SHA256_RSA_PKCS CKM_SHA224 "
                   "CKM_SHA256 "
                   "CKM_SHA512 CKM_SHA_1_HMAC CKM_SHA_1_HMAC_GENERAL CKM_ECDSA CKM_DSA");
    }
    check_list("HmacSHA1", DENIED, "CKM_SHA_1_HMAC CKM_SHA_1_HMAC_GENERAL");
    check_list("HmacSHA1", ALLOWED, "CKM_SHA_1 CKM_SHA1_RSA_PKCS CKM_SHA256_HMAC");
}
END_TEST

START_TEST(digest_twins_are_one)
{
    static const struct {
        const char *one, *other, *name;
    } twins[] = {{"SHA224", "SHA-224", "CKM_SHA224"},
                 {"SHA256", "SHA-256", "CKM_SHA256_RSA_PKCS"},
                 {"SHA384", "SHA-384", "CKM_ECDSA_SHA384"},
                 {"SHA512", "SHA-512", "CKM_DSA_SHA512"},
                 {"SHA512/224", "SHA-512/224", "CKM_SHA512_224"},
                 {"SHA512/256", "SHA-512/256", "CKM_SHA512_256"}};

    for (size_t i = 0; i < sizeof twins / sizeof *twins; i++) {
        check_list(twins[i].one, DENIED, twins[i].name);
        check_list(twins[i].other, DENIED, twins[i].name);
    }
}
END_TEST

START_TEST(two_names_of_one_algorithm_are_one)
{
    check_list("RC4", DENIED, "CKM_RC4 CKM_RC4_KEY_GEN CKM_PBE_SHA1_RC4_128");
    check_list("ARCFOUR", DENIED, "CKM_RC4 CKM_RC4_KEY_GEN CKM_PBE_SHA1_RC4_128");
    check_list("DESede", DENIED, "CKM_DES3_ECB CKM_DES3_KEY_GEN CKM_DES2_KEY_GEN CKM_DES3_CMAC");
    check_list("TripleDES", DENIED, "CKM_DES3_ECB CKM_DES3_KEY_GEN CKM_DES2_KEY_GEN CKM_DES3_CMAC");
    check_list("3DES", DENIED, "CKM_DES3_ECB CKM_DES3_KEY_GEN CKM_DES2_KEY_GEN CKM_DES3_CMAC");
    check_list("DESede", ALLOWED, "CKM_DES_CBC CKM_DES_KEY_GEN");
    check_list("3DES_EDE_CBC", DENIED, "CKM_DES3_CBC CKM_DES3_CBC_PAD");
    check_list("3DES_EDE_CBC", ALLOWED, "CKM_DES3_ECB CKM_DES3_KEY_GEN CKM_DES_CBC");
    check_list("DiffieHellman", DENIED, "CKM_DH_PKCS_DERIVE CKM_X9_42_DH_DERIVE");
    check_list("CAST128", DENIED, "CKM_CAST5_CBC CKM_CAST128_CBC");
    check_list("CKM_CAST128_CBC", DENIED, "CKM_CAST5_CBC");
}
END_TEST

START_TEST(rsa_and_ec_cover_all_of_their_kind)
{
    check_list("RSA", DENIED,
               "CKM_RSA_PKCS CKM_RSA_X_509 CKM_RSA_PKCS_OAEP CKM_RSA_PKCS_PSS CKM_SHA256_RSA_PKCS "
               "CKM_RSA_9796 "
               "CKM_RSA_PKCS_KEY_PAIR_GEN CKM_RSA_AES_KEY_WRAP CKM_SHA3_256_RSA_PKCS_PSS");
    check_list("RSA", ALLOWED, "CKM_ECDSA CKM_AES_CBC CKM_SHA256");
    check_list(
        "EC", DENIED,
        "CKM_EC_KEY_PAIR_GEN CKM_ECDSA CKM_ECDSA_SHA256 CKM_ECDH1_DERIVE CKM_ECDH1_COFACTOR_DERIVE "
        "CKM_ECMQV_DERIVE CKM_ECDH_AES_KEY_WRAP CKM_EDDSA CKM_EC_EDWARDS_KEY_PAIR_GEN "
        "CKM_EC_MONTGOMERY_KEY_PAIR_GEN CKM_XEDDSA");
    check_list("EC", ALLOWED, "CKM_RSA_PKCS CKM_DSA CKM_DH_PKCS_DERIVE CKM_SHA256");
    check_list("ECDSA", ALLOWED, "CKM_ECDH1_DERIVE CKM_EC_KEY_PAIR_GEN CKM_EDDSA");
    check_list("ECDH", DENIED, "CKM_ECDH1_DERIVE CKM_ECDH1_COFACTOR_DERIVE CKM_ECDH_AES_KEY_WRAP");
    check_list("ECDH", ALLOWED, "CKM_ECDSA CKM_EC_KEY_PAIR_GEN CKM_DH_PKCS_DERIVE");
}
END_TEST

START_TEST(names_of_the_whole_deny_the_whole_only)
{
    check_list("MD5withRSA", DENIED, "CKM_MD5_RSA_PKCS");
    check_list("MD5withRSA", ALLOWED, "CKM_MD5 CKM_RSA_PKCS CKM_SHA1_RSA_PKCS");
    check_list("SHA1withECDSA", DENIED, "CKM_ECDSA_SHA1");
    check_list("SHA1withECDSA", ALLOWED, "CKM_ECDSA CKM_ECDSA_SHA256 CKM_SHA_1 CKM_DSA_SHA1");
    check_list("SHA256withRSAandMGF1", DENIED, "CKM_SHA256_RSA_PKCS_PSS");
    check_list("SHA256withRSAandMGF1", ALLOWED, "CKM_SHA256_RSA_PKCS CKM_RSA_PKCS_PSS");
    check_list("AES/ECB/NoPadding", DENIED, "CKM_AES_ECB");
    check_list("AES/ECB/NoPadding", ALLOWED, "CKM_AES_CBC CKM_AES_KEY_GEN CKM_DES_ECB");
    check_list("DES/CBC/PKCS5Padding", DENIED, "CKM_DES_CBC_PAD");
    check_list("PBEWithMD5AndDES", DENIED, "CKM_PBE_MD5_DES_CBC");
    check_list("MD5withECDSA", ALLOWED, "CKM_MD5 CKM_ECDSA CKM_MD5_RSA_PKCS");
    check_list("NONEwithRSA", DENIED, "CKM_RSA_PKCS");
    check_list("NONEwithRSA", ALLOWED, "CKM_RSA_X_509 CKM_SHA256_RSA_PKCS");
}
END_TEST

START_TEST(protocol_versions_are_their_mechanisms)
{
    check_list(
        "SSLv3", DENIED,
        "CKM_SSL3_PRE_MASTER_KEY_GEN CKM_SSL3_MASTER_KEY_DERIVE CKM_SSL3_MASTER_KEY_DERIVE_DH "
        "CKM_SSL3_KEY_AND_MAC_DERIVE CKM_SSL3_MD5_MAC CKM_SSL3_SHA1_MAC");
    check_list("SSLv3", ALLOWED, "CKM_TLS_MASTER_KEY_DERIVE CKM_MD5");
    check_list("TLSv1", DENIED, "CKM_TLS_MASTER_KEY_DERIVE CKM_TLS_KEY_AND_MAC_DERIVE CKM_TLS_PRF");
    check_list("TLSv1.1", DENIED,
               "CKM_TLS_MASTER_KEY_DERIVE CKM_TLS_KEY_AND_MAC_DERIVE CKM_TLS_PRF");
    check_list("TLSv1, TLSv1.1, SSLv3, TLSv1.2", ALLOWED,
               "CKM_TLS12_MASTER_KEY_DERIVE CKM_TLS12_KEY_AND_MAC_DERIVE CKM_TLS12_MAC CKM_TLS_MAC "
               "CKM_TLS_KDF");
}
END_TEST

START_TEST(a_vendor_mechanism_that_has_an_algorithm_goes_with_it)
{
    check_list("SHA3-256", DENIED, "CKM_IBM_SHA3_256 CKM_SHA3_256");
    check_list("ML-KEM", DENIED, "CKM_NSS_ML_KEM CKM_ML_KEM CKM_IBM_ML_KEM");
    check_list("ChaCha20", DENIED, "CKM_NSS_CHACHA20_POLY1305 CKM_CHACHA20_POLY1305");
    check_list("SHA1", DENIED, "CKM_NSS_HKDF_SHA1 CKM_NSS_PBE_SHA1_TRIPLE_DES_CBC");
}
END_TEST

START_TEST(unknown_numbers_are_permitted)
{
    struct policy *policy = policy_of("MD5, SHA1, RSA, EC, AES, 0x80000142, DES");
    static const uint64_t numbers[] = {
        0x7fff,     0x8000,      0x7fffffff,         0x80000143, 0xce534353 + 0x10000,
        0xffffffff, 0x100000210, 0x8000000000000210, UINT64_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        ck_assert_ptr_null(policy_mechanism(policy, numbers[i]));
    policy_free(policy);
}
END_TEST

START_TEST(the_rule_that_denies_is_the_first_and_tells_its_origin)
{
    struct policy *policy = policy_of("RC4, MD5withRSA, MD5, RSA");
    const struct policy_rule *rule = policy_mechanism(policy, ckm("CKM_MD5_RSA_PKCS"));
    ck_assert_str_eq(rule->text, "MD5withRSA");
    ck_assert_str_eq(rule->file, "proxy.module");
    ck_assert_uint_eq(rule->line, 7);
    ck_assert_ptr_null(rule->key);
    ck_assert_ptr_eq(rule, policy_rule(policy, 1));
    ck_assert_str_eq(policy_mechanism(policy, ckm("CKM_RSA_PKCS"))->text, "RSA");
    policy_free(policy);
}
END_TEST

START_TEST(the_bit_and_the_hash_agree_with_the_items_for_every_mechanism)
{
    for (size_t i = 0; i < mechanisms_count; i++) {
        char list[64];
        snprintf(list, sizeof list, "%.*s", (int)strcspn(text_at(mechanisms[i].names), "|"),
                 text_at(mechanisms[i].names));
        struct policy *policy = policy_of(list);
        for (size_t j = 0; j < mechanisms_count; j++)
            ck_assert_int_eq(policy_mechanism(policy, mechanisms[j].number) != NULL, i == j);
        policy_free(policy);
    }
}
END_TEST

START_TEST(thousands_of_vendor_numbers_are_each_found)
{
    char *list = malloc(300000), *to = list;
    for (unsigned i = 0; i < 20000; i++)
        to += sprintf(to, "0x%x,", 0x80000000u + 7 * i);
    struct policy *policy = policy_of(list);
    for (uint64_t i = 0; i < 140000; i++)
        ck_assert_int_eq(policy_mechanism(policy, 0x80000000u + i) != NULL, i % 7 == 0);
    policy_free(policy);
    free(list);
}
END_TEST

START_TEST(no_policy_permits_everything)
{
    ck_assert_ptr_null(policy_mechanism(NULL, 0x210));
    ck_assert_ptr_null(policy_name(NULL, "MD5"));
    ck_assert_ptr_null(policy_key(NULL, 0, 0, 1));
    ck_assert_ptr_null(policy_curve(NULL, (const uint8_t *)"", 0));
    ck_assert_ptr_null(policy_parameter_set(NULL, 0x4a, 1));
    ck_assert_ptr_null(policy_digest_info(NULL, (const uint8_t *)"", 0));
    ck_assert_uint_eq(policy_min_key_bits(NULL, 0), 0);
    ck_assert_uint_eq(policy_rules_count(NULL), 0);
    ck_assert(!policy_has_key_rules(NULL));
    policy_free(NULL);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        md5_goes_with_all_that_digests_with_it,
        only_whole_atoms_match,
        sha1_does_not_take_other_digests_or_hmac_along,
        digest_twins_are_one,
        two_names_of_one_algorithm_are_one,
        rsa_and_ec_cover_all_of_their_kind,
        names_of_the_whole_deny_the_whole_only,
        protocol_versions_are_their_mechanisms,
        a_vendor_mechanism_that_has_an_algorithm_goes_with_it,
        unknown_numbers_are_permitted,
        the_rule_that_denies_is_the_first_and_tells_its_origin,
        the_bit_and_the_hash_agree_with_the_items_for_every_mechanism,
        thousands_of_vendor_numbers_are_each_found,
        no_policy_permits_everything,
    };
    return run_cases("policy verdicts", tests, sizeof tests / sizeof *tests);
}
