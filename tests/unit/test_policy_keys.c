/* test_policy_keys.c - rules about sizes, curves and parameter sets, and what is read as DER. */
#include "policy_helper.h"

enum { RSA = 0x00, DSA = 0x01, DH = 0x02, EC = 0x03, X9_42_DH = 0x04, GENERIC = 0x10, DES = 0x13 };
enum {
    DES2 = 0x14,
    DES3 = 0x15,
    AES = 0x1f,
    SHA256_HMAC = 0x2b,
    EDWARDS = 0x40,
    MONTGOMERY = 0x41
};

/* A list, and whether it denies a key of that size to a mechanism (NULL: on import). */
struct judged {
    const char *list, *mechanism;
    uint64_t type, bits;
    bool denied;
};

static void judge(const struct judged *rows, size_t count)
{
    for (const struct judged *row = rows; row < rows + count; row++) {
        A_POLICY *policy = policy_of(row->list, NULL);
        uint64_t mechanism = row->mechanism ? ckm(row->mechanism) : NO_MECHANISM;
        struct key_info key = key_info_of(key_type_find(row->type));
        bool is_curve;
        key.bits = row->bits;
        bool is_denied = policy_key(policy, mechanism, &key, &is_curve) != NULL;
        ck_assert_msg(is_denied == row->denied && !is_curve, "%s: %s: %llu", row->list,
                      row->mechanism, (unsigned long long)row->bits);
    }
}

TEST(sizes_that_conditions_name_are_denied)
{
    static const struct judged rows[] = {
        {"RSA keySize < 2048", NULL, RSA, 2047, 1},
        {"RSA keySize < 2048", NULL, RSA, 2048, 0},
        {"RSA keySize <= 2048", NULL, RSA, 2048, 1},
        {"RSA keySize <= 2048", NULL, RSA, 2049, 0},
        {"RSA keySize == 2048", NULL, RSA, 2048, 1},
        {"RSA keySize != 2048", NULL, RSA, 2048, 0},
        {"RSA keySize != 2048", NULL, RSA, 2049, 1},
        {"RSA keySize >= 2048", NULL, RSA, 2048, 1},
        {"RSA keySize > 2048", NULL, RSA, 2048, 0},
        {"RSA keySize > 2048", NULL, RSA, UINT64_MAX - 1, 1},
        /* The JDK's: size 0 denies, an unknown one permits. */
        {"RSA keySize > 2048", NULL, RSA, 0, 1},
        {"RSA keySize < 2048", NULL, RSA, BITS_UNKNOWN, 0},
        /* All conditions of an item must be met; items add up. */
        {"RSA keySize >= 1024 & keySize < 2048 & keySize != 1536", NULL, RSA, 1536, 0},
        {"RSA keySize >= 1024 & keySize < 2048 & keySize != 1536", NULL, RSA, 1537, 1},
        {"RSA keySize < 2048 & denyAfter 2099-01-01", NULL, RSA, 1024, 0},
        {"RSA keySize < 1024, RSA keySize == 3072, RSA keySize > 8192", NULL, RSA, 3072, 1},
        {"RSA keySize < 1024, RSA keySize == 3072, RSA keySize > 8192", NULL, RSA, 2048, 0},
    };
    judge(rows, COUNT_OF(rows));
}

