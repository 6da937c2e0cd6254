/* test_guard_tokens.c - the policy before real tokens with real keys: SoftHSM, and NSS's softoken. */
#include "guarded.h"

#include <unistd.h>

static const struct {
    const char *path;
    CK_SLOT_ID (*begin)(const char *settings);
} tokens[] = {{softhsm, softhsm_begin}, {softoken, softoken_begin}};
enum { TOKENS = sizeof tokens / sizeof *tokens, SIGNATURE_MOST_BYTES = 512 };

static CK_UTF8CHAR pin[] = "1234";
static CK_BBOOL yes = CK_TRUE, no = CK_FALSE;
static CK_BYTE f4[] = {1, 0, 1};
static CK_FUNCTION_LIST *bare; /* the token's own list: what it does is not guarded */

#define IS_THERE() SKIP_IF(access(tokens[_i].path, R_OK) != 0, "the token is not installed")

static void start_token(int number, const char *settings)
{
    CK_SLOT_ID slot = tokens[number].begin(settings);
    bare = bare_list();
    session = open_session(slot, CKF_RW_SESSION);
    EXPECT(fn->C_Login(session, CKU_USER, pin, 4), CKR_OK);
}

struct pair {
    CK_OBJECT_HANDLE public, private;
};

/* A pair for all purposes. */
static CK_RV make_rsa(CK_FUNCTION_LIST *by, CK_ULONG bits, struct pair *pair)
{
    CK_MECHANISM mechanism = {CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 0};
    CK_ATTRIBUTE public[] = {{CKA_MODULUS_BITS, &bits, sizeof bits},
                             {CKA_VERIFY, &yes, sizeof yes},
                             {CKA_ENCRYPT, &yes, sizeof yes},
                             {CKA_PUBLIC_EXPONENT, f4, sizeof f4}};
    CK_ATTRIBUTE private[] = {{CKA_SIGN, &yes, sizeof yes},
                              {CKA_EXTRACTABLE, &yes, sizeof yes},
                              {CKA_SENSITIVE, &no, sizeof no},
                              {CKA_DECRYPT, &yes, sizeof yes}};
    return by->C_GenerateKeyPair(session, &mechanism, public, 4, private, 4, &pair->public,
                                 &pair->private);
}

static CK_RV sign(CK_MECHANISM *mechanism, CK_OBJECT_HANDLE key, CK_BYTE *data, CK_ULONG data_bytes,
                  CK_BYTE *signature, CK_ULONG *signature_bytes)
{
    *signature_bytes = SIGNATURE_MOST_BYTES;
    CK_RV rv = fn->C_SignInit(session, mechanism, key);
    return rv != CKR_OK ? rv : fn->C_Sign(session, data, data_bytes, signature, signature_bytes);
}

static CK_RV verify(CK_MECHANISM *mechanism, CK_OBJECT_HANDLE key, CK_BYTE *data,
                    CK_ULONG data_bytes, CK_BYTE *signature, CK_ULONG signature_bytes)
{
    CK_RV rv = fn->C_VerifyInit(session, mechanism, key);
    return rv != CKR_OK ? rv : fn->C_Verify(session, data, data_bytes, signature, signature_bytes);
}

TEST_EACH(rsa_keys_are_measured, 0, TOKENS)
{
    CK_MECHANISM rsa = {CKM_RSA_PKCS, NULL, 0};
    CK_BYTE signature[SIGNATURE_MOST_BYTES];
    CK_ULONG signature_bytes;
    struct pair small, large, none;
    IS_THERE();
    start_token(_i, "x-disabled-algorithms: RSA keySize < 2048");
    EXPECT(make_rsa(fn, 1024, &none), CKR_KEY_SIZE_RANGE);
    EXPECT(make_rsa(bare, 1024, &small), CKR_OK);
    EXPECT(make_rsa(fn, 2048, &large), CKR_OK);
    EXPECT(sign(&rsa, small.private, sha256_info, 51, signature, &signature_bytes),
           CKR_KEY_SIZE_RANGE);
    EXPECT(fn->C_VerifyInit(session, &rsa, small.public), CKR_KEY_SIZE_RANGE);
    EXPECT(sign(&rsa, large.private, sha256_info, 51, signature, &signature_bytes), CKR_OK);
    EXPECT(verify(&rsa, large.public, sha256_info, 51, signature, signature_bytes), CKR_OK);

    /* What is no more is for the token to judge, in its own words. */
    EXPECT(fn->C_DestroyObject(session, large.private), CKR_OK);
    EXPECT(fn->C_SignInit(session, &rsa, large.private),
           bare->C_SignInit(session, &rsa, large.private));
}

