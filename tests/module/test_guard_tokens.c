/* test_guard_tokens.c - keys of real tokens are measured: SoftHSM's, and NSS's softoken's. */
#include "guarded.h"

#include <unistd.h>

/* A mechanism that wraps a private key, which each has another of. */
static CK_BYTE iv[16];
static const struct {
    const char *path;
    CK_SLOT_ID (*begin)(const char *settings);
    CK_MECHANISM wrap;
} tokens[] = {{softhsm, softhsm_begin, {0x210a /* AES_KEY_WRAP_PAD */, NULL, 0}},
              {softoken, softoken_begin, {CKM_AES_CBC_PAD, iv, sizeof iv}}};

static CK_BBOOL yes = CK_TRUE, no = CK_FALSE;
static CK_BYTE f4[] = {1, 0, 1};

static CK_RV make_rsa(CK_FUNCTION_LIST *by, CK_ULONG bits, CK_OBJECT_HANDLE *private_key)
{
    CK_MECHANISM mechanism = {CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 0};
    CK_OBJECT_HANDLE public_key;
    CK_ATTRIBUTE public[] = {{CKA_MODULUS_BITS, &bits, sizeof bits},
                             {CKA_PUBLIC_EXPONENT, f4, sizeof f4}};
    CK_ATTRIBUTE private[] = {{CKA_SIGN, &yes, sizeof yes},
                              {CKA_EXTRACTABLE, &yes, sizeof yes},
                              {CKA_SENSITIVE, &no, sizeof no}};
    return by->C_GenerateKeyPair(session, &mechanism, public, 2, private, 3, &public_key,
                                 private_key);
}

/* The token's own list is not guarded. What is unwrapped shows its size only then: it is gone again, and so is its
 * handle. */
TEST_EACH(rsa_keys_are_measured, 0, 2)
{
    static const CK_ULONG sizes[] = {1024, 2048};
    CK_MECHANISM wrap = tokens[_i].wrap, rsa = {CKM_RSA_PKCS, NULL, 0};
    CK_MECHANISM aes_gen = {CKM_AES_KEY_GEN, NULL, 0};
    CK_ULONG aes_bytes = 32;
    CK_OBJECT_CLASS class = CKO_PRIVATE_KEY;
    CK_KEY_TYPE type = CKK_RSA;
    CK_ATTRIBUTE aes_key[] = {{CKA_VALUE_LEN, &aes_bytes, sizeof aes_bytes},
                              {CKA_WRAP, &yes, sizeof yes},
                              {CKA_UNWRAP, &yes, sizeof yes}};
    CK_ATTRIBUTE key[] = {{CKA_CLASS, &class, sizeof class},
                          {CKA_KEY_TYPE, &type, sizeof type},
                          {CKA_SIGN, &yes, sizeof yes}};
    CK_OBJECT_HANDLE aes, private, unwrapped;
    SKIP_IF(access(tokens[_i].path, R_OK) != 0, "the token is not installed");
    CK_SLOT_ID slot = tokens[_i].begin("x-disabled-algorithms: RSA keySize < 2048");
    CK_FUNCTION_LIST *bare = bare_list();
    session = open_session(slot, CKF_RW_SESSION);
    EXPECT(fn->C_Login(session, CKU_USER, (CK_UTF8CHAR *)"1234", 4), CKR_OK);
    EXPECT(bare->C_GenerateKey(session, &aes_gen, aes_key, 3, &aes), CKR_OK);
    for (size_t i = 0; i < 2; i++) {
        CK_RV wanted = i == 0 ? CKR_KEY_SIZE_RANGE : CKR_OK;
        CK_BYTE wrapped[2048];
        CK_ULONG wrapped_bytes = sizeof wrapped;
        EXPECT(make_rsa(fn, sizes[i], &private), wanted);
        EXPECT(make_rsa(bare, sizes[i], &private), CKR_OK);
        EXPECT(bare->C_WrapKey(session, &wrap, aes, private, wrapped, &wrapped_bytes), CKR_OK);
        EXPECT(fn->C_UnwrapKey(session, &wrap, aes, wrapped, wrapped_bytes, key, 3, &unwrapped),
               wanted);
        ck_assert_int_eq(unwrapped == CK_INVALID_HANDLE, wanted != CKR_OK);
        EXPECT(fn->C_SignInit(session, &rsa, private), wanted);
    }

    /* What is no more is for the token to judge, in its own words. */
    EXPECT(fn->C_DestroyObject(session, unwrapped), CKR_OK);
    EXPECT(fn->C_SignInit(session, &rsa, unwrapped), bare->C_SignInit(session, &rsa, unwrapped));
}

int main(void)
{
    return test_main("guard_tokens", set_up, tear_down);
}