TEST(a_key_types_name_is_about_its_keys_and_another_about_its_mechanisms)
{
    static const struct judged rows[] = {
        {"DiffieHellman keySize < 1024", "CKM_DH_PKCS_DERIVE", DH, 768, 1},
        {"DH keySize < 1024", NULL, X9_42_DH, 768, 1},
        {"EC keySize < 224", "CKM_ECDSA", EC, 192, 1},
        {"EC keySize < 256", "CKM_EDDSA", EDWARDS, 253, 0},
        {"EdDSA keySize < 256", "CKM_EDDSA", EDWARDS, 253, 1},
        {"AES keySize < 256", "CKM_RSA_AES_KEY_WRAP", AES, 128, 1},
        {"AES keySize == 192", NULL, AES, 192, 1},
        {"AES keySize == 192", NULL, AES, 128, 0},
        {"AES keySize == 192", NULL, GENERIC, 192, 0},
        {"ECDSA keySize < 256", "CKM_ECDSA_SHA256", EC, 224, 1},
        {"ECDSA keySize < 256", "CKM_ECDH1_DERIVE", EC, 224, 0},
        {"ECDSA keySize < 256", NULL, EC, 224, 0},
        {"SHA1withRSA keySize < 3072", "CKM_SHA1_RSA_PKCS", RSA, 2048, 1},
        {"SHA1withRSA keySize < 3072", "CKM_SHA256_RSA_PKCS", RSA, 2048, 0},
        {"0x1 keySize < 3072", "CKM_RSA_PKCS", RSA, 2048, 1},
        /* HMAC's keys are generic ones, or of a type of their own. */
        {"HmacSHA256 keySize < 128", "CKM_SHA256_HMAC", SHA256_HMAC, 64, 1},
        {"HmacSHA256 keySize < 128", "CKM_SHA256_HMAC", GENERIC, 64, 1},
        {"HMAC keySize < 112", "CKM_SHA_1_HMAC", GENERIC, 111, 1},
        /* One size only, whatever is asked. */
        {"DES keySize < 64", NULL, DES, BITS_UNKNOWN, 1},
        {"DESede keySize < 168", NULL, DES2, 128, 1},
        {"DESede keySize < 168", NULL, DES3, 0, 0},
    };
    judge(rows, COUNT_OF(rows));

    A_POLICY *policy = policy_of("0x80001234 keySize < 3072", NULL);
    struct key_info key = key_info_of(NULL); /* of a type that is in no table */
    key.bits = 2048;
    ck_assert_ptr_nonnull(policy_key(policy, 0x80001234, &key, NULL));
    ck_assert_ptr_null(policy_key(policy, 0x80001235, &key, NULL));
    ck_assert_ptr_null(denied(policy, 0x80001234));
}

TEST(the_smallest_key_is_raised_as_the_rules_demand)
{
    static const struct {
        const char *mechanism;
        uint64_t bits;
    } least[] = {
        {"CKM_RSA_PKCS", 2048},
        {"CKM_MD5_RSA_PKCS", 4096},
        {"CKM_DH_PKCS_DERIVE", 1024},
        {"CKM_ECDH1_DERIVE", 224},
        {"CKM_ECDSA", 256},
        {"CKM_EDDSA", 0},
        {"CKM_AES_CBC", 0},
        {"CKM_DSA_SHA1", BITS_UNKNOWN},
        {"CKM_DES_CBC", BITS_UNKNOWN},
    };
    A_POLICY *policy =
        policy_of("RSA keySize < 2048, DH keySize < 1024, EC keySize < 224, ECDSA keySize <= 255, "
                  "AES keySize == 128, MD5withRSA keySize < 4096, DSA keySize > 0, "
                  "DES keySize < 64",
                  NULL);
    for (size_t i = 0; i < COUNT_OF(least); i++)
        ck_assert_msg(policy_min_key_bits(policy, ckm(least[i].mechanism)) == least[i].bits, "%s",
                      least[i].mechanism);
    ck_assert_uint_eq(policy_min_key_bits(policy, 0x80001234), 0);
}

/* secp192r1, or another group, as explicit parameters with only what is looked at. */
#define EXPLICIT(order)                                                                            \
    "\x30\x2c\x02\x01\x01\x30\x02\x05\x00\x30\x02\x05\x00\x04\x01\x04" order "\x02\x01\x01"
#define ORDER_P192                                                                                 \
    "\x02\x19\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x99\xde\xf8\x36\x14\x6b\xc9\xb1" \
    "\xb4\xd2\x28\x31"
#define ORDER_OTHER                                                                                \
    "\x02\x19\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x99\xde\xf8\x36\x14\x6b\xc9\xb1" \
    "\xb4\xd2\x28\x33"
#define P192       "\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x01"
#define P256       "\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"
#define K256       "\x06\x05\x2b\x81\x04\x00\x0a"
#define WTLS6      "\x06\x05\x67\x2b\x01\x04\x06"
#define ED25519    "\x06\x03\x2b\x65\x70"
#define X25519     "\x06\x03\x2b\x65\x6e"
#define BYTES(der) der, sizeof(der) - 1

