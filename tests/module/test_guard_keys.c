/* test_guard_keys.c - keys by size and curve: read once, forgotten when they may have changed. */
#include "run.h"

#include <stdint.h>
#include <string.h>

#include "keyring.h"

static struct keyring *keyring;
static CK_SESSION_HANDLE session, kept_session;
static CK_MECHANISM rsa = {CKM_RSA_PKCS, NULL, 0};

static void begin(const char *settings)
{
    proxy_before("keyring", settings);
    keyring = target_symbol("keyring");
    initialize();
    kept_session = open_session(0, 0);
    session = open_session(0, 0);
}

static void has_rsa_key(CK_ULONG bits)
{
    keyring->key_type = CKK_RSA;
    keyring->attribute = CKA_MODULUS;
    memset(keyring->value, 0xff, bits / 8);
    keyring->value_bytes = bits / 8;
}

static CK_RV sign(CK_OBJECT_HANDLE key)
{
    return fn->C_SignInit(session, &rsa, key);
}

START_TEST(a_small_key_is_refused_before_the_token_hears_of_it)
{
    begin("x-disabled-algorithms: RSA keySize < 2048");
    has_rsa_key(1024);
    EXPECT(sign(1), CKR_KEY_SIZE_RANGE);
    ck_assert_uint_eq(keyring->calls, 0);
    has_rsa_key(2048);
    EXPECT(sign(2), CKR_OK);
    keyring->value[0] = 0x7f; /* 2047 bits */
    EXPECT(sign(3), CKR_KEY_SIZE_RANGE);
    keyring->value[0] = 0x00; /* 2040 bits behind a leading zero */
    EXPECT(sign(4), CKR_KEY_SIZE_RANGE);
    has_rsa_key(2112);
    memset(keyring->value, 0, 10); /* 2032 bits behind many */
    EXPECT(sign(7), CKR_KEY_SIZE_RANGE);
    keyring->value_bytes = 0; /* size 0 denies */
    EXPECT(sign(5), CKR_KEY_SIZE_RANGE);
    keyring->attribute = CKA_LABEL; /* a size that is not known permits */
    EXPECT(sign(6), CKR_OK);
}
END_TEST

START_TEST(without_key_rules_no_key_is_read)
{
    begin("x-disabled-algorithms: MD5");
    has_rsa_key(512);
    EXPECT(sign(1), CKR_OK);
    ck_assert_uint_eq(keyring->reads, 0);
}
END_TEST

START_TEST(a_key_is_read_once)
{
    begin("x-disabled-algorithms: RSA keySize < 2048");
    has_rsa_key(2048);
    for (int i = 0; i < 10; i++)
        EXPECT(sign(1), CKR_OK);
    ck_assert_uint_eq(keyring->reads, 2);
    EXPECT(sign(2), CKR_OK);
    ck_assert_uint_eq(keyring->reads, 4);
}
END_TEST

static void destroy(void)
{
    fn->C_DestroyObject(session, 1);
}

static void set_attribute(void)
{
    CK_ATTRIBUTE attribute = {CKA_LABEL, NULL, 0};
    fn->C_SetAttributeValue(session, 1, &attribute, 1);
}

static void close_session(void)
{
    fn->C_CloseSession(session);
    session = open_session(0, 0);
}

static void close_last_session(void)
{
    fn->C_CloseSession(kept_session);
    close_session();
}

static void close_all(void)
{
    fn->C_CloseAllSessions(0);
    session = open_session(0, 0);
}

static void log_in(void)
{
    fn->C_Login(session, CKU_USER, NULL, 0);
}

static void log_out(void)
{
    fn->C_Logout(session);
}

static void init_token(void)
{
    fn->C_InitToken(0, NULL, 0, NULL);
}

static void start_anew(void)
{
    fn->C_Finalize(NULL);
    initialize();
    session = open_session(0, 0);
}

static const struct {
    void (*happens)(void);
    bool token_keys_too;
} events[] = {
    {destroy, true},    {set_attribute, true}, {close_session, false}, {close_last_session, true},
    {close_all, true},  {log_in, true},        {log_out, true},        {init_token, true},
    {start_anew, true},
};
enum { EVENTS = sizeof events / sizeof *events };

