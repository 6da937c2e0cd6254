/* test_guard_keys.c - keys by size and curve: judged before they are used or made, and read once until they may have
 * changed. */
#include "fixture.h"
#include "rows.h"

enum { UNKNOWN_MECHANISM = 0x80004711, TEMPLATE_FUNCTIONS = 10 };

static CK_OBJECT_HANDLE made[2];
static CK_MECHANISM mechanism;
static CK_ATTRIBUTE *template;
static CK_ULONG count;
static _Alignas(8) CK_BYTE bytes[64];

static uintptr_t value_of(const char *name, bool is_pointer)
{
    if (strcmp(name, "hSession") == 0)
        return session;
    if (strcmp(name, "pMechanism") == 0)
        return (uintptr_t)&mechanism;
    if (strstr(name, "Template") != NULL)
        return (uintptr_t) template;
    if (strstr(name, "Count") != NULL)
        return count;
    if (strcmp(name, "slotID") == 0 || strcmp(name, "pReserved") == 0)
        return 0;
    if (strstr(name, "Public") != NULL || strstr(name, "Private") != NULL || name[0] == 'h')
        return is_pointer ? (uintptr_t)made : 1;
    if (strcmp(name, "userType") == 0)
        return CKU_USER;
    return is_pointer ? (uintptr_t)bytes : sizeof bytes;
}

static void start_without(const char *item)
{
    script("keyring; interfaces 3.2");
    begin(text_of("x-disabled-algorithms: %s", item));
    list = interface_list(3, 2);
}

static const char denying[] =
    "RSA keySize < 2048, DH keySize < 2048, AES keySize < 256, secp192r1, ML-DSA-44";

static CK_OBJECT_CLASS private_key = CKO_PRIVATE_KEY, certificate = CKO_CERTIFICATE;
static CK_KEY_TYPE rsa = CKK_RSA, dh = CKK_DH, ec = CKK_EC, aes = CKK_AES,
                   generic = CKK_GENERIC_SECRET, ml_dsa = 0x4a;
static CK_ULONG bits_1024 = 1024, bits_2048 = 2048, bytes_16 = 16, bytes_32 = 32, set_44 = 1,
                set_65 = 2;
static CK_BYTE p192[] = "\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x01",
               p256[] = "\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07",
               unknown_curve[] = "\x06\x04\x2b\x81\x04\x7f",
               odd_curve[] = "\x06\x81\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";
static CK_BYTE number_1024[256] = {[128] = 0x80}, number_2047[256] = {0x7f},
               number_2048[256] = {0x80}, much[KEYRING_BYTES];

/* clang-format off */
#define NUMBER(type, value) {type, &value, sizeof value}
#define ARRAY(type, value)  {type, value, sizeof value}
#define DER(type, value)    {type, value, sizeof value - 1}
#define PART(...)           {__VA_ARGS__}

static const struct judged {
    CK_ATTRIBUTE type, weak, strong;
    CK_RV code;
} judged[] = {
    {NUMBER(CKA_KEY_TYPE, rsa), NUMBER(CKA_MODULUS_BITS, bits_1024), NUMBER(CKA_MODULUS_BITS, bits_2048), CKR_KEY_SIZE_RANGE},
    {NUMBER(CKA_KEY_TYPE, rsa), ARRAY(CKA_MODULUS, number_1024), ARRAY(CKA_MODULUS, number_2048), CKR_KEY_SIZE_RANGE},
    {NUMBER(CKA_KEY_TYPE, rsa), ARRAY(CKA_MODULUS, number_1024), NUMBER(CKA_MODULUS_BITS, bits_2048), CKR_KEY_SIZE_RANGE},
    {NUMBER(CKA_KEY_TYPE, dh), ARRAY(CKA_PRIME, number_1024), ARRAY(CKA_PRIME, number_2048), CKR_KEY_SIZE_RANGE},
    {NUMBER(CKA_KEY_TYPE, dh), NUMBER(CKA_PRIME_BITS, bits_1024), NUMBER(CKA_PRIME_BITS, bits_2048), CKR_KEY_SIZE_RANGE},
    {NUMBER(CKA_KEY_TYPE, aes), NUMBER(CKA_VALUE_LEN, bytes_16), NUMBER(CKA_VALUE_LEN, bytes_32), CKR_KEY_SIZE_RANGE},
    {NUMBER(CKA_KEY_TYPE, aes), {CKA_VALUE, number_1024, 16}, {CKA_VALUE, number_1024, 32}, CKR_KEY_SIZE_RANGE},
    {NUMBER(CKA_KEY_TYPE, ml_dsa), NUMBER(CKA_PARAMETER_SET, set_44), NUMBER(CKA_PARAMETER_SET, set_65), CKR_KEY_SIZE_RANGE},
    {NUMBER(CKA_KEY_TYPE, ec), DER(CKA_EC_PARAMS, p192), DER(CKA_EC_PARAMS, p256), CKR_CURVE_NOT_SUPPORTED},
    {NUMBER(CKA_KEY_TYPE, ec), DER(CKA_EC_PARAMS, unknown_curve), DER(CKA_EC_PARAMS, p256), CKR_CURVE_NOT_SUPPORTED},
    {NUMBER(CKA_KEY_TYPE, ec), DER(CKA_EC_PARAMS, odd_curve), DER(CKA_EC_PARAMS, p256), CKR_CURVE_NOT_SUPPORTED},
};
/* clang-format on */

