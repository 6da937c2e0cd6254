/* test_policy_keys.c - key sizes, curves, parameter sets, and digests inside of signatures. */
#include "policy_helper.h"

#include "policy/der.h"

enum {
    CKK_RSA = 0,
    CKK_DSA = 1,
    CKK_DH = 2,
    CKK_EC = 3,
    CKK_X9_42_DH = 4,
    CKK_GENERIC = 0x10,
    CKK_DES = 0x13,
    CKK_DES2 = 0x14,
    CKK_DES3 = 0x15,
    CKK_AES = 0x1f,
    CKK_EDWARDS = 0x40,
    CKK_ML_KEM = 0x49,
    CKK_ML_DSA = 0x4a
};

static bool key_denied(const char *list, const char *mechanism, uint64_t key_type, uint64_t bits)
{
    struct policy *policy = policy_of(list);
    uint64_t number = mechanism ? ckm(mechanism) : NO_MECHANISM;
    ck_assert(policy_has_key_rules(policy));
    bool denied = policy_key(policy, number, key_type, bits) != NULL;
    policy_free(policy);
    return denied;
}

START_TEST(each_operator_denies_its_sizes)
{
    static const struct {
        const char *condition;
        bool below, equal, above;
    } operators[] = {{"<", 1, 0, 0},  {"<=", 1, 1, 0}, {"==", 0, 1, 0},
                     {"!=", 1, 0, 1}, {">", 0, 0, 1},  {">=", 0, 1, 1}};

    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        char list[64];
        for (int blanks = 0; blanks < 2; blanks++) {
            snprintf(list, sizeof list, blanks ? "rsa  KEYSIZE %s 2048 " : "RSA keySize%s2048",
                     operators[i].condition);
            ck_assert_int_eq(key_denied(list, NULL, CKK_RSA, 2047), operators[i].below);
            ck_assert_int_eq(key_denied(list, NULL, CKK_RSA, 2048), operators[i].equal);
            ck_assert_int_eq(key_denied(list, NULL, CKK_RSA, 2049), operators[i].above);
            ck_assert_int_eq(key_denied(list, NULL, CKK_RSA, 1), operators[i].below);
            ck_assert_int_eq(key_denied(list, NULL, CKK_RSA, 1000000), operators[i].above);
        }
    }
}
END_TEST

START_TEST(a_size_rule_does_not_remove_the_algorithm)
{
    struct policy *policy = policy_of("RSA keySize < 2048");
    for (uint64_t number = 0; number < 0x8000; number++)
        ck_assert_ptr_null(policy_mechanism(policy, number));
    ck_assert_ptr_null(policy_name(policy, "RSA"));
    ck_assert_ptr_nonnull(policy_key(policy, 1, CKK_RSA, 1024));
    ck_assert_str_eq(policy_key(policy, 1, CKK_RSA, 1024)->text, "RSA keySize < 2048");
    ck_assert_ptr_null(policy_key(policy, 1, CKK_RSA, 2048));
    ck_assert_ptr_null(policy_key(policy, 1, CKK_EC, 256));
    policy_free(policy);
}
END_TEST

START_TEST(size_zero_denies_and_unknown_size_permits)
{
    ck_assert(key_denied("RSA keySize < 2048", NULL, CKK_RSA, 0));
    ck_assert(key_denied("RSA keySize > 8192", NULL, CKK_RSA, 0));
    ck_assert(!key_denied("RSA keySize < 2048", NULL, CKK_RSA, POLICY_BITS_UNKNOWN));
    ck_assert(!key_denied("RSA keySize > 8192", NULL, CKK_RSA, POLICY_BITS_UNKNOWN));
    ck_assert(!key_denied("RSA keySize < 2048", NULL, CKK_DSA, 0));
}
END_TEST

START_TEST(all_conditions_of_an_item_must_be_met)
{
    static const char list[] = "RSA keySize >= 1024 & keySize < 2048 & keySize != 1536";
    ck_assert(!key_denied(list, NULL, CKK_RSA, 1023));
    ck_assert(key_denied(list, NULL, CKK_RSA, 1024));
    ck_assert(!key_denied(list, NULL, CKK_RSA, 1536));
    ck_assert(key_denied(list, NULL, CKK_RSA, 2047));
    ck_assert(!key_denied(list, NULL, CKK_RSA, 2048));
    ck_assert(key_denied("RSA keySize < 2048 & denyAfter 2020-01-01", NULL, CKK_RSA, 1024));

    struct policy *policy =
        policy_of("RSA keySize < 2048 & denyAfter 2099-01-01, DSA keySize < 9 & keySize > 9");
    ck_assert(!policy_has_key_rules(policy));
    ck_assert_ptr_null(policy_key(policy, 1, CKK_RSA, 1024));
    policy_free(policy);
}
END_TEST