/* Only when it is unwrapped can its size be seen; then it is gone again, and no handle is left. */
TEST_EACH(an_unwrapped_rsa_key_is_measured, 0, TOKENS)
{
    static const CK_MECHANISM_TYPE wrapping[TOKENS] = {0x210a /* AES_KEY_WRAP_PAD */,
                                                       CKM_AES_CBC_PAD};
    CK_BYTE iv[16] = {0}, wrapped[2048];
    CK_ULONG wrapped_bytes = sizeof wrapped, aes_bytes = 32;
    CK_OBJECT_CLASS class = CKO_PRIVATE_KEY;
    CK_KEY_TYPE type = CKK_RSA;
    CK_MECHANISM aes_gen = {CKM_AES_KEY_GEN, NULL, 0}, wrap = {wrapping[_i], NULL, 0};
    CK_ATTRIBUTE aes_key[] = {{CKA_VALUE_LEN, &aes_bytes, sizeof aes_bytes},
                              {CKA_WRAP, &yes, sizeof yes},
                              {CKA_UNWRAP, &yes, sizeof yes}};
    CK_ATTRIBUTE key[] = {{CKA_CLASS, &class, sizeof class},
                          {CKA_KEY_TYPE, &type, sizeof type},
                          {CKA_SIGN, &yes, sizeof yes}};
    CK_OBJECT_HANDLE aes, unwrapped = 4711;
    struct pair small, large;
    IS_THERE();
    start_token(_i, "x-disabled-algorithms: RSA keySize < 2048");
    if (wrap.mechanism == CKM_AES_CBC_PAD) {
        wrap.pParameter = iv;
        wrap.ulParameterLen = sizeof iv;
    }
    EXPECT(bare->C_GenerateKey(session, &aes_gen, aes_key, 3, &aes), CKR_OK);
    EXPECT(make_rsa(bare, 1024, &small), CKR_OK);
    EXPECT(bare->C_WrapKey(session, &wrap, aes, small.private, wrapped, &wrapped_bytes), CKR_OK);
    EXPECT(fn->C_UnwrapKey(session, &wrap, aes, wrapped, wrapped_bytes, key, 3, &unwrapped),
           CKR_KEY_SIZE_RANGE);
    ck_assert_uint_eq(unwrapped, CK_INVALID_HANDLE);

    wrapped_bytes = sizeof wrapped;
    EXPECT(make_rsa(fn, 2048, &large), CKR_OK);
    EXPECT(fn->C_WrapKey(session, &wrap, aes, large.private, wrapped, &wrapped_bytes), CKR_OK);
    EXPECT(fn->C_UnwrapKey(session, &wrap, aes, wrapped, wrapped_bytes, key, 3, &unwrapped),
           CKR_OK);
}

/* A refused operation is over at the token as well: the next one can begin. With a public key one may encrypt what
 * stands in a signature, and with the private one decrypt what is to be signed. */
TEST_EACH(the_digest_in_a_digest_info_is_seen, 0, TOKENS)
{
    CK_MECHANISM rsa = {CKM_RSA_PKCS, NULL, 0}, raw = {CKM_RSA_X_509, NULL, 0};
    CK_BYTE signature[SIGNATURE_MOST_BYTES], block[256];
    CK_ULONG signature_bytes;
    struct pair pair;
    IS_THERE();
    start_token(_i, "x-disabled-algorithms: MD5withRSA");
    EXPECT(make_rsa(fn, 2048, &pair), CKR_OK);
    pad(block, sizeof block, md5_info, sizeof md5_info);
    for (int i = 0; i < 3; i++) {
        EXPECT(sign(&rsa, pair.private, md5_info, sizeof md5_info, signature, &signature_bytes),
               CKR_DATA_INVALID);
        EXPECT(sign(&rsa, pair.private, sha256_info, 51, signature, &signature_bytes), CKR_OK);
        EXPECT(verify(&rsa, pair.public, md5_info, sizeof md5_info, signature, signature_bytes),
               CKR_DATA_INVALID);
        EXPECT(verify(&rsa, pair.public, sha256_info, 51, signature, signature_bytes), CKR_OK);
        EXPECT(fn->C_SignInit(session, &rsa, pair.private), CKR_OK);
        EXPECT(fn->C_SignUpdate(session, md5_info, sizeof md5_info), CKR_DATA_INVALID);
        signature_bytes = sizeof signature;
        EXPECT(fn->C_EncryptInit(session, &rsa, pair.public), CKR_OK);
        EXPECT(fn->C_Encrypt(session, md5_info, sizeof md5_info, signature, &signature_bytes),
               CKR_DATA_INVALID);
        EXPECT(fn->C_DecryptInit(session, &raw, pair.private), CKR_OK);
        EXPECT(fn->C_Decrypt(session, block, sizeof block, signature, &signature_bytes),
               CKR_DATA_INVALID);
    }
    EXPECT(fn->C_EncryptInit(session, &rsa, pair.public), CKR_OK);
    EXPECT(fn->C_Encrypt(session, sha256_info, 51, signature, &signature_bytes), CKR_OK);
}

int main(void)
{
    return test_main("guard_tokens", set_up, tear_down);
}