/* Each way for a template to the token. */
static void all_answer(CK_RV rv, CK_ATTRIBUTE *attributes, CK_ULONG attributes_count)
{
    unsigned ways = 0;
    mechanism.mechanism = UNKNOWN_MECHANISM;
    template = attributes;
    count = attributes_count;
    for (const struct row *row = rows; row < rows + FUNCTIONS_3_2; row++) {
        if (strstr(row->parameters, "Template") == NULL ||
            !(is_kind(row, "MECH") || is_kind(row, "EDIT")))
            continue;
        shared->keyring.calls = 0;
        CK_RV got = row->call();
        ck_assert_msg(got == rv, "%s answers 0x%lx, not 0x%lx", row->name, got, rv);
        ck_assert_uint_eq(shared->keyring.calls, rv == CKR_OK);
        ways++;
    }
    ck_assert_uint_eq(ways, TEMPLATE_FUNCTIONS);
}

/* Tokens differ in which of two values they take, so that none of them may be a denied one. */
TEST_EACH(every_value_of_an_attribute_is_judged, 0, COUNT_OF(judged))
{
    const struct judged *row = &judged[_i];
    CK_ATTRIBUTE class = NUMBER(CKA_CLASS, private_key), label = {CKA_LABEL, number_2048, 3};
    CK_ATTRIBUTE weak[] = {class, row->type, label, row->weak},
                 strong[] = {row->strong, class, row->type, label},
                 weak_first[] = {row->weak, class, row->type, row->strong},
                 strong_first[] = {class, row->strong, row->type, row->weak};
    start_without(denying);
    all_answer(row->code, weak, 4);
    all_answer(CKR_OK, strong, 4);
    all_answer(row->code, weak_first, 4);
    all_answer(row->code, strong_first, 4);
}

TEST(every_type_of_a_key_is_judged)
{
    CK_ATTRIBUTE key[] = {NUMBER(CKA_CLASS, private_key), NUMBER(CKA_KEY_TYPE, generic),
                          NUMBER(CKA_KEY_TYPE, aes), NUMBER(CKA_VALUE_LEN, bytes_16)};
    CK_ATTRIBUTE other[] = {key[0], key[2], key[3], key[1]}, one[] = {key[0], key[1], key[3]};
    start_without(denying);
    all_answer(CKR_KEY_SIZE_RANGE, key, 4);
    all_answer(CKR_KEY_SIZE_RANGE, other, 4);
    all_answer(CKR_OK, one, 3);
}

/* A copy or a change without any of it says nothing about the key. */
TEST(an_object_is_judged_if_it_is_a_key_and_its_size_is_told)
{
    CK_ATTRIBUTE key[] = {ARRAY(CKA_MODULUS, number_1024), NUMBER(CKA_CLASS, certificate),
                          NUMBER(CKA_KEY_TYPE, rsa)};
    CK_ATTRIBUTE label = {CKA_LABEL, number_2048, 3}, size = NUMBER(CKA_MODULUS_BITS, bits_1024);
    start_without(denying);
    EXPECT(fn->C_CreateObject(session, key, 2, made), CKR_OK);
    EXPECT(fn->C_CreateObject(session, key, 3, made), CKR_KEY_SIZE_RANGE);
    EXPECT(fn->C_CreateObject(session, NULL, 3, made), CKR_OK);
    EXPECT(fn->C_CopyObject(session, 1, &label, 1, made), CKR_OK);
    EXPECT(fn->C_SetAttributeValue(session, 1, &label, 1), CKR_OK);
    EXPECT(fn->C_CopyObject(session, 1, &size, 1, made), CKR_KEY_SIZE_RANGE);
    EXPECT(fn->C_SetAttributeValue(session, 1, &size, 1), CKR_KEY_SIZE_RANGE);
}