START_TEST(items_of_one_name_add_up)
{
    static const char list[] =
        "RSA keySize < 1024, RSA keySize == 3072, RSA keySize > 8192, RSA keySize < 512, "
        "RSA keySize >= 2000 & keySize <= 2010, RSA keySize >= 2005 & keySize <= 2047";
    static const struct {
        uint64_t bits;
        bool denied;
    } sizes[] = {{1, 1},    {512, 1},  {1023, 1}, {1024, 0}, {1999, 0},
                 {2000, 1}, {2007, 1}, {2030, 1}, {2047, 1}, {2048, 0},
                 {3071, 0}, {3072, 1}, {3073, 0}, {8192, 0}, {8193, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        ck_assert_int_eq(key_denied(list, NULL, CKK_RSA, sizes[i].bits), sizes[i].denied);
}
END_TEST

START_TEST(a_key_type_is_spoken_of_whatever_the_mechanism)
{
    ck_assert(key_denied("DH keySize < 1024", NULL, CKK_DH, 768));
    ck_assert(key_denied("DiffieHellman keySize < 1024", "CKM_DH_PKCS_DERIVE", CKK_DH, 768));
    ck_assert(key_denied("DH keySize < 1024", NULL, CKK_X9_42_DH, 768));
    ck_assert(key_denied("EC keySize < 224", "CKM_ECDSA", CKK_EC, 192));
    ck_assert(!key_denied("EC keySize < 224", "CKM_ECDSA", CKK_EC, 224));
    ck_assert(!key_denied("EC keySize < 256", "CKM_EDDSA", CKK_EDWARDS, 253));
    ck_assert(key_denied("EdDSA keySize < 256", "CKM_EDDSA", CKK_EDWARDS, 253));
    ck_assert(key_denied("AES keySize < 256", "CKM_RSA_AES_KEY_WRAP", CKK_AES, 128));
}
END_TEST

START_TEST(any_other_name_speaks_of_its_mechanisms)
{
    ck_assert(key_denied("ECDSA keySize < 256", "CKM_ECDSA_SHA256", CKK_EC, 224));
    ck_assert(!key_denied("ECDSA keySize < 256", "CKM_ECDH1_DERIVE", CKK_EC, 224));
    ck_assert(!key_denied("ECDSA keySize < 256", NULL, CKK_EC, 224));
    ck_assert(key_denied("SHA1withRSA keySize < 3072", "CKM_SHA1_RSA_PKCS", CKK_RSA, 2048));
    ck_assert(!key_denied("SHA1withRSA keySize < 3072", "CKM_SHA256_RSA_PKCS", CKK_RSA, 2048));
    ck_assert(key_denied("CKM_RSA_PKCS keySize < 3072", "CKM_RSA_PKCS", CKK_RSA, 2048));
    ck_assert(!key_denied("CKM_RSA_PKCS keySize < 3072", "CKM_RSA_X_509", CKK_RSA, 2048));
    ck_assert(key_denied("0x1 keySize < 3072", "CKM_RSA_PKCS", CKK_RSA, 2048));
    ck_assert(key_denied("HmacSHA256 keySize < 128", "CKM_SHA256_HMAC", 0x2b, 64));

    struct policy *policy = policy_of("0x80001234 keySize < 3072");
    ck_assert_ptr_nonnull(policy_key(policy, 0x80001234, CKK_GENERIC, 2048));
    ck_assert_ptr_null(policy_key(policy, 0x80001235, CKK_GENERIC, 2048));
    ck_assert_ptr_null(policy_mechanism(policy, 0x80001234));
    policy_free(policy);
}
END_TEST

START_TEST(keys_of_one_size_have_it_whatever_is_asked)
{
    ck_assert(key_denied("DES keySize < 64", NULL, CKK_DES, POLICY_BITS_UNKNOWN));
    ck_assert(key_denied("DESede keySize < 168", NULL, CKK_DES2, 128));
    ck_assert(!key_denied("DESede keySize < 168", NULL, CKK_DES3, 0));
}
END_TEST

START_TEST(aes_with_a_size_in_its_name_is_that_size)
{
    ck_assert(key_denied("AES_128", NULL, CKK_AES, 128));
    ck_assert(!key_denied("AES_128", NULL, CKK_AES, 256));
    ck_assert(!key_denied("aes_256", NULL, CKK_AES, 128));
    ck_assert(!denies("AES_128", 0x1082));
    ck_assert_ptr_nonnull(strstr(refusal_of("AES_129"), "'AES_129'"));
}
END_TEST

START_TEST(the_smallest_key_is_raised_as_the_rules_demand)
{
    struct policy *policy =
        policy_of("RSA keySize < 2048, DH keySize < 1024, EC keySize < 224, ECDSA keySize <= 255, "
                  "AES keySize == 128, MD5withRSA keySize < 4096, DSA keySize > 0, "
                  "DES keySize < 64, CKM_SHA256 keySize < 7, Blowfish keySize > 400");
    ck_assert_uint_eq(policy_min_key_bits(policy, ckm("CKM_RSA_PKCS")), 2048);
    ck_assert_uint_eq(policy_min_key_bits(policy, ckm("CKM_RSA_AES_KEY_WRAP")), 2048);
    ck_assert_uint_eq(policy_min_key_bits(policy, ckm("CKM_MD5_RSA_PKCS")), 4096);
    ck_assert_uint_eq(policy_min_key_bits(policy, ckm("CKM_DH_PKCS_DERIVE")), 1024);
    ck_assert_uint_eq(policy_min_key_bits(policy, ckm("CKM_ECDH1_DERIVE")), 224);
    ck_assert_uint_eq(policy_min_key_bits(policy, ckm("CKM_ECDSA")), 256);
    ck_assert_uint_eq(policy_min_key_bits(policy, ckm("CKM_EDDSA")), 0);
    ck_assert_uint_eq(policy_min_key_bits(policy, ckm("CKM_AES_CBC")), 0);
    ck_assert_uint_eq(policy_min_key_bits(policy, ckm("CKM_DSA_SHA1")), POLICY_BITS_UNKNOWN);
    ck_assert_uint_eq(policy_min_key_bits(policy, ckm("CKM_DES_CBC")), POLICY_BITS_UNKNOWN);
    ck_assert_uint_eq(policy_min_key_bits(policy, ckm("CKM_BLOWFISH_CBC")), 0);
    ck_assert_uint_eq(policy_min_key_bits(policy, ckm("CKM_SHA256")), 7);
    ck_assert_uint_eq(policy_min_key_bits(policy, ckm("CKM_SHA512")), 0);
    ck_assert_uint_eq(policy_min_key_bits(policy, 0x80001234), 0);
    policy_free(policy);
}
END_TEST

static bool curve_denied(const char *list, const char *params, size_t bytes)
{
    struct policy *policy = policy_of(list);
    bool denied = policy_curve(policy, (const uint8_t *)params, bytes) != NULL;
    policy_free(policy);
    return denied;
}
#define CURVE_DENIED(list, params) curve_denied(list, params, sizeof(params) - 1)

#define P192 "\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x01"
#define P256 "\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"
#define K256 "\x06\x05\x2b\x81\x04\x00\x0a"

START_TEST(a_curve_is_denied_by_each_of_its_names)
{
    ck_assert(CURVE_DENIED("secp192r1", P192));
    ck_assert(CURVE_DENIED("SECP192R1", P192));
    ck_assert(CURVE_DENIED("NIST P-192", P192));
    ck_assert(CURVE_DENIED("X9.62  prime192v1", P192));
    ck_assert(CURVE_DENIED("prime192v1", P192));
    ck_assert(!CURVE_DENIED("secp192r1", P256));
    ck_assert(!CURVE_DENIED("secp192k1", P192));
    ck_assert(!CURVE_DENIED("secp256k1", P256));
    ck_assert(CURVE_DENIED("secp256k1", K256));
}
END_TEST

START_TEST(a_curve_is_recognised_in_every_form)
{
    ck_assert(CURVE_DENIED("secp192r1", "\x13\x09secp192r1"));
    ck_assert(CURVE_DENIED("secp192r1", "\x0c\x09secp192r1"));
    ck_assert(CURVE_DENIED("secp192r1", "\x13\x0aprime192v1"));
    ck_assert(!CURVE_DENIED("secp192r1", "\x13\x09secp192r2"));
    ck_assert(CURVE_DENIED("Ed25519", "\x13\x0c"
                                      "edwards25519"));
    ck_assert(CURVE_DENIED("Ed25519", "\x06\x03\x2b\x65\x70"));
    ck_assert(CURVE_DENIED("Ed25519", "\x06\x09\x2b\x06\x01\x04\x01\xda\x47\x0f\x01"));
    ck_assert(!CURVE_DENIED("Ed25519", "\x06\x03\x2b\x65\x71"));
    ck_assert(CURVE_DENIED("X25519", "\x13\x0a"
                                     "curve25519"));
    /* The length written in two bytes: no DER, but a token may take it. */
    ck_assert(CURVE_DENIED("secp192r1", "\x06\x81\x08\x2a\x86\x48\xce\x3d\x03\x01\x01"));
}
END_TEST

/* secp192r1 as explicit parameters, with only what is looked at. */
#define EXPLICIT(order)                                                                            \
    "\x30\x2c\x02\x01\x01\x30\x02\x05\x00\x30\x02\x05\x00\x04\x01\x04" order "\x02\x01\x01"
#define ORDER_P192                                                                                 \
    "\x02\x19\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x99\xde\xf8\x36\x14\x6b\xc9\xb1" \
    "\xb4\xd2\x28\x31"
#define ORDER_OTHER                                                                                \
    "\x02\x19\x00\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x99\xde\xf8\x36\x14\x6b\xc9\xb1" \
    "\xb4\xd2\x28\x31"

START_TEST(explicit_parameters_are_recognised_by_their_order)
{
    static const uint8_t known[] = EXPLICIT(ORDER_P192), other[] = EXPLICIT(ORDER_OTHER);
    struct curve_params params = curve_params_read(known, sizeof known - 1);

    ck_assert_str_eq(text_at(params.curve->name), "secp192r1");
    ck_assert_uint_eq(params.order_bits, 192);
    ck_assert(CURVE_DENIED("secp192r1", EXPLICIT(ORDER_P192)));
    ck_assert(!CURVE_DENIED("secp192k1", EXPLICIT(ORDER_P192)));
    params = curve_params_read(other, sizeof other - 1);
    ck_assert_ptr_null(params.curve);
    ck_assert_uint_eq(params.order_bits, 191);
}
END_TEST

START_TEST(the_bits_of_a_curve_are_those_of_its_order)
{
    static const uint8_t k1[] = "\x06\x05\x2b\x81\x04\x00\x20",
                         r1[] = "\x06\x05\x2b\x81\x04\x00\x22";
    ck_assert_uint_eq(curve_params_read(k1, sizeof k1 - 1).order_bits, 225);
    ck_assert_uint_eq(curve_params_read(r1, sizeof r1 - 1).order_bits, 384);
}
END_TEST

START_TEST(params_that_are_not_understood_are_unknown)
{
    static const uint8_t whole[] = EXPLICIT(ORDER_P192);
    static const struct {
        const char *der;
        size_t bytes;
    } bad[] = {{"", 0},
               {"\x06", 1},
               {P192, 9},
               {P192 "\x00", 11},
               {"\x05\x00", 2},
               {"\x13\x80"
                "a",
                3},
               {"\x06\x84\xff\xff\xff\xff", 6},
               {"\x06\x00", 2},
               {"\x13\x00", 2},
               {"\x30\x00", 2}};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct curve_params params = curve_params_read((const uint8_t *)bad[i].der, bad[i].bytes);
        ck_assert_ptr_null(params.curve);
        ck_assert_uint_eq(params.order_bits, POLICY_BITS_UNKNOWN);
    }
    for (size_t bytes = 0; bytes < sizeof whole - 1; bytes++) {
        uint8_t *cut = malloc(bytes + 1);
        memcpy(cut, whole, bytes);
        ck_assert_ptr_null(curve_params_read(cut, bytes).curve);
        free(cut);
    }
    ck_assert_ptr_null(curve_params_read(NULL, 0).curve);
}
END_TEST

START_TEST(an_element_that_is_longer_than_its_bytes_is_not_taken)
{
    static const struct {
        const char *bytes;
        size_t len_bytes;
    } bad[] = {{"\x06\x02\x2a", 3},
               {"\x06\x7f\x2a\x00", 4},
               {"\x06\x81\x02\x2a", 4},
               {"\x06\x82\x00", 3},
               {"\x06\x84\xff\xff\xff\xff\x00", 7},
               {"\x06\x85\x00\x00\x00\x00\x01\x2a", 8},
               {"\x06\x80\x00\x00", 4}};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct der in = {(const uint8_t *)bad[i].bytes, bad[i].len_bytes}, content;
        uint8_t tag;
        ck_assert(!der_take(&in, &tag, &content));
        ck_assert_ptr_eq(in.bytes, bad[i].bytes);
        ck_assert_uint_eq(in.len_bytes, bad[i].len_bytes);
    }
}
END_TEST