/* The handle then stands for another key, which is small. */
START_TEST(what_may_have_changed_is_read_again)
{
    begin("x-disabled-algorithms: RSA keySize < 2048");
    has_rsa_key(2048);
    EXPECT(sign(1), CKR_OK);
    events[_i].happens();
    has_rsa_key(1024);
    EXPECT(sign(1), CKR_KEY_SIZE_RANGE);
}
END_TEST

/* A session's end takes its own keys with it, and no others. */
START_TEST(a_key_on_the_token_outlives_a_session)
{
    begin("x-disabled-algorithms: RSA keySize < 2048");
    has_rsa_key(2048);
    keyring->key_on_token = CK_TRUE;
    EXPECT(sign(1), CKR_OK);
    keyring->reads = 0;
    events[_i].happens();
    EXPECT(sign(1), CKR_OK);
    ck_assert_int_eq(keyring->reads != 0, events[_i].token_keys_too);
}
END_TEST

static CK_KEY_TYPE rsa_type = CKK_RSA, aes_type = CKK_AES, ec_type = CKK_EC;
static CK_OBJECT_CLASS private_key = CKO_PRIVATE_KEY, certificate = CKO_CERTIFICATE;
static CK_ULONG bits_1024 = 1024, bits_2048 = 2048, bytes_16 = 16, bytes_32 = 32;
static CK_BYTE p192[] = "\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x01";
static CK_BYTE p256[] = "\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";
static CK_BYTE modulus[256] = {0};

#define NUMBER(type, value)                                                                        \
    {                                                                                              \
        type, &value, sizeof value                                                                 \
    }
#define BYTES(type, value)                                                                         \
    {                                                                                              \
        type, value, sizeof value - 1                                                              \
    }

static CK_RV make_pair(CK_MECHANISM_TYPE type, CK_ATTRIBUTE *public, CK_ULONG count)
{
    CK_MECHANISM mechanism = {type, NULL, 0};
    CK_OBJECT_HANDLE one = CK_INVALID_HANDLE, other = CK_INVALID_HANDLE;
    return fn->C_GenerateKeyPair(session, &mechanism, public, count, NULL, 0, &one, &other);
}

/* The type may stand in one template and the size in the other; the public one decides. */
START_TEST(both_templates_of_a_pair_are_looked_at)
{
    CK_MECHANISM rsa_gen = {CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 0}, unknown = {0x80004711, NULL, 0};
    CK_OBJECT_HANDLE one = CK_INVALID_HANDLE, other = CK_INVALID_HANDLE;
    CK_ATTRIBUTE small[] = {NUMBER(CKA_MODULUS_BITS, bits_1024)},
                 large[] = {NUMBER(CKA_MODULUS_BITS, bits_2048)};
    CK_ATTRIBUTE type[] = {NUMBER(CKA_KEY_TYPE, rsa_type)};
    begin("x-disabled-algorithms: RSA keySize < 2048");
    EXPECT(fn->C_GenerateKeyPair(session, &rsa_gen, small, 1, large, 1, &one, &other),
           CKR_KEY_SIZE_RANGE);
    EXPECT(fn->C_GenerateKeyPair(session, &rsa_gen, NULL, 0, small, 1, &one, &other),
           CKR_KEY_SIZE_RANGE);
    EXPECT(fn->C_GenerateKeyPair(session, &unknown, small, 1, type, 1, &one, &other),
           CKR_KEY_SIZE_RANGE);
    EXPECT(fn->C_GenerateKeyPair(session, &unknown, type, 1, small, 1, &one, &other),
           CKR_KEY_SIZE_RANGE);
    EXPECT(fn->C_GenerateKeyPair(session, &unknown, type, 1, large, 1, &one, &other), CKR_OK);
}
END_TEST