/* Whether a list denies the curve in a value of CKA_EC_PARAMS, of which not one byte more may be read. */
static bool curve_denied(const char *list, uint64_t type, const char *der, size_t bytes)
{
    A_POLICY *policy = policy_of(list, NULL);
    struct key_info key = key_info_of(key_type_find(type));
    uint8_t *copy = malloc(bytes + (bytes == 0));
    bool is_curve;
    memcpy(copy, der, bytes);
    key_info_params(&key, copy, bytes);
    free(copy);
    return policy_key(policy, NO_MECHANISM, &key, &is_curve) != NULL;
}

TEST(a_curve_is_denied_by_each_of_its_names_and_in_every_form)
{
    static const struct {
        const char *list;
        uint64_t type;
        const char *der;
        size_t bytes;
        bool denied;
    } rows[] = {
        {"secp192r1", EC, BYTES(P192), 1},
        {"NIST P-192", EC, BYTES(P192), 1},
        {"X9.62  prime192v1", EC, BYTES(P192), 1},
        {"secp192r1", EC, BYTES(P256), 0},
        {"secp256k1", EC, BYTES(K256), 1},
        {"secp112r1", EC, BYTES(WTLS6), 1},
        {"wap-wsg-idm-ecid-wtls6", EC, BYTES("\x06\x05\x2b\x81\x04\x00\x06"), 1},
        {"EC keySize < 224", EC, BYTES(WTLS6), 1},
        {"secp192r1 keySize < 224", EC, BYTES(P192), 1},
        {"secp192r1 keySize < 100, secp256k1", EC, BYTES(P192), 0},
        {"secp192r1", EC, BYTES("\x13\x09secp192r1"), 1},
        {"secp192r1", EC, BYTES("\x0c\x0aprime192v1"), 1},
        {"Ed25519", EDWARDS, BYTES(ED25519), 1},
        {"Ed25519", EDWARDS, BYTES("\x06\x09\x2b\x06\x01\x04\x01\xda\x47\x0f\x01"), 1},
        {"Ed25519", MONTGOMERY, BYTES(X25519), 0},
        {"X25519", MONTGOMERY,
         BYTES("\x13\x0a"
               "curve25519"),
         1},
        {"secp192r1", EC, BYTES(EXPLICIT(ORDER_P192)), 1},
        {"secp192k1", EC, BYTES(EXPLICIT(ORDER_P192)), 0},
        {"EC keySize < 224", EC, BYTES(EXPLICIT(ORDER_P192)), 1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        ck_assert_msg(curve_denied(rows[i].list, rows[i].type, rows[i].der, rows[i].bytes) ==
                          rows[i].denied,
                      "%zu: %s", i, rows[i].list);
}

/* Two curves of one order are one if the parameters are spelled out. */
TEST(a_twin_in_explicit_parameters_is_no_way_out)
{
    for (size_t i = 0; i < curve_count; i++) {
        if (!has_name(curves[i].names, "brainpoolP256r1", strlen("brainpoolP256r1")))
            continue;
        A_POLICY *policy = policy_of("brainpoolP256t1", NULL);
        struct key_info key = {key_type_find(EC), 256, SET_UNKNOWN, &curves[i], true, false};
        ck_assert_ptr_null(policy_key(policy, NO_MECHANISM, &key, NULL));
        key.spelled_out = true;
        ck_assert_ptr_nonnull(policy_key(policy, NO_MECHANISM, &key, NULL));
        return;
    }
    ck_abort_msg("no brainpoolP256r1");
}

TEST(while_curves_are_ruled_an_unknown_one_is_denied)
{
    static const struct {
        const char *der;
        size_t bytes;
    } unknown[] = {{BYTES("")},
                   {BYTES("\x06")},
                   {BYTES("\x05\x00")},                                         /* implicit */
                   {P256, 9},                                                   /* cut off */
                   {BYTES(P256 "\x00")},                                        /* trailing */
                   {BYTES("\x06\x81\x08\x2a\x86\x48\xce\x3d\x03\x01\x07")},     /* long length */
                   {BYTES("\x06\x82\x00\x08\x2a\x86\x48\xce\x3d\x03\x01\x07")}, /* longer */
                   {BYTES("\x06\x80\x2a\x86\x48\xce\x3d\x03\x01\x07\x00\x00")}, /* indefinite */
                   {BYTES("\x1f\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07")},     /* high tag */
                   {BYTES("\x26\x08\x2a\x86\x48\xce\x3d\x03\x01\x07")},         /* constructed */
                   {BYTES("\x06\x84\xff\xff\xff\xff")},
                   {BYTES("\x06\x00")},
                   {BYTES("\x06\x03\x2a\x03\x04")},
                   {BYTES("\x13\x09secp192r2")},
                   {BYTES("\x13\x00")},
                   {BYTES("\x30\x00")},
                   {BYTES(EXPLICIT(ORDER_OTHER))},
                   {BYTES(EXPLICIT("\x02\x81\x01\x07"))}};
    static const char *const ruling[] = {"EC keySize < 224", "secp192r1", "Ed25519",
                                         "ECDSA keySize < 100", "EdDSA keySize < 10"};

    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        for (size_t j = 0; j < COUNT_OF(ruling); j++) {
            ck_assert(curve_denied(ruling[j], EC, unknown[i].der, unknown[i].bytes));
            ck_assert(curve_denied(ruling[j], EDWARDS, unknown[i].der, unknown[i].bytes));
        }
        ck_assert(!curve_denied("RSA keySize < 2048", EC, unknown[i].der, unknown[i].bytes));
    }
    for (size_t bytes = 0; bytes < sizeof EXPLICIT(ORDER_P192) - 1; bytes++)
        ck_assert(curve_denied("secp256k1", EC, EXPLICIT(ORDER_P192), bytes));
    ck_assert(!curve_denied("secp256k1", EC, BYTES(EXPLICIT(ORDER_P192))));

    /* If nothing is said of a key's curve, nothing is known. */
    A_POLICY *policy = policy_of("EC keySize < 224", NULL);
    struct key_info key = key_info_of(key_type_find(EC));
    ck_assert_ptr_null(policy_key(policy, NO_MECHANISM, &key, NULL));
}

#define MD5_INFO                                                                                   \
    "\x30\x20\x30\x0c\x06\x08\x2a\x86\x48\x86\xf7\x0d\x02\x05\x05\x00\x04\x10"                     \
    "0123456789abcdef"
#define MD5_INFO_BARE                                                                              \
    "\x30\x1e\x30\x0a\x06\x08\x2a\x86\x48\x86\xf7\x0d\x02\x05\x04\x10"                             \
    "0123456789abcdef"
#define SHA256_INFO                                                                                \
    "\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20"                 \
    "0123456789abcdef0123456789abcdef"

static bool digest_denied(const char *list, const char *text, const char *data, size_t bytes)
{
    A_POLICY *policy = policy_of(list, text);
    uint8_t *copy = malloc(bytes + (bytes == 0)); /* so that reading too far is seen */
    memcpy(copy, data, bytes);
    bool is = policy_digest_info(policy, copy, bytes) != NULL;
    free(copy);
    return is;
}

/* Which items are about a digest that is signed so is in the tests of the function list. */
TEST(a_denied_digest_is_found_in_a_whole_digest_info_and_in_no_other_data)
{
    static const char digest[] = "jdk.crypto.disabledAlgorithms=MessageDigest.MD5\n",
                      signature[] = "jdk.crypto.disabledAlgorithms=Signature.MD5withRSA\n";

    ck_assert(digest_denied("RSA", NULL, BYTES(MD5_INFO)));
    ck_assert(digest_denied("CKM_MD5", NULL, BYTES(MD5_INFO_BARE)));
    ck_assert(digest_denied("SHA-256", NULL, BYTES(SHA256_INFO)));
    ck_assert(!digest_denied("SHA1, HmacMD5, SHA512, 0x80000001", NULL, BYTES(MD5_INFO)));
    /* A service's digest is no signature. */
    ck_assert(!digest_denied(NULL, digest, BYTES(MD5_INFO)));
    ck_assert(digest_denied(NULL, signature, BYTES(MD5_INFO)));
    for (size_t bytes = 0; bytes < sizeof MD5_INFO - 1; bytes++)
        ck_assert(!digest_denied("MD5", NULL, MD5_INFO, bytes));
    ck_assert(!digest_denied("MD5", NULL, BYTES(MD5_INFO "x")));
}
