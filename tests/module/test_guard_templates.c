/* test_guard_templates.c - a key that is to be made is judged by its template, before the token hears of it. */
#include "fixture.h"

#include <stdint.h>
#include <string.h>

#include "keyring.h"

enum { UNKNOWN_MECHANISM = 0x80004711, ATTRIBUTES_MOST = 8 };

static struct keyring *keyring;
static const struct p11_functions *list;
static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE made[2];

static const char denying[] = "x-disabled-algorithms: RSA keySize < 2048, DH keySize < 2048, AES "
                              "keySize < 256, secp192r1, ML-DSA-44";

static void start(const char *settings)
{
    proxy_before("keyring", settings);
    keyring = target_symbol("keyring");
    list = interface_list(3, 2);
    initialize();
    session = open_session(0, 0);
}

/* Each way for a template to the token. */
enum way {
    GENERATE,
    PAIR_PUBLIC,
    PAIR_PRIVATE,
    CREATE,
    COPY,
    SET_ATTRIBUTES,
    DERIVE,
    UNWRAP,
    UNWRAP_AUTHENTICATED,
    ENCAPSULATE,
    DECAPSULATE,
    WAYS
};

static CK_RV make_by(enum way way, CK_MECHANISM_TYPE type, CK_ATTRIBUTE *template, CK_ULONG count)
{
    CK_MECHANISM mechanism = {type, NULL, 0};
    CK_BYTE bytes[16] = {0};
    CK_ULONG bytes_count = sizeof bytes;
    switch (way) {
    case GENERATE:
        return list->C_GenerateKey(session, &mechanism, template, count, made);
    case PAIR_PUBLIC:
        return list->C_GenerateKeyPair(session, &mechanism, template, count, NULL, 0, made,
                                       made + 1);
    case PAIR_PRIVATE:
        return list->C_GenerateKeyPair(session, &mechanism, NULL, 0, template, count, made,
                                       made + 1);
    case CREATE:
        return list->C_CreateObject(session, template, count, made);
    case COPY:
        return list->C_CopyObject(session, 1, template, count, made);
    case SET_ATTRIBUTES:
        return list->C_SetAttributeValue(session, 1, template, count);
    case DERIVE:
        return list->C_DeriveKey(session, &mechanism, 1, template, count, made);
    case UNWRAP:
        return list->C_UnwrapKey(session, &mechanism, 1, bytes, sizeof bytes, template, count,
                                 made);
    case UNWRAP_AUTHENTICATED:
        return list->C_UnwrapKeyAuthenticated(session, &mechanism, 1, bytes, sizeof bytes, template,
                                              count, bytes, sizeof bytes, made);
    case ENCAPSULATE:
        return list->C_EncapsulateKey(session, &mechanism, 1, template, count, bytes, &bytes_count,
                                      made);
    default:
        return list->C_DecapsulateKey(session, &mechanism, 1, template, count, bytes, sizeof bytes,
                                      made);
    }
}

static void all_answer(CK_RV rv, CK_ATTRIBUTE *template, CK_ULONG count)
{
    for (enum way way = 0; way < WAYS; way++) {
        keyring->calls = 0;
        CK_RV got = make_by(way, UNKNOWN_MECHANISM, template, count);
        ck_assert_msg(got == rv, "way %d answers 0x%lx, not 0x%lx", way, got, rv);
        ck_assert_uint_eq(keyring->calls, rv == CKR_OK);
    }
}

static CK_OBJECT_CLASS private_key = CKO_PRIVATE_KEY, certificate = CKO_CERTIFICATE;
static CK_KEY_TYPE rsa = CKK_RSA, dh = CKK_DH, ec = CKK_EC, aes = CKK_AES,
                   generic = CKK_GENERIC_SECRET, ml_dsa = 0x4a;
static CK_ULONG bits_1024 = 1024, bits_2048 = 2048, bytes_16 = 16, bytes_32 = 32, set_44 = 1,
                set_65 = 2;
static CK_BYTE p192[] = "\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x01",
               p256[] = "\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07",
               unknown_curve[] = "\x06\x04\x2b\x81\x04\x7f",
               odd_curve[] = "\x06\x81\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";
static CK_BYTE number_1024[256] = {[128] = 0x80}, number_2048[256] = {0x80};

#define NUMBER(type, value)                                                                        \
    {                                                                                              \
        type, &value, sizeof value                                                                 \
    }
#define ARRAY(type, value)                                                                         \
    {                                                                                              \
        type, value, sizeof value                                                                  \
    }
#define DER(type, value)                                                                           \
    {                                                                                              \
        type, value, sizeof value - 1                                                              \
    }