static CK_RV make_pair(CK_MECHANISM_TYPE type, CK_ATTRIBUTE *public, CK_ATTRIBUTE *private)
{
    mechanism.mechanism = type;
    return fn->C_GenerateKeyPair(session, &mechanism, public, public != NULL, private,
                                 private != NULL, made, made + 1);
}

/* The mechanism says what type of key it makes. Where no handle is wanted, templates are judged all the same. */
static const struct {
    CK_MECHANISM_TYPE type;
    CK_ATTRIBUTE attribute;
    CK_RV code;
} typeless[] = {
    {CKM_RSA_PKCS_KEY_PAIR_GEN, NUMBER(CKA_MODULUS_BITS, bits_1024), CKR_KEY_SIZE_RANGE},
    {CKM_RSA_PKCS_KEY_PAIR_GEN, NUMBER(CKA_MODULUS_BITS, bits_2048), CKR_OK},
    {CKM_EC_KEY_PAIR_GEN, DER(CKA_EC_PARAMS, p192), CKR_CURVE_NOT_SUPPORTED},
    {CKM_EC_KEY_PAIR_GEN, DER(CKA_EC_PARAMS, p256), CKR_OK},
    {CKM_AES_KEY_GEN, NUMBER(CKA_VALUE_LEN, bytes_16), CKR_KEY_SIZE_RANGE},
    {CKM_AES_KEY_GEN, NUMBER(CKA_VALUE_LEN, bytes_32), CKR_OK},
    /* What is no value is the token's to judge. */
    {CKM_RSA_PKCS_KEY_PAIR_GEN, {CKA_MODULUS_BITS, &bits_1024, 3}, CKR_OK},
    {CKM_RSA_PKCS_KEY_PAIR_GEN, {CKA_MODULUS_BITS, NULL, 8}, CKR_OK},
};

TEST_EACH(a_template_need_not_say_the_type, 0, COUNT_OF(typeless))
{
    CK_ATTRIBUTE attribute = typeless[_i].attribute;
    CK_RV code = typeless[_i].code;
    start_without(denying);
    EXPECT(make_pair(typeless[_i].type, &attribute, NULL), code);
    EXPECT(make_pair(typeless[_i].type, NULL, &attribute), code);
    EXPECT(fn->C_GenerateKey(session, &mechanism, &attribute, 1, made), code);
    EXPECT(fn->C_GenerateKey(session, &mechanism, &attribute, 1, NULL), code);
    EXPECT(fn->C_DeriveKey(session, &mechanism, 0, &attribute, 1, NULL), code);
    ck_assert_uint_eq(shared->keyring.calls, code == CKR_OK ? 5 : 0);
    EXPECT(fn->C_GenerateKey(session, &mechanism, NULL, 2, NULL), CKR_OK);
}

/* The type may stand in one template of a pair, and the size in the other. */
TEST(both_templates_of_a_pair_are_one)
{
    CK_ATTRIBUTE type = NUMBER(CKA_KEY_TYPE, rsa), small = NUMBER(CKA_MODULUS_BITS, bits_1024);
    start_without(denying);
    EXPECT(make_pair(UNKNOWN_MECHANISM, &small, &type), CKR_KEY_SIZE_RANGE);
    EXPECT(make_pair(UNKNOWN_MECHANISM, &type, &small), CKR_KEY_SIZE_RANGE);
}

static void has_key(CK_KEY_TYPE type, CK_ATTRIBUTE_TYPE attribute, const void *value, size_t len)
{
    shared->keyring.key_type = type;
    shared->keyring.attribute = attribute;
    memcpy(shared->keyring.value, value, len);
    shared->keyring.value_bytes = len;
}

static void has_rsa_key(CK_ULONG bits)
{
    has_key(CKK_RSA, CKA_MODULUS, memset(shared->keyring.value, 0xff, bits / 8), bits / 8);
}