START_TEST(templates_of_generated_keys_are_looked_at)
{
    CK_OBJECT_HANDLE key = CK_INVALID_HANDLE;
    CK_MECHANISM aes = {CKM_AES_KEY_GEN, NULL, 0};
    CK_ATTRIBUTE small[] = {NUMBER(CKA_MODULUS_BITS, bits_1024)};
    CK_ATTRIBUTE large[] = {NUMBER(CKA_KEY_TYPE, rsa_type), NUMBER(CKA_MODULUS_BITS, bits_2048)};
    CK_ATTRIBUTE wrong[] = {{CKA_MODULUS_BITS, &bits_1024, 3}, {CKA_MODULUS_BITS, NULL, 8}};
    CK_ATTRIBUTE curve_192[] = {BYTES(CKA_EC_PARAMS, p192)};
    CK_ATTRIBUTE curve_256[] = {BYTES(CKA_EC_PARAMS, p256)};
    CK_ATTRIBUTE aes_128[] = {NUMBER(CKA_VALUE_LEN, bytes_16)};
    CK_ATTRIBUTE aes_256[] = {NUMBER(CKA_VALUE_LEN, bytes_32)};
    begin("x-disabled-algorithms: RSA keySize < 2048, secp192r1, AES keySize < 256");
    EXPECT(make_pair(CKM_RSA_PKCS_KEY_PAIR_GEN, small, 1), CKR_KEY_SIZE_RANGE);
    EXPECT(make_pair(CKM_EC_KEY_PAIR_GEN, curve_192, 1), CKR_CURVE_NOT_SUPPORTED);
    EXPECT(fn->C_GenerateKey(session, &aes, aes_128, 1, &key), CKR_KEY_SIZE_RANGE);
    ck_assert_uint_eq(keyring->calls, 0);
    EXPECT(make_pair(CKM_RSA_PKCS_KEY_PAIR_GEN, large, 2), CKR_OK);
    EXPECT(make_pair(CKM_RSA_PKCS_KEY_PAIR_GEN, wrong, 2), CKR_OK);
    EXPECT(make_pair(CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 2), CKR_OK);
    EXPECT(make_pair(CKM_EC_KEY_PAIR_GEN, curve_256, 1), CKR_OK);
    EXPECT(fn->C_GenerateKey(session, &aes, aes_256, 1, &key), CKR_OK);
    ck_assert_uint_eq(keyring->reads, 0);
}
END_TEST

static CK_RV import(CK_ATTRIBUTE *template, CK_ULONG count)
{
    CK_OBJECT_HANDLE object;
    return fn->C_CreateObject(session, template, count, &object);
}

START_TEST(imported_keys_are_looked_at)
{
    modulus[128] = 0x80; /* 1024 bits */
    CK_ATTRIBUTE key[] = {NUMBER(CKA_CLASS, private_key), NUMBER(CKA_KEY_TYPE, rsa_type),
                          NUMBER(CKA_MODULUS, modulus)};
    CK_ATTRIBUTE ec[] = {NUMBER(CKA_CLASS, private_key), NUMBER(CKA_KEY_TYPE, ec_type),
                         BYTES(CKA_EC_PARAMS, p192)};
    CK_ATTRIBUTE aes[] = {
        NUMBER(CKA_CLASS, private_key), NUMBER(CKA_KEY_TYPE, aes_type), {CKA_VALUE, p256, 16}};
    CK_ATTRIBUTE other[] = {NUMBER(CKA_CLASS, certificate), NUMBER(CKA_KEY_TYPE, rsa_type),
                            NUMBER(CKA_MODULUS, modulus)};
    begin("x-disabled-algorithms: RSA keySize < 2048, secp192r1, AES keySize < 256");
    EXPECT(import(key, 3), CKR_KEY_SIZE_RANGE);
    EXPECT(import(ec, 3), CKR_CURVE_NOT_SUPPORTED);
    EXPECT(import(aes, 3), CKR_KEY_SIZE_RANGE);
    EXPECT(import(other, 3), CKR_OK);
    EXPECT(import(NULL, 3), CKR_OK);
    modulus[0] = 0x80;
    EXPECT(import(key, 3), CKR_OK);
}
END_TEST