static const struct judged {
    CK_ATTRIBUTE type, weak, strong;
    CK_RV code;
} judged[] = {
    {NUMBER(CKA_KEY_TYPE, rsa), NUMBER(CKA_MODULUS_BITS, bits_1024),
     NUMBER(CKA_MODULUS_BITS, bits_2048), CKR_KEY_SIZE_RANGE},
    {NUMBER(CKA_KEY_TYPE, rsa), ARRAY(CKA_MODULUS, number_1024), ARRAY(CKA_MODULUS, number_2048),
     CKR_KEY_SIZE_RANGE},
    {NUMBER(CKA_KEY_TYPE, rsa), ARRAY(CKA_MODULUS, number_1024),
     NUMBER(CKA_MODULUS_BITS, bits_2048), CKR_KEY_SIZE_RANGE},
    {NUMBER(CKA_KEY_TYPE, dh), ARRAY(CKA_PRIME, number_1024), ARRAY(CKA_PRIME, number_2048),
     CKR_KEY_SIZE_RANGE},
    {NUMBER(CKA_KEY_TYPE, dh), NUMBER(CKA_PRIME_BITS, bits_1024), NUMBER(CKA_PRIME_BITS, bits_2048),
     CKR_KEY_SIZE_RANGE},
    {NUMBER(CKA_KEY_TYPE, aes), NUMBER(CKA_VALUE_LEN, bytes_16), NUMBER(CKA_VALUE_LEN, bytes_32),
     CKR_KEY_SIZE_RANGE},
    {NUMBER(CKA_KEY_TYPE, aes),
     {CKA_VALUE, number_1024, 16},
     {CKA_VALUE, number_1024, 32},
     CKR_KEY_SIZE_RANGE},
    {NUMBER(CKA_KEY_TYPE, ml_dsa), NUMBER(CKA_PARAMETER_SET, set_44),
     NUMBER(CKA_PARAMETER_SET, set_65), CKR_KEY_SIZE_RANGE},
    {NUMBER(CKA_KEY_TYPE, ec), DER(CKA_EC_PARAMS, p192), DER(CKA_EC_PARAMS, p256),
     CKR_CURVE_NOT_SUPPORTED},
    {NUMBER(CKA_KEY_TYPE, ec), DER(CKA_EC_PARAMS, unknown_curve), DER(CKA_EC_PARAMS, p256),
     CKR_CURVE_NOT_SUPPORTED},
    {NUMBER(CKA_KEY_TYPE, ec), DER(CKA_EC_PARAMS, odd_curve), DER(CKA_EC_PARAMS, p256),
     CKR_CURVE_NOT_SUPPORTED},
};
enum { JUDGED = sizeof judged / sizeof *judged };

/* Tokens differ in which of two values they take, so that none of them may be a denied one. */
TEST_EACH(every_value_of_an_attribute_is_judged, 0, JUDGED)
{
    const struct judged *row = &judged[_i];
    CK_ATTRIBUTE class = NUMBER(CKA_CLASS, private_key), label = {CKA_LABEL, number_2048, 3};
    CK_ATTRIBUTE weak[] = {class, row->type, label, row->weak},
                 strong[] = {row->strong, class, row->type, label},
                 weak_first[] = {row->weak, class, row->type, row->strong},
                 strong_first[] = {class, row->strong, row->type, row->weak};
    start(denying);
    all_answer(row->code, weak, 4);
    all_answer(CKR_OK, strong, 4);
    all_answer(row->code, weak_first, 4);
    all_answer(row->code, strong_first, 4);
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
}

TEST(every_type_of_a_key_is_judged)
{
    CK_ATTRIBUTE key[] = {NUMBER(CKA_CLASS, private_key), NUMBER(CKA_KEY_TYPE, generic),
                          NUMBER(CKA_KEY_TYPE, aes), NUMBER(CKA_VALUE_LEN, bytes_16)};
    CK_ATTRIBUTE other[] = {key[0], key[2], key[3], key[1]}, one[] = {key[0], key[1], key[3]};
    start(denying);
    all_answer(CKR_KEY_SIZE_RANGE, key, 4);
    all_answer(CKR_KEY_SIZE_RANGE, other, 4);
    all_answer(CKR_OK, one, 3);
}

TEST(only_keys_are_judged_at_import)
{
    CK_ATTRIBUTE key[] = {NUMBER(CKA_KEY_TYPE, rsa), ARRAY(CKA_MODULUS, number_1024),
                          NUMBER(CKA_CLASS, certificate), NUMBER(CKA_CLASS, private_key)};
    start(denying);
    EXPECT(make_by(CREATE, 0, key, 3), CKR_OK);
    EXPECT(make_by(CREATE, 0, key, 4), CKR_KEY_SIZE_RANGE);
    EXPECT(make_by(CREATE, 0, NULL, 3), CKR_OK);
}