START_TEST(a_curve_item_is_a_key_rule_and_denies_no_mechanism)
{
    struct policy *policy = policy_of("secp192r1, Ed25519");
    ck_assert(policy_has_key_rules(policy));
    ck_assert_ptr_null(policy_mechanism(policy, ckm("CKM_ECDSA")));
    ck_assert_ptr_null(policy_mechanism(policy, ckm("CKM_EDDSA")));
    policy_free(policy);
    policy = policy_of("MD5");
    ck_assert(!policy_has_key_rules(policy));
    policy_free(policy);
}
END_TEST

START_TEST(a_parameter_set_is_denied_by_name)
{
    struct policy *policy = policy_of("ML-KEM-512, ml-dsa-44");
    ck_assert(policy_has_key_rules(policy));
    ck_assert_ptr_nonnull(policy_parameter_set(policy, CKK_ML_KEM, 1));
    ck_assert_ptr_null(policy_parameter_set(policy, CKK_ML_KEM, 2));
    ck_assert_ptr_nonnull(policy_parameter_set(policy, CKK_ML_DSA, 1));
    ck_assert_ptr_null(policy_parameter_set(policy, CKK_ML_DSA, 3));
    ck_assert_ptr_null(policy_parameter_set(policy, CKK_RSA, 1));
    ck_assert_ptr_null(policy_mechanism(policy, ckm("CKM_ML_KEM")));
    policy_free(policy);
}
END_TEST

