/* test_policy_verdicts.c - which mechanisms and names an item denies; and that our tables agree with themselves. */
#include "policy_helper.h"

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
    /* Numbers. */
    {"0X80000142, 0xCE534353", "0x80000142 0xce534353", "0x142 0x80000143 0x4e534353"},
    {"2147483970, 528", "0x80000142 0x210", "0x211 0x80000210 0x142"},
    {"0", "0", "1 0x80000000"},
    {"0x7000", "0x7000", "0x7001"},
    {"0x8000000000000210, 0x100000210", "0x8000000000000210 0x100000210", "0x210 0x100000211"},
    /* What may stand around items. */
    {"MD5 ,\tSHA1", "CKM_MD5 CKM_SHA_1", "CKM_SHA256"},
    {" ckm_MD5 ,,sHa-1,", "CKM_MD5 CKM_SHA_1", "CKM_SHA256"},
    {"  \" MD5,\n\tSha \" ", "CKM_MD5 CKM_SHA_1", "CKM_SHA256"},
    /* Sizes are of keys. */
    {"MD5, RSA keySize < 2048, 0x80001234 keySize < 9", "CKM_MD5", "CKM_RSA_PKCS 0x80001234"},
};

TEST(an_item_denies_the_mechanisms_that_it_stands_for)
{
    static const char *const empty[] = {"", " ,, ", "\"\"", NULL};

    for (size_t i = 0; i < COUNT_OF(verdicts); i++) {
        judges(verdicts[i].list, NULL, true, verdicts[i].denied);
        judges(verdicts[i].list, NULL, false, verdicts[i].permitted);
    }
    for (size_t i = 0; i < COUNT_OF(empty); i++)
        ck_assert_ptr_null(policy_of(empty[i], NULL));
}

TEST(a_mechanism_is_denied_by_its_own_name_and_no_other_with_it)
{
    for (size_t i = 0; i < mechanism_count; i++) {
        char list[64];
        A_POLICY *policy = policy_of(mechanism_name(mechanisms[i].number, list, sizeof list), NULL);
        for (size_t j = 0; j < mechanism_count; j++)
            if ((denied(policy, mechanisms[j].number) != NULL) != (i == j))
                ck_abort_msg("%s and %s", mechanisms[i].names, mechanisms[j].names);
        ck_assert_uint_eq(policy_denied_uses(policy, mechanisms[i].number), FOR_ANY);
    }
}

/* "Service.Algorithm" of jdk.crypto.disabledAlgorithms. What each denies is in tests/policy/services.txt. */
TEST(a_service_limits_an_item_to_its_uses)
{
    A_POLICY *policy =
        policy_of("RSA keySize < 100", "jdk.crypto.disabledAlgorithms=MessageDigest.MD5, \\\n"
                                       "signature.RSA, Cipher.RSA, Cipher.AES/CBC/PKCS5Padding\n");

    ck_assert_ptr_nonnull(policy_mechanism(policy, ckm("CKM_MD5"), USE_DIGEST));
    ck_assert_ptr_null(policy_mechanism(policy, ckm("CKM_MD5"), USE_SIGN));
    ck_assert_ptr_null(policy_mechanism(policy, ckm("CKM_RSA_PKCS_KEY_PAIR_GEN"), USE_OTHER));
    ck_assert_ptr_nonnull(strstr(policy_rule(policy, 4)->no_effect, "Java pads itself"));
    /* Denied for all that they can be used for. */
    ck_assert_uint_eq(policy_denied_uses(policy, ckm("CKM_MD5")), FOR_ANY);
    ck_assert_uint_eq(policy_denied_uses(policy, ckm("CKM_RSA_PKCS")), FOR_ANY);
}

TEST(a_date_denies_from_the_day_after)
{
    static const struct {
        const char *list;
        int64_t last_s; /* the last second in which it is permitted */
    } dated[] = {
        {"MD5 denyAfter 2024-02-29", 1709251199},
        {"MD5 denyAfter 1969-12-31", -1},
        {"MD5 denyafter 2000-12-31 & denyAfter 1999-01-01", 978307199},
    };

    for (size_t i = 0; i < COUNT_OF(dated); i++) {
        now_s = dated[i].last_s;
        A_POLICY *before = policy_of(dated[i].list, NULL);
        now_s++;
        A_POLICY *after = policy_of(dated[i].list, NULL);
        ck_assert_ptr_null(denied(before, ckm("CKM_MD5")));
        ck_assert_ptr_null(policy_name(before, "MD5"));
        ck_assert_str_eq(policy_rule(before, 0)->no_effect, "its date is to come");
        ck_assert_ptr_nonnull(denied(after, ckm("CKM_MD5")));
        ck_assert_ptr_nonnull(policy_name(after, "MD5"));
    }
}

/* Names as the JDK asks about them, between bars. */
static void judges_names(const struct policy *policy, bool denies, const char *names)
{
    char *copy = strdup(names), *rest = copy;
    for (char *name; (name = strsep(&rest, "|")) != NULL;)
        ck_assert_msg((policy_name(policy, name) != NULL) == denies, "'%s'", name);
    free(copy);
}