static CK_RV sign_with(CK_MECHANISM_TYPE type, CK_OBJECT_HANDLE key)
{
    return fn->C_SignInit(session, &(CK_MECHANISM){type, NULL, 0}, key);
}

static CK_RV sign(CK_OBJECT_HANDLE key)
{
    return sign_with(CKM_RSA_PKCS, key);
}

/* A length begins at its first bit: behind zeros a number is small. What has no length is denied; a curve that is not
 * known, too, where there are rules about curves; a size that is not known is permitted. */
static const struct {
    const char *item;
    CK_MECHANISM_TYPE type;
    CK_KEY_TYPE key;
    CK_ATTRIBUTE attribute;
    CK_RV code;
} held[] = {
#define RSA_SIZES       "RSA keySize < 2048", CKM_RSA_PKCS, CKK_RSA
#define ON_CURVES(item) item, CKM_ECDSA, CKK_EC
#define ML_DSA_SETS     "ML-DSA-44, secp192r1", 0x1d, 0x4a
    {RSA_SIZES, ARRAY(CKA_MODULUS, number_1024), CKR_KEY_SIZE_RANGE},
    {RSA_SIZES, PART(CKA_MODULUS, number_1024 + 128, 128), CKR_KEY_SIZE_RANGE},
    {RSA_SIZES, ARRAY(CKA_MODULUS, number_2047), CKR_KEY_SIZE_RANGE},
    {RSA_SIZES, ARRAY(CKA_MODULUS, number_2048), CKR_OK},
    {RSA_SIZES, PART(CKA_MODULUS, number_2048, 0), CKR_KEY_SIZE_RANGE},
    {RSA_SIZES, ARRAY(CKA_LABEL, number_1024), CKR_OK},
    {ON_CURVES("RSA keySize < 2048"), DER(CKA_EC_PARAMS, unknown_curve), CKR_OK},
    {ON_CURVES("RSA keySize < 2048"), DER(CKA_EC_PARAMS, p192), CKR_OK},
    {ON_CURVES("secp192r1"), DER(CKA_EC_PARAMS, p192), CKR_CURVE_NOT_SUPPORTED},
    {ON_CURVES("secp192r1"), DER(CKA_EC_PARAMS, p256), CKR_OK},
    {ON_CURVES("secp192r1"), DER(CKA_EC_PARAMS, unknown_curve), CKR_CURVE_NOT_SUPPORTED},
    {ON_CURVES("secp192r1"), PART(CKA_EC_PARAMS, much, KEYRING_BYTES), CKR_CURVE_NOT_SUPPORTED},
    {ON_CURVES("EC keySize < 224"), DER(CKA_EC_PARAMS, p192), CKR_KEY_SIZE_RANGE},
    {ON_CURVES("EC keySize < 224"), DER(CKA_EC_PARAMS, unknown_curve), CKR_CURVE_NOT_SUPPORTED},
    {ML_DSA_SETS, NUMBER(CKA_PARAMETER_SET, set_44), CKR_KEY_SIZE_RANGE},
    {ML_DSA_SETS, NUMBER(CKA_PARAMETER_SET, set_65), CKR_OK},
};

TEST_EACH(a_key_that_is_there_is_judged_before_it_is_used, 0, COUNT_OF(held))
{
    const CK_ATTRIBUTE *attribute = &held[_i].attribute;
    start_without(held[_i].item);
    has_key(held[_i].key, attribute->type, attribute->pValue, attribute->ulValueLen);
    EXPECT(sign_with(held[_i].type, 1), held[_i].code);
    ck_assert_uint_eq(shared->keyring.calls, held[_i].code == CKR_OK);
}

TEST_EACH(a_key_is_read_once_and_only_for_rules_about_keys, 0, 2)
{
    start_without(_i == 0 ? "MD5" : "RSA keySize < 2048");
    has_rsa_key(2048);
    for (int i = 0; i < 10; i++)
        EXPECT(sign(1), CKR_OK);
    ck_assert_uint_eq(shared->keyring.reads, _i == 0 ? 0 : 2);
}