#define MD5_INFO                                                                                   \
    "\x30\x20\x30\x0c\x06\x08\x2a\x86\x48\x86\xf7\x0d\x02\x05\x05\x00\x04\x10"                     \
    "0123456789abcdef"
#define MD5_INFO_BARE                                                                              \
    "\x30\x1e\x30\x0a\x06\x08\x2a\x86\x48\x86\xf7\x0d\x02\x05\x04\x10"                             \
    "0123456789abcdef"
#define SHA256_INFO                                                                                \
    "\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20"                 \
    "0123456789abcdef0123456789abcdef"

static bool digest_denied(const char *list, const char *data, size_t bytes)
{
    struct policy *policy = policy_of(list);
    uint8_t *copy = malloc(bytes + 1); /* so that a reader who goes too far is seen */
    memcpy(copy, data, bytes);
    bool denied = policy_digest_info(policy, copy, bytes) != NULL;
    free(copy);
    policy_free(policy);
    return denied;
}
#define DIGEST_DENIED(list, data) digest_denied(list, data, sizeof(data) - 1)

START_TEST(a_denied_digest_is_found_in_a_digest_info)
{
    static const char *const lists[] = {"MD5", "MD5withRSA", "CKM_MD5", "CKM_MD5_RSA_PKCS", "RSA"};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        ck_assert(DIGEST_DENIED(lists[i], MD5_INFO));
        ck_assert(DIGEST_DENIED(lists[i], MD5_INFO_BARE));
    }
    ck_assert(!DIGEST_DENIED("MD5", SHA256_INFO));
    ck_assert(!DIGEST_DENIED("SHA1, HmacMD5, SHA512, 0x80000001", MD5_INFO));
    ck_assert(DIGEST_DENIED("SHA-256", SHA256_INFO));
}
END_TEST