TEST(names_are_taken_apart_and_have_synonyms)
{
    A_POLICY *policy = policy_of("SHA1, DES, SHA-512, 0x80001234", NULL);
    judges_names(policy, true,
                 "SHA-1|SHA|SHA1withRSA|SHA-1withFoo|FooANDsha1|FooWithBarInDES|DES/Foo/Bar|"
                 "x/y/des|DES/x|SHA1inx|xANDdes|DESwithx|xWithDES|SHA512withRSA|"
                 "CKM_SHA1_RSA_PKCS|ckm_sha_1|0x220|544|0x80001234");
    judges_names(policy, false,
                 "HmacSHA1|SHA256withRSA|wi/DESx|DESX/Foo/Bar|SHA1x|FooPaddingDES|SHA-512/256|"
                 "SHA512/224withRSA|0x80001235|CKM_MD5|99999999999999999999999||/|with");

    A_POLICY *names = NULL;
    ck_assert_int_eq(policy_try(&names, NULL, "names-56.security"), 0);
    judges_names(names, true,
                 "MD5withRSA|md5WithRsa|DES/CBC/PKCS5Padding|3DES_EDE_CBC|RC4|PBEWithMD5AndDES|"
                 "secp256k1|NULL|null|sslv3|anon|X9.62 c2tnb191v1|brainpoolP512r1|ARCFOUR");
    judges_names(names, false,
                 "SHA1withRSA|MD5|MD5withECDSA|DESede/CBC/PKCS5Padding|ECDH|ECDHE|EC|DH|TLS1.3|"
                 "TLSv1.3|HmacMD5|AES/ECB/NoPadding|DSA|RSA|DESede|secp256r1|no such name");
    ck_assert_str_eq(policy_name(names, "PBEWithMD5AndDES")->text, "DES");
    ck_assert_uint_eq(policy_name(names, "brainpoolp512R1")->line, 10);
}

TEST(of_tens_of_thousands_of_items_each_is_found)
{
    enum { NAMES = 56000, NUMBERS = 20000, APART = 7 };
    char *text = malloc(1024 * 1024), *to = text, *list = malloc(300000), *end = list, name[32];

    to += sprintf(to, "jdk.tls.disabledAlgorithms=CKM_MD5");
    for (int i = 0; i < NAMES; i++)
        to += sprintf(to, ",name%d%s", i, i % 3 ? "" : "-longer");
    for (unsigned i = 0; i < NUMBERS; i++)
        end += sprintf(end, "0x%x,", 0x80000000u + APART * i);
    A_POLICY *policy = policy_of(list, text);
    for (uint64_t i = 0; i < NUMBERS * APART; i++)
        if ((denied(policy, 0x80000000u + i) != NULL) != (i % APART == 0))
            ck_abort_msg("0x%llx", 0x80000000ull + i);
    ck_assert(!denied(policy, 0x7fffffff) && !denied(policy, UINT64_MAX));
    for (int i = 0; i < NAMES; i++) {
        sprintf(name, "Name%d%s", i, i % 3 ? "" : "-LONGER");
        if (policy_name(policy, name) != policy_rule(policy, NUMBERS + (size_t)i + 1))
            ck_abort_msg("%s", name);
        strcat(name, "x");
        if (policy_name(policy, name) != NULL)
            ck_abort_msg("%s", name);
    }
    free(list);
    free(text);
}

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
}

TEST(key_types_and_digests_name_mechanisms_that_are_about_them)
{
    for (const struct key_type *type = key_types; type < key_types + key_type_count; type++)
        for (size_t j = 0; j < GENERATORS_MAX; j++) {
            uint64_t generator = type->generators[j];
            if (generator == NO_MECHANISM || (generator == 0 && j != 0))
                continue;
            ck_assert_ptr_eq(key_type_generated(generator), type);
            ck_assert_ptr_nonnull(strstr(mechanism_find(generator)->names, "_GEN"));
        }
    for (const struct digest *digest = digests; digest < digests + digest_count; digest++) {
        const char *atom = strchr(mechanism_find(digest->mechanism)->names, '|') + 1;
        const uint64_t made[] = {digest->rsa, digest->pss, digest->ml_dsa, digest->slh_dsa};
        for (size_t j = 0; j < COUNT_OF(made); j++)
            if (made[j] != 0)
                ck_assert(has_name(mechanism_find(made[j])->names, atom, strcspn(atom, "|")));
        const char *hmac = text_of("Hmac%.*s", (int)strcspn(atom, "|"), atom);
        ck_assert_msg(has_name(mechanism_find(digest->hmac)->names, hmac, strlen(hmac)), "%s",
                      hmac);
    }
}

/* It tells curves apart, but not a curve from its twin in other coordinates. */
TEST(curves_of_one_order_are_twins)
{
    for (size_t i = 0; i < curve_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(curves[i].order, curves[j].order) == 0)
                ck_assert_int_eq(strncmp(strpbrk(curves[i].names, "0123456789"),
                                         strpbrk(curves[j].names, "0123456789"), 3),
                                 0);
}