/* A key that was permitted is not permitted to another mechanism, for another purpose, or with other parameters. */
TEST(what_is_permitted_is_so_for_one_mechanism_and_purpose)
{
    CK_RSA_PKCS_OAEP_PARAMS md5 = {.hashAlg = CKM_MD5, .mgf = CKG_MGF1_SHA1};
    CK_MECHANISM decrypts = {CKM_RSA_PKCS, NULL, 0}, plain = {CKM_RSA_PKCS_OAEP, NULL, 0},
                 oaep = {CKM_RSA_PKCS_OAEP, &md5, sizeof md5};
    write_in_root("crypto", "jdk.crypto.disabledAlgorithms=Cipher.RSA/ECB/PKCS1Padding\n");
    start_without(text_of("SHA1withRSA keySize < 4096, RSA keySize < 2048, MD5\n"
                          "x-disabled-algorithms-file: %s",
                          in_root("crypto")));
    has_rsa_key(2048);
    for (int i = 0; i < 3; i++) {
        EXPECT(sign(1), CKR_OK);
        EXPECT(sign_with(CKM_MD5_RSA_PKCS, 1), CKR_MECHANISM_INVALID);
        EXPECT(sign_with(CKM_SHA1_RSA_PKCS, 1), CKR_KEY_SIZE_RANGE);
        EXPECT(fn->C_DecryptInit(session, &decrypts, 1), CKR_MECHANISM_INVALID);
        EXPECT(fn->C_DecryptInit(session, &plain, 1), CKR_OK);
        EXPECT(fn->C_DecryptInit(session, &oaep, 1), CKR_MECHANISM_PARAM_INVALID);
    }
}

/* The handle then stands for another key, which is small. */
TEST(what_may_have_changed_is_read_again)
{
    /* The first closes the last session. */
    static const char *const events[] = {
        "C_CloseSession", "C_CloseSession",  "C_CloseAllSessions",  "C_CreateObject",
        "C_CopyObject",   "C_DestroyObject", "C_SetAttributeValue", "C_Login",
        "C_Logout",       "C_InitToken",     "C_Finalize"};
    start_without("RSA keySize < 2048");
    for (size_t i = 0; i < COUNT_OF(events); i++) {
        has_rsa_key(2048);
        EXPECT(sign(1), CKR_OK);
        EXPECT(row_named(events[i])->call(), CKR_OK);
        has_rsa_key(1024);
        if (strcmp(events[i], "C_Finalize") == 0)
            initialize();
        session = open_session(0, 0);
        ck_assert_msg(sign(1) == CKR_KEY_SIZE_RANGE, "%s", events[i]);
    }
}

static CK_RV derive(CK_MECHANISM_TYPE type, CK_OBJECT_HANDLE from, CK_ATTRIBUTE *key)
{
    mechanism.mechanism = type;
    return fn->C_DeriveKey(session, &mechanism, from, key, key == NULL ? 0 : 2, made);
}

/* No template says how long an unwrapped RSA key is. */
TEST_EACH(a_denied_key_that_was_derived_is_destroyed_again, 0, 2)
{
    start_without(_i == 0 ? "RSA keySize < 2048" : "RSA keySize < 2048\nx-policy: audit");
    has_rsa_key(1024);
    EXPECT(derive(CKM_AES_ECB, 0, NULL), _i == 0 ? CKR_KEY_SIZE_RANGE : CKR_OK);
    ck_assert_uint_eq(made[0], _i == 0 ? CK_INVALID_HANDLE : KEYRING_MADE);
    ck_assert_uint_eq(shared->keyring.destroyed, _i == 0 ? 1 : 0);
    EXPECT(fn->C_DeriveKey(session, &mechanism, 0, NULL, 0, NULL), CKR_OK);
    has_rsa_key(2048);
    EXPECT(derive(CKM_AES_ECB, 0, NULL), CKR_OK);
    ck_assert_uint_eq(made[0], KEYRING_MADE);
}

/* Rules about a mechanism are about the keys that it works with: an AES key from ECDH is no ECDH key. */
TEST(a_derived_key_is_not_measured_by_its_mechanism)
{
    CK_ATTRIBUTE aes_128[] = {NUMBER(CKA_KEY_TYPE, aes), NUMBER(CKA_VALUE_LEN, bytes_16)};
    start_without("ECDH keySize < 224");
    has_key(CKK_EC, CKA_EC_PARAMS, p256, sizeof p256 - 1);
    EXPECT(derive(CKM_ECDH1_DERIVE, 1, aes_128), CKR_OK);
    has_key(CKK_EC, CKA_EC_PARAMS, p192, sizeof p192 - 1);
    EXPECT(derive(CKM_ECDH1_DERIVE, 2, aes_128), CKR_KEY_SIZE_RANGE);
}
