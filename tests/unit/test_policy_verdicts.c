/* test_policy_verdicts.c - which mechanisms an item denies; and our tables against other people's headers. */
#include "policy_helper.h"

#include "header_mechanisms.h"

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
    /* Two names of one algorithm. */
    {"SHA1", "CKM_SHA_1 CKM_SHA1_RSA_PKCS CKM_SHA1_RSA_PKCS_PSS CKM_DSA_SHA1 CKM_SHA1_RSA_X9_31",
     "CKM_RSA_PKCS_PSS CKM_RSA_PKCS_OAEP CKM_SHA256_RSA_PKCS CKM_SHA224 CKM_SHA_1_HMAC CKM_ECDSA"},
    {"SHA-512/224", "CKM_SHA512_224", "CKM_SHA512 CKM_SHA224"},
    {"ARCFOUR", "CKM_RC4 CKM_RC4_KEY_GEN CKM_PBE_SHA1_RC4_128", "CKM_RC2_CBC CKM_RC5_CBC"},
    {"TripleDES", "CKM_DES3_ECB CKM_DES3_KEY_GEN CKM_DES2_KEY_GEN CKM_DES3_CMAC", "CKM_DES_CBC"},
    {"CKM_CAST128_CBC", "CKM_CAST5_CBC", "CKM_CAST5_ECB"},
    /* Names of TLS suites' ciphers. */
    {"RC4_128", "CKM_RC4", "CKM_RC2_CBC"},
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
    /* Names of the whole. */
    {"MD5withRSA", "CKM_MD5_RSA_PKCS", "CKM_MD5 CKM_RSA_PKCS CKM_SHA1_RSA_PKCS"},
    {"SHA256withRSAandMGF1", "CKM_SHA256_RSA_PKCS_PSS", "CKM_SHA256_RSA_PKCS CKM_RSA_PKCS_PSS"},
    /* Protocol versions. */
    {"SSLv3",
     "CKM_SSL3_PRE_MASTER_KEY_GEN CKM_SSL3_MASTER_KEY_DERIVE CKM_SSL3_MASTER_KEY_DERIVE_DH "
     "CKM_SSL3_KEY_AND_MAC_DERIVE CKM_SSL3_MD5_MAC CKM_SSL3_SHA1_MAC",
     "CKM_TLS_MASTER_KEY_DERIVE CKM_MD5"},
    {"TLSv1", "CKM_TLS_MASTER_KEY_DERIVE CKM_TLS_KEY_AND_MAC_DERIVE CKM_TLS_PRF",
     "CKM_TLS12_MASTER_KEY_DERIVE CKM_TLS12_MAC CKM_TLS_MAC CKM_TLS_KDF"},
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
    for (size_t i = 0; i < mechanism_count; i++) {
        char list[64];
        struct policy *policy =
            policy_of(mechanism_name(mechanisms[i].number, list, sizeof list), NULL);
        for (size_t j = 0; j < mechanism_count; j++)
            if ((denied(policy, mechanisms[j].number) != NULL) != (i == j))
                ck_abort_msg("%s and %s", mechanisms[i].names, mechanisms[j].names);
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
        if ((denied(policy, 0x80000000u + i) != NULL) != (i % 7 == 0))
            ck_abort_msg("0x%llx", 0x80000000ull + i);
    ck_assert_ptr_null(denied(policy, 0x7fffffff));
    ck_assert_ptr_null(denied(policy, UINT64_MAX));
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

    ck_assert_str_eq(policy_rule(policy, 1)->no_effect, "no token has this service");
    ck_assert_str_eq(policy_rule(policy, 5)->no_effect, "no mechanism of this service has it");
    ck_assert_ptr_nonnull(strstr(policy_rule(policy, 6)->no_effect, "Java pads itself"));
    ck_assert_str_eq(policy_rule(policy, 7)->no_effect, "an unknown name");
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
    ck_assert_ptr_null(policy_key(NULL, 0, &key, NULL));
    ck_assert_ptr_null(policy_digest_info(NULL, (const uint8_t *)"", 0));
    ck_assert_uint_eq(policy_min_key_bits(NULL, 0), 0);
    ck_assert_uint_eq(policy_denied_uses(NULL, 0), 0);
    ck_assert_ptr_null(policy_rule(NULL, 0));
    ck_assert_uint_eq(count_of(NULL).items, 0);
    policy_free(NULL);
}

