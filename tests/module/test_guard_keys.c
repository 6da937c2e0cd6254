/* test_guard_keys.c - keys by size and curve: read once, forgotten when they may have changed. */
#include "guarded.h"

#include <stdint.h>
#include <string.h>

static CK_MECHANISM rsa = {CKM_RSA_PKCS, NULL, 0};

static void has_rsa_key(CK_ULONG bits)
{
    keyring->key_type = CKK_RSA;
    keyring->attribute = CKA_MODULUS;
    memset(keyring->value, 0xff, bits / 8);
    keyring->value_bytes = bits / 8;
}

static CK_RV sign_by(CK_MECHANISM *mechanism, CK_OBJECT_HANDLE key)
{
    return fn->C_SignInit(session, mechanism, key);
}

static CK_RV sign(CK_OBJECT_HANDLE key)
{
    return sign_by(&rsa, key);
}

TEST(a_small_key_is_refused_before_the_token_hears_of_it)
{
    start("x-disabled-algorithms: RSA keySize < 2048");
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

TEST(without_key_rules_no_key_is_read)
{
    start("x-disabled-algorithms: MD5");
    has_rsa_key(512);
    EXPECT(sign(1), CKR_OK);
    ck_assert_uint_eq(keyring->reads, 0);
}

TEST(a_key_is_read_once)
{
    start("x-disabled-algorithms: RSA keySize < 2048");
    has_rsa_key(2048);
    for (int i = 0; i < 10; i++)
        EXPECT(sign(1), CKR_OK);
    ck_assert_uint_eq(keyring->reads, 2);
    EXPECT(sign(2), CKR_OK);
    ck_assert_uint_eq(keyring->reads, 4);
}

/* A key that was permitted is not permitted to another mechanism, for another purpose, or with other parameters. */
TEST(what_is_permitted_is_so_for_one_mechanism_and_purpose)
{
    CK_RSA_PKCS_OAEP_PARAMS md5 = {.hashAlg = CKM_MD5, .mgf = CKG_MGF1_SHA1};
    CK_MECHANISM md5_rsa = {CKM_MD5_RSA_PKCS, NULL, 0};
    CK_MECHANISM oaep = {CKM_RSA_PKCS_OAEP, NULL, 0};
    char settings[256];
    write_in_root("crypto", "jdk.crypto.disabledAlgorithms=Cipher.RSA/ECB/PKCS1Padding\n");
    snprintf(
        settings, sizeof settings,
        "x-disabled-algorithms: RSA keySize < 2048, MD5\nx-disabled-algorithms-file: %s/crypto",
        root);
    start(settings);
    has_rsa_key(2048);
    for (int i = 0; i < 3; i++) {
        EXPECT(sign(1), CKR_OK);
        EXPECT(sign_by(&md5_rsa, 1), CKR_MECHANISM_INVALID);
        EXPECT(fn->C_DecryptInit(session, &rsa, 1), CKR_MECHANISM_INVALID);
        oaep.pParameter = NULL;
        oaep.ulParameterLen = 0;
        EXPECT(fn->C_DecryptInit(session, &oaep, 1), CKR_OK);
        oaep.pParameter = &md5;
        oaep.ulParameterLen = sizeof md5;
        EXPECT(fn->C_DecryptInit(session, &oaep, 1), CKR_MECHANISM_PARAM_INVALID);
    }
}

enum event {
    DESTROYED,
    ATTRIBUTE_SET,
    SESSION_CLOSED,
    LAST_SESSION_CLOSED,
    ALL_SESSIONS_CLOSED,
    LOGGED_IN,
    LOGGED_OUT,
    TOKEN_INITIALIZED,
    FINALIZED
};

static const struct {
    enum event event;
    bool forgets_token_keys, logged_in;
} events[] = {
    {DESTROYED, true, false},          {ATTRIBUTE_SET, true, false},
    {SESSION_CLOSED, false, false},    {LAST_SESSION_CLOSED, false, false},
    {LAST_SESSION_CLOSED, true, true}, {ALL_SESSIONS_CLOSED, false, false},
    {ALL_SESSIONS_CLOSED, true, true}, {LOGGED_IN, true, false},
    {LOGGED_OUT, true, true},          {TOKEN_INITIALIZED, true, false},
    {FINALIZED, true, false},
};
enum { EVENTS = sizeof events / sizeof *events };

static void happens(enum event event)
{
    CK_ATTRIBUTE attribute = {CKA_LABEL, NULL, 0};
    switch (event) {
    case DESTROYED:
        fn->C_DestroyObject(session, 1);
        return;
    case ATTRIBUTE_SET:
        fn->C_SetAttributeValue(session, 1, &attribute, 1);
        return;
    case LOGGED_IN:
        EXPECT(fn->C_Login(session, CKU_USER, NULL, 0), CKR_OK);
        return;
    case LOGGED_OUT:
        fn->C_Logout(session);
        return;
    case TOKEN_INITIALIZED:
        fn->C_InitToken(0, NULL, 0, NULL);
        return;
    case LAST_SESSION_CLOSED:
        fn->C_CloseSession(session);
        break;
    case SESSION_CLOSED:
        open_session(0, 0);
        fn->C_CloseSession(session);
        break;
    case ALL_SESSIONS_CLOSED:
        fn->C_CloseAllSessions(0);
        break;
    case FINALIZED:
        fn->C_Finalize(NULL);
        initialize();
    }
    session = open_session(0, 0);
}

/* The handle then stands for another key, which is small. */
TEST_EACH(what_may_have_changed_is_read_again, 0, EVENTS)
{
    start("x-disabled-algorithms: RSA keySize < 2048");
    has_rsa_key(2048);
    if (events[_i].logged_in)
        happens(LOGGED_IN);
    EXPECT(sign(1), CKR_OK);
    happens(events[_i].event);
    has_rsa_key(1024);
    EXPECT(sign(1), CKR_KEY_SIZE_RANGE);
}

/* A session's end takes its own keys with it, and those on the token if it was the user's last one. */
TEST_EACH(a_key_on_the_token_outlives_a_session, 0, EVENTS)
{
    start("x-disabled-algorithms: RSA keySize < 2048");
    has_rsa_key(2048);
    keyring->key_on_token = CK_TRUE;
    if (events[_i].logged_in)
        happens(LOGGED_IN);
    EXPECT(sign(1), CKR_OK);
    keyring->reads = 0;
    happens(events[_i].event);
    EXPECT(sign(1), CKR_OK);
    ck_assert_int_eq(keyring->reads != 0, events[_i].forgets_token_keys);
}

static void has_ec_key(const void *params, size_t params_bytes)
{
    keyring->key_type = CKK_EC;
    keyring->attribute = CKA_EC_PARAMS;
    memcpy(keyring->value, params, params_bytes);
    keyring->value_bytes = params_bytes;
}

static const char p192[] = "\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x01";
static const char p256[] = "\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";

TEST_EACH(a_curve_that_is_not_known_is_denied, 0, 3)
{
    static const CK_BYTE much[KEYRING_BYTES];
    static const char unknown[] = "\x06\x04\x2b\x81\x04\x7f";
    CK_MECHANISM ecdsa = {CKM_ECDSA, NULL, 0};
    start(_i == 0   ? "x-disabled-algorithms: secp192r1"
          : _i == 1 ? "x-disabled-algorithms: EC keySize < 224"
                    : "x-disabled-algorithms: RSA keySize < 2048");
    CK_RV wanted = _i == 2 ? CKR_OK : CKR_CURVE_NOT_SUPPORTED;
    has_ec_key(unknown, sizeof unknown - 1);
    EXPECT(sign_by(&ecdsa, 1), wanted);
    has_ec_key(much, sizeof much);
    EXPECT(sign_by(&ecdsa, 2), wanted);
    has_ec_key(p256, sizeof p256 - 1);
    EXPECT(sign_by(&ecdsa, 3), CKR_OK);
}

TEST(parameter_sets_and_curves_have_their_codes)
{
    static const CK_ULONG ml_dsa_44 = 1;
    CK_MECHANISM ml_dsa = {0x1d, NULL, 0}, ecdsa = {CKM_ECDSA, NULL, 0};
    start("x-disabled-algorithms: ML-DSA-44, secp192r1");
    keyring->key_type = 0x4a;
    keyring->attribute = CKA_PARAMETER_SET;
    memcpy(keyring->value, &ml_dsa_44, sizeof ml_dsa_44);
    keyring->value_bytes = sizeof ml_dsa_44;
    EXPECT(sign_by(&ml_dsa, 1), CKR_KEY_SIZE_RANGE);
    keyring->value[0] = 2;
    EXPECT(sign_by(&ml_dsa, 2), CKR_OK);
    has_ec_key(p192, sizeof p192 - 1);
    EXPECT(sign_by(&ecdsa, 3), CKR_CURVE_NOT_SUPPORTED);
}

static CK_OBJECT_HANDLE derived = 4711;

static CK_RV derive(CK_MECHANISM_TYPE type, CK_OBJECT_HANDLE from, CK_ATTRIBUTE *template,
                    CK_ULONG count)
{
    CK_MECHANISM mechanism = {type, NULL, 0};
    return fn->C_DeriveKey(session, &mechanism, from, template, count, &derived);
}

/* No template says how long an unwrapped RSA key is. */
TEST_EACH(a_denied_key_that_was_derived_is_destroyed_again, 0, 2)
{
    start(_i == 0 ? "x-disabled-algorithms: RSA keySize < 2048"
                  : "x-disabled-algorithms: RSA keySize < 2048\nx-policy: audit");
    has_rsa_key(1024);
    EXPECT(derive(CKM_AES_ECB, 0, NULL, 0), _i == 0 ? CKR_KEY_SIZE_RANGE : CKR_OK);
    ck_assert_uint_eq(derived, _i == 0 ? CK_INVALID_HANDLE : KEYRING_MADE);
    ck_assert_uint_eq(keyring->destroyed, _i == 0 ? 1 : 0);
    EXPECT(fn->C_DeriveKey(session, &rsa, 0, NULL, 0, NULL), CKR_OK);
    has_rsa_key(2048);
    EXPECT(derive(CKM_AES_ECB, 0, NULL, 0), CKR_OK);
    ck_assert_uint_eq(derived, KEYRING_MADE);
}

/* Rules about a mechanism are about the keys that it works with: an AES key from ECDH is no ECDH key. */
TEST(a_derived_key_is_not_measured_by_its_mechanism)
{
    CK_KEY_TYPE aes = CKK_AES;
    CK_ULONG bytes_16 = 16;
    CK_ATTRIBUTE aes_128[] = {{CKA_KEY_TYPE, &aes, sizeof aes},
                              {CKA_VALUE_LEN, &bytes_16, sizeof bytes_16}};
    start("x-disabled-algorithms: ECDH keySize < 224");
    has_ec_key(p256, sizeof p256 - 1);
    EXPECT(derive(CKM_ECDH1_DERIVE, 1, aes_128, 2), CKR_OK);
    has_ec_key(p192, sizeof p192 - 1);
    EXPECT(derive(CKM_ECDH1_DERIVE, 2, aes_128, 2), CKR_KEY_SIZE_RANGE);
}

int main(void)
{
    return test_main("guard_keys", set_up, tear_down);
}