/* No template says how long an unwrapped RSA key is. */
START_TEST(a_denied_key_that_was_derived_is_destroyed_again)
{
    CK_MECHANISM mechanism = {CKM_AES_ECB, NULL, 0};
    CK_OBJECT_HANDLE key = 4711;
    CK_ATTRIBUTE aes_128[] = {NUMBER(CKA_KEY_TYPE, aes_type), NUMBER(CKA_VALUE_LEN, bytes_16)};
    begin(_i == 0
              ? "x-disabled-algorithms: RSA keySize < 2048, AES keySize < 256"
              : "x-disabled-algorithms: RSA keySize < 2048, AES keySize < 256\nx-policy: audit");
    has_rsa_key(1024);
    EXPECT(fn->C_DeriveKey(session, &mechanism, 0, NULL, 0, &key),
           _i == 0 ? CKR_KEY_SIZE_RANGE : CKR_OK);
    ck_assert_uint_eq(key, _i == 0 ? CK_INVALID_HANDLE : 77);
    ck_assert_uint_eq(keyring->destroyed, _i == 0 ? 1 : 0);
    keyring->calls = 0;
    EXPECT(fn->C_DeriveKey(session, &mechanism, 0, aes_128, 2, &key),
           _i == 0 ? CKR_KEY_SIZE_RANGE : CKR_OK);
    ck_assert_uint_eq(keyring->calls, _i == 0 ? 0 : 1);
}
END_TEST

/* Rules about a mechanism are about the keys that it works with: an AES key from ECDH is no ECDH key. */
START_TEST(a_derived_key_is_not_measured_by_its_mechanism)
{
    CK_MECHANISM ecdh = {CKM_ECDH1_DERIVE, NULL, 0};
    CK_OBJECT_HANDLE key;
    CK_ATTRIBUTE aes_128[] = {NUMBER(CKA_KEY_TYPE, aes_type), NUMBER(CKA_VALUE_LEN, bytes_16)};
    begin("x-disabled-algorithms: ECDH keySize < 224");
    keyring->key_type = CKK_EC;
    keyring->attribute = CKA_EC_PARAMS;
    memcpy(keyring->value, p256, sizeof p256 - 1);
    keyring->value_bytes = sizeof p256 - 1;
    EXPECT(fn->C_DeriveKey(session, &ecdh, 1, aes_128, 2, &key), CKR_OK);
    memcpy(keyring->value, p192, sizeof p192 - 1);
    EXPECT(fn->C_DeriveKey(session, &ecdh, 2, aes_128, 2, &key), CKR_KEY_SIZE_RANGE);
}
END_TEST

START_TEST(parameter_sets_and_curves_have_their_codes)
{
    static const CK_ULONG ml_dsa_44 = 1;
    CK_MECHANISM ml_dsa = {0x1d, NULL, 0}, ecdsa = {CKM_ECDSA, NULL, 0};
    begin("x-disabled-algorithms: ML-DSA-44, secp192r1");
    keyring->key_type = 0x4a;
    keyring->attribute = CKA_PARAMETER_SET;
    memcpy(keyring->value, &ml_dsa_44, sizeof ml_dsa_44);
    keyring->value_bytes = sizeof ml_dsa_44;
    EXPECT(fn->C_SignInit(session, &ml_dsa, 1), CKR_KEY_SIZE_RANGE);
    keyring->value[0] = 2;
    EXPECT(fn->C_SignInit(session, &ml_dsa, 2), CKR_OK);
    keyring->key_type = CKK_EC;
    keyring->attribute = CKA_EC_PARAMS;
    memcpy(keyring->value, p192, sizeof p192 - 1);
    keyring->value_bytes = sizeof p192 - 1;
    EXPECT(fn->C_SignInit(session, &ecdsa, 3), CKR_CURVE_NOT_SUPPORTED);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_small_key_is_refused_before_the_token_hears_of_it);
    tcase_add_test(tcase, without_key_rules_no_key_is_read);
    tcase_add_test(tcase, a_key_is_read_once);
    tcase_add_loop_test(tcase, what_may_have_changed_is_read_again, 0, EVENTS);
    tcase_add_loop_test(tcase, a_key_on_the_token_outlives_a_session, 0, EVENTS);
    tcase_add_test(tcase, both_templates_of_a_pair_are_looked_at);
    tcase_add_test(tcase, templates_of_generated_keys_are_looked_at);
    tcase_add_test(tcase, imported_keys_are_looked_at);
    tcase_add_loop_test(tcase, a_denied_key_that_was_derived_is_destroyed_again, 0, 2);
    tcase_add_test(tcase, a_derived_key_is_not_measured_by_its_mechanism);
    tcase_add_test(tcase, parameter_sets_and_curves_have_their_codes);
}

int main(void)
{
    return run_tests("guard_keys", add_tests);
}