/* The mechanism says what type of key it makes. */
TEST(a_template_need_not_say_the_type)
{
    CK_ATTRIBUTE rsa_1024 = NUMBER(CKA_MODULUS_BITS, bits_1024),
                 rsa_2048 = NUMBER(CKA_MODULUS_BITS, bits_2048),
                 aes_128 = NUMBER(CKA_VALUE_LEN, bytes_16),
                 aes_256 = NUMBER(CKA_VALUE_LEN, bytes_32), small = DER(CKA_EC_PARAMS, p192),
                 large = DER(CKA_EC_PARAMS, p256);
    CK_ATTRIBUTE wrong[] = {{CKA_MODULUS_BITS, &bits_1024, 3}, {CKA_MODULUS_BITS, NULL, 8}};
    start(denying);
    EXPECT(make_by(PAIR_PUBLIC, CKM_RSA_PKCS_KEY_PAIR_GEN, &rsa_1024, 1), CKR_KEY_SIZE_RANGE);
    EXPECT(make_by(PAIR_PRIVATE, CKM_RSA_PKCS_KEY_PAIR_GEN, &rsa_1024, 1), CKR_KEY_SIZE_RANGE);
    EXPECT(make_by(PAIR_PUBLIC, CKM_EC_KEY_PAIR_GEN, &small, 1), CKR_CURVE_NOT_SUPPORTED);
    EXPECT(make_by(GENERATE, CKM_AES_KEY_GEN, &aes_128, 1), CKR_KEY_SIZE_RANGE);
    ck_assert_uint_eq(keyring->calls, 0);
    EXPECT(make_by(PAIR_PUBLIC, CKM_RSA_PKCS_KEY_PAIR_GEN, &rsa_2048, 1), CKR_OK);
    EXPECT(make_by(PAIR_PUBLIC, CKM_EC_KEY_PAIR_GEN, &large, 1), CKR_OK);
    EXPECT(make_by(GENERATE, CKM_AES_KEY_GEN, &aes_256, 1), CKR_OK);
    ck_assert_uint_eq(keyring->reads, 0);
    /* What is no value is the token's to judge. */
    EXPECT(make_by(PAIR_PUBLIC, CKM_RSA_PKCS_KEY_PAIR_GEN, wrong, 2), CKR_OK);
    EXPECT(make_by(PAIR_PUBLIC, CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 2), CKR_OK);
}

/* The type may stand in one template of a pair, and the size in the other. */
TEST(both_templates_of_a_pair_are_one)
{
    CK_MECHANISM mechanism = {UNKNOWN_MECHANISM, NULL, 0};
    CK_ATTRIBUTE type = NUMBER(CKA_KEY_TYPE, rsa), small = NUMBER(CKA_MODULUS_BITS, bits_1024),
                 large = NUMBER(CKA_MODULUS_BITS, bits_2048);
    start(denying);
    EXPECT(fn->C_GenerateKeyPair(session, &mechanism, &small, 1, &type, 1, made, made + 1),
           CKR_KEY_SIZE_RANGE);
    EXPECT(fn->C_GenerateKeyPair(session, &mechanism, &type, 1, &small, 1, made, made + 1),
           CKR_KEY_SIZE_RANGE);
    EXPECT(fn->C_GenerateKeyPair(session, &mechanism, &type, 1, &large, 1, made, made + 1), CKR_OK);
}

/* A copy or a change without any of it says nothing about the key. */
TEST(other_attributes_of_an_object_may_change)
{
    CK_ATTRIBUTE label = {CKA_LABEL, number_2048, 3}, size = NUMBER(CKA_MODULUS_BITS, bits_1024);
    start(denying);
    EXPECT(make_by(COPY, 0, &label, 1), CKR_OK);
    EXPECT(make_by(SET_ATTRIBUTES, 0, &label, 1), CKR_OK);
    EXPECT(make_by(COPY, 0, &size, 1), CKR_KEY_SIZE_RANGE);
    EXPECT(make_by(SET_ATTRIBUTES, 0, &size, 1), CKR_KEY_SIZE_RANGE);
}