/* Headers have a name or two for what is no mechanism number. */
static void every_one_is_in_our_table(const struct header_mechanism *theirs)
{
    size_t count = 0;

    for (; theirs->name; theirs++, count++)
        ck_assert_msg(ckm(theirs->name) == theirs->number, "%s is 0x%llx", theirs->name,
                      theirs->number);
    ck_assert_uint_ge(count, 300);
}

TEST(every_mechanism_of_p11_kit_is_in_the_table_with_its_value)
{
    every_one_is_in_our_table(p11_kit_mechanisms);
}

#ifdef HAVE_NSS
TEST(every_mechanism_of_nss_is_in_the_table_with_its_value)
{
    every_one_is_in_our_table(nss_mechanisms);
}
#endif

TEST(no_number_and_no_name_of_a_mechanism_stands_twice)
{
    for (size_t i = 0; i < mechanism_count; i++) {
        const char *name = NULL;
        size_t len;
        ck_assert_ptr_eq(mechanism_find(mechanisms[i].number), &mechanisms[i]);
        ck_assert_msg(strncmp(mechanisms[i].names, "CKM_", 4) == 0, "%s", mechanisms[i].names);
        ck_assert(mechanisms[i].uses != 0);
        while (next_name(mechanisms[i].names, &name, &len))
            for (size_t j = 0; j < mechanism_count && strncmp(name, "CKM_", 4) == 0; j++)
                if (has_name(mechanisms[j].names, name, len) != (i == j))
                    ck_abort_msg("%s and %s", mechanisms[i].names, mechanisms[j].names);
    }
    ck_assert_uint_ge(mechanism_count, 560);
}

TEST(generators_are_known_by_their_keys)
{
    for (size_t i = 0; i < key_type_count; i++) {
        ck_assert_ptr_eq(key_type_find(key_types[i].number), &key_types[i]);
        for (size_t j = 0; j < GENERATORS_MAX; j++) {
            uint64_t generator = key_types[i].generators[j];
            if (generator == NO_MECHANISM || (generator == 0 && j != 0))
                continue;
            ck_assert_ptr_eq(key_type_generated(generator), &key_types[i]);
            ck_assert_ptr_nonnull(strstr(mechanism_find(generator)->names, "_GEN"));
        }
    }
    ck_assert_ptr_null(key_type_generated(NO_MECHANISM));
    ck_assert_ptr_null(key_type_generated(ckm("CKM_RSA_PKCS")));
}

/* It tells curves apart, but not a curve from its twin in other coordinates. */
TEST(curves_of_one_order_are_twins)
{
    for (size_t i = 0; i < curve_count; i++)
        for (size_t j = 0; j < i; j++) {
            const char *one = strpbrk(curves[i].names, "0123456789");
            const char *other = strpbrk(curves[j].names, "0123456789");
            if (strcmp(curves[i].order, curves[j].order) == 0)
                ck_assert_int_eq(strncmp(one, other, 3), 0);
        }
    ck_assert_uint_ge(curve_count, 78);
}

TEST(digests_name_mechanisms_that_are_made_of_them)
{
    for (size_t i = 0; i < digest_count; i++) {
        const struct digest *digest = &digests[i];
        const char *atom = strchr(mechanism_find(digest->mechanism)->names, '|') + 1;
        const uint64_t made[] = {digest->rsa, digest->pss, digest->ml_dsa, digest->slh_dsa};
        char hmac[64];

        ck_assert_ptr_eq(digest_find(digest->mechanism), digest);
        for (size_t j = 0; j < COUNT_OF(made); j++)
            if (made[j] != 0)
                ck_assert(has_name(mechanism_find(made[j])->names, atom, strcspn(atom, "|")));
        snprintf(hmac, sizeof hmac, "Hmac%.*s", (int)strcspn(atom, "|"), atom);
        ck_assert_msg(has_name(mechanism_find(digest->hmac)->names, hmac, strlen(hmac)), "%s",
                      hmac);
    }
}

TEST(case_is_folded_for_letters_alone)
{
    for (int c = 1; c < 256; c++) {
        for (int d = 1; d < 256; d++) {
            bool letters = (c | 0x20) == (d | 0x20) && (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
            char one[] = {'~', (char)c, '\0'}, other[] = {'~', (char)d, '\0'};
            ck_assert_int_eq(same_text(one, other, 2), c == d || letters);
        }
    }
}

int main(void)
{
    return test_main("policy verdicts", NULL, NULL);
}