START_TEST(data_that_is_no_digest_info_is_left_alone)
{
    for (size_t bytes = 0; bytes < sizeof MD5_INFO - 1; bytes++)
        ck_assert(!digest_denied("MD5", MD5_INFO, bytes));
    ck_assert(!DIGEST_DENIED("MD5", MD5_INFO "x"));
    ck_assert(!DIGEST_DENIED("MD5", "MD5"));
    ck_assert(!DIGEST_DENIED("MD5", "\x30\x80\x30\x80\x00\x00"));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        each_operator_denies_its_sizes,
        a_size_rule_does_not_remove_the_algorithm,
        size_zero_denies_and_unknown_size_permits,
        all_conditions_of_an_item_must_be_met,
        items_of_one_name_add_up,
        a_key_type_is_spoken_of_whatever_the_mechanism,
        any_other_name_speaks_of_its_mechanisms,
        keys_of_one_size_have_it_whatever_is_asked,
        aes_with_a_size_in_its_name_is_that_size,
        the_smallest_key_is_raised_as_the_rules_demand,
        a_curve_is_denied_by_each_of_its_names,
        a_curve_is_recognised_in_every_form,
        explicit_parameters_are_recognised_by_their_order,
        the_bits_of_a_curve_are_those_of_its_order,
        params_that_are_not_understood_are_unknown,
        an_element_that_is_longer_than_its_bytes_is_not_taken,
        a_curve_item_is_a_key_rule_and_denies_no_mechanism,
        a_parameter_set_is_denied_by_name,
        a_denied_digest_is_found_in_a_digest_info,
        data_that_is_no_digest_info_is_left_alone,
    };
    return run_cases("policy keys", tests, sizeof tests / sizeof *tests);
}
