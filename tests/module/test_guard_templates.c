/* test_guard_templates.c - a key that is to be made is judged by its template, before the token hears of it. */
#include "guarded.h"

#include <string.h>

#include "rows.h"

enum { UNKNOWN_MECHANISM = 0x80004711, WAYS = 10 };

#define list interface_list(3, 2)
static CK_OBJECT_HANDLE made[2];
static CK_MECHANISM mechanism;
static CK_ATTRIBUTE *template;
static CK_ULONG count;
static _Alignas(8) CK_BYTE bytes[64];

static const char denying[] = "x-disabled-algorithms: RSA keySize < 2048, DH keySize < 2048, AES "
                              "keySize < 256, secp192r1, ML-DSA-44";

struct row {
    const char *name;
    CK_RV (*call)(void);
    const char *parameters;
};

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
    if (strstr(name, "Public") != NULL || strstr(name, "Private") != NULL || name[0] == 'h')
        return is_pointer ? (uintptr_t)made : 1;
    return is_pointer ? (uintptr_t)bytes : sizeof bytes;
}

/* Each way for a template to the token. */
#define P11_UPTO 302
#define ROW(name, ...)
#define MECH(purpose, keys, name, ...)           CALLER(name, __VA_ARGS__)
#define EDIT(object, template, count, name, ...) CALLER(name, __VA_ARGS__)
#include "functions.def"
static const struct row rows[] = {
#define P11_UPTO 302
#define ROW(name, ...)
#define MECH(purpose, keys, name, ...)           {#name, call_##name, #__VA_ARGS__},
#define EDIT(object, template, count, name, ...) {#name, call_##name, #__VA_ARGS__},
#include "functions.def"
};

static void all_answer(CK_RV rv, CK_ATTRIBUTE *attributes, CK_ULONG attributes_count)
{
    unsigned ways = 0;
    mechanism.mechanism = UNKNOWN_MECHANISM;
    template = attributes;
    count = attributes_count;
    for (const struct row *row = rows; row < rows + sizeof rows / sizeof *rows; row++) {
        if (strstr(row->parameters, "Template") == NULL)
            continue;
        keyring->calls = 0;
        CK_RV got = row->call();
        ck_assert_msg(got == rv, "%s answers 0x%lx, not 0x%lx", row->name, got, rv);
        ck_assert_uint_eq(keyring->calls, rv == CKR_OK);
        ways++;
    }
    ck_assert_uint_eq(ways, WAYS);
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
    CK_ATTRIBUTE key[] = {ARRAY(CKA_MODULUS, number_1024), NUMBER(CKA_CLASS, certificate),
                          NUMBER(CKA_KEY_TYPE, rsa)};
    start(denying);
    EXPECT(fn->C_CreateObject(session, key, 2, made), CKR_OK);
    EXPECT(fn->C_CreateObject(session, key, 3, made), CKR_KEY_SIZE_RANGE);
    EXPECT(fn->C_CreateObject(session, NULL, 3, made), CKR_OK);
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

TEST_EACH(a_template_need_not_say_the_type, 0, (int)(sizeof typeless / sizeof *typeless))
{
    CK_ATTRIBUTE attribute = typeless[_i].attribute;
    start(denying);
    EXPECT(make_pair(typeless[_i].type, &attribute, NULL), typeless[_i].code);
    EXPECT(make_pair(typeless[_i].type, NULL, &attribute), typeless[_i].code);
    EXPECT(fn->C_GenerateKey(session, &mechanism, &attribute, 1, made), typeless[_i].code);
    EXPECT(fn->C_GenerateKey(session, &mechanism, &attribute, 1, NULL), typeless[_i].code);
    EXPECT(fn->C_DeriveKey(session, &mechanism, 0, &attribute, 1, NULL), typeless[_i].code);
    ck_assert_uint_eq(keyring->calls, typeless[_i].code == CKR_OK ? 5 : 0);
    EXPECT(fn->C_GenerateKey(session, &mechanism, NULL, 2, NULL), CKR_OK);
}

/* The type may stand in one template of a pair, and the size in the other. */
TEST(both_templates_of_a_pair_are_one)
{
    CK_ATTRIBUTE type = NUMBER(CKA_KEY_TYPE, rsa), small = NUMBER(CKA_MODULUS_BITS, bits_1024),
                 large = NUMBER(CKA_MODULUS_BITS, bits_2048);
    start(denying);
    EXPECT(make_pair(UNKNOWN_MECHANISM, &small, &type), CKR_KEY_SIZE_RANGE);
    EXPECT(make_pair(UNKNOWN_MECHANISM, &type, &small), CKR_KEY_SIZE_RANGE);
    EXPECT(make_pair(UNKNOWN_MECHANISM, &type, &large), CKR_OK);
}

/* A copy or a change without any of it says nothing about the key. */
TEST(other_attributes_of_an_object_may_change)
{
    CK_ATTRIBUTE label = {CKA_LABEL, number_2048, 3}, size = NUMBER(CKA_MODULUS_BITS, bits_1024);
    start(denying);
    EXPECT(fn->C_CopyObject(session, 1, &label, 1, made), CKR_OK);
    EXPECT(fn->C_SetAttributeValue(session, 1, &label, 1), CKR_OK);
    EXPECT(fn->C_CopyObject(session, 1, &size, 1, made), CKR_KEY_SIZE_RANGE);
    EXPECT(fn->C_SetAttributeValue(session, 1, &size, 1), CKR_KEY_SIZE_RANGE);
}

int main(void)
{
    return test_main("guard_templates", set_up, tear_down);
}