/* Where no handle is wanted, templates are judged all the same. */
TEST(no_place_for_a_handle_hides_nothing)
{
    CK_MECHANISM mechanism = {CKM_AES_KEY_GEN, NULL, 0};
    CK_ATTRIBUTE small = NUMBER(CKA_VALUE_LEN, bytes_16), large = NUMBER(CKA_VALUE_LEN, bytes_32);
    start(denying);
    EXPECT(fn->C_GenerateKey(session, &mechanism, &small, 1, NULL), CKR_KEY_SIZE_RANGE);
    EXPECT(fn->C_GenerateKeyPair(session, &mechanism, &small, 1, NULL, 0, NULL, NULL),
           CKR_KEY_SIZE_RANGE);
    EXPECT(fn->C_DeriveKey(session, &mechanism, 0, &small, 1, NULL), CKR_KEY_SIZE_RANGE);
    ck_assert_uint_eq(keyring->calls, 0);
    EXPECT(fn->C_GenerateKey(session, &mechanism, &large, 1, NULL), CKR_OK);
    EXPECT(fn->C_GenerateKey(session, &mechanism, NULL, 0, NULL), CKR_OK);
}

/* As CK_DERIVED_KEY, CK_SP800_108_KDF_PARAMS and CK_SP800_108_FEEDBACK_KDF_PARAMS are laid out. */
struct derived_key {
    CK_ATTRIBUTE *template;
    CK_ULONG count;
    CK_OBJECT_HANDLE *handle;
};

TEST_EACH(keys_that_are_derived_besides_are_judged, 0, 2)
{
    CK_ATTRIBUTE type = NUMBER(CKA_KEY_TYPE, aes);
    CK_ATTRIBUTE small[] = {type, NUMBER(CKA_VALUE_LEN, bytes_16)},
                 large[] = {type, NUMBER(CKA_VALUE_LEN, bytes_32)};
    CK_OBJECT_HANDLE handles[2];
    struct derived_key keys[] = {{large, 2, &handles[0]}, {large, 2, &handles[1]}};
    CK_ULONG counter[] = {0x251, 0, 0, 2, (CK_ULONG)keys},
             feedback[] = {0x251, 0, 0, 0, 0, 2, (CK_ULONG)keys};
    CK_MECHANISM mechanism = _i == 0 ? (CK_MECHANISM){0x3ac, counter, sizeof counter}
                                     : (CK_MECHANISM){0x3ad, feedback, sizeof feedback};
    start(denying);
    EXPECT(fn->C_DeriveKey(session, &mechanism, 1, large, 2, made), CKR_OK);
    keys[1].template = small;
    EXPECT(fn->C_DeriveKey(session, &mechanism, 1, large, 2, made), CKR_KEY_SIZE_RANGE);
    keys[1].template = NULL;
    EXPECT(fn->C_DeriveKey(session, &mechanism, 1, large, 2, made), CKR_OK);
    mechanism.ulParameterLen -= sizeof(CK_ULONG);
    keys[1].template = small;
    EXPECT(fn->C_DeriveKey(session, &mechanism, 1, large, 2, made), CKR_OK);
    counter[3] = feedback[5] = 1;
    mechanism.ulParameterLen += sizeof(CK_ULONG);
    EXPECT(fn->C_DeriveKey(session, &mechanism, 1, large, 2, made), CKR_OK);
}

/* Four keys from one call; their sizes stand in its parameter, and only there. */
TEST_EACH(the_sizes_of_tls_keys_are_judged, 0, 4)
{
    static const struct {
        CK_MECHANISM_TYPE mechanism;
        unsigned word;
    } rows[] = {{CKM_SSL3_KEY_AND_MAC_DERIVE, 0},
                {CKM_TLS_KEY_AND_MAC_DERIVE, 0},
                {0x3e1 /* TLS12_KEY_AND_MAC */, 0},
                {CKM_WTLS_CLIENT_KEY_AND_MAC_DERIVE, 1}};
    CK_ATTRIBUTE key[] = {NUMBER(CKA_KEY_TYPE, aes)};
    CK_ULONG words[12] = {0};
    CK_MECHANISM mechanism = {rows[_i].mechanism, words, sizeof words};
    start("x-disabled-algorithms: AES keySize < 256, Generic keySize < 160");
    words[rows[_i].word] = 256;
    words[rows[_i].word + 1] = 256;
    EXPECT(fn->C_DeriveKey(session, &mechanism, 1, key, 1, NULL), CKR_OK);
    words[rows[_i].word + 1] = 128;
    EXPECT(fn->C_DeriveKey(session, &mechanism, 1, key, 1, NULL), CKR_KEY_SIZE_RANGE);
    words[rows[_i].word + 1] = 0;
    EXPECT(fn->C_DeriveKey(session, &mechanism, 1, key, 1, NULL), CKR_OK);
    words[rows[_i].word] = 128;
    EXPECT(fn->C_DeriveKey(session, &mechanism, 1, key, 1, NULL), CKR_KEY_SIZE_RANGE);
}

int main(void)
{
    return test_main("guard_templates", set_up, tear_down);
}
