/* test_guard_lists.c - what the lists of mechanisms show, and how what is disabled can be written down. */
#include "fixture.h"

#include <unistd.h>

#define UNTOUCHED 0x5ca1ab1e5ca1ab1eUL

static void start(const char *settings)
{
    script("keyring; interfaces 3.2");
    begin(settings);
}

static void has(const CK_MECHANISM_TYPE *types, size_t count)
{
    memcpy(shared->keyring.mechanisms, types, count * sizeof *types);
    shared->keyring.count = count;
}

static bool is_shown(CK_MECHANISM_TYPE type)
{
    CK_MECHANISM_TYPE list[1024];
    CK_ULONG count = 1024;
    EXPECT(fn->C_GetMechanismList(0, list, &count), CKR_OK);
    for (CK_ULONG i = 0; i < count; i++)
        if (list[i] == type)
            return true;
    return false;
}

TEST(the_two_calls_are_about_the_filtered_list)
{
    static const CK_MECHANISM_TYPE all[] = {CKM_MD5, 0x250, CKM_MD5_RSA_PKCS, 0x80000142,
                                            CKM_MD5_HMAC};
    CK_MECHANISM_TYPE list[8];
    CK_ULONG count = 99;
    start("x-disabled-algorithms: MD5");
    has(all, COUNT_OF(all));
    EXPECT(fn->C_GetMechanismList(0, NULL, &count), CKR_OK);
    ck_assert_uint_eq(count, 3);
    for (CK_ULONG room = 0; room < 8; room++) {
        for (size_t i = 0; i < 8; i++)
            list[i] = UNTOUCHED;
        count = room;
        EXPECT(fn->C_GetMechanismList(0, list, &count), room < 3 ? CKR_BUFFER_TOO_SMALL : CKR_OK);
        ck_assert_uint_eq(count, 3);
        ck_assert_uint_eq(list[room < 3 ? 0 : 3], UNTOUCHED);
    }
    ck_assert(list[0] == 0x250 && list[1] == 0x80000142 && list[2] == CKM_MD5_HMAC);
}

/* More mechanisms than fit into one question, and a list that grows between two questions. */
TEST(a_long_list_that_grows_is_read_in_one_piece)
{
    static CK_MECHANISM_TYPE list[KEYRING_MECHANISMS];
    CK_ULONG count = KEYRING_MECHANISMS;
    start("x-disabled-algorithms: 0x80000003");
    for (CK_ULONG i = 0; i < KEYRING_MECHANISMS; i++)
        shared->keyring.mechanisms[i] = 0x80000000 + i;
    shared->keyring.count = 1500;
    EXPECT(fn->C_GetMechanismList(0, list, &count), CKR_OK);
    ck_assert_uint_eq(count, 1499);
    ck_assert_uint_eq(list[3], 0x80000004);
    shared->keyring.grows = 1;
    count = KEYRING_MECHANISMS;
    EXPECT(fn->C_GetMechanismList(0, list, &count), CKR_OK);
    ck_assert_uint_eq(count, 1500);
}

TEST(info_is_refused_or_says_the_raised_size)
{
    static const struct {
        CK_MECHANISM_TYPE type;
        CK_ULONG least;
    } rows[] = {{CKM_RSA_PKCS, 2048},
                {CKM_RSA_PKCS_KEY_PAIR_GEN, 2048},
                {CKM_EC_KEY_PAIR_GEN, 224},
                {CKM_AES_CBC, 24},
                {CKM_RC4, 128},
                {CKM_SHA256, 16},
                {CKM_DES3_CBC, 16}};
    CK_MECHANISM_INFO info;
    start("x-disabled-algorithms: MD5, RSA keySize < 2048, AES keySize < 192, RC4 keySize < 128, "
          "DES keySize < 60, EC keySize < 224");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        shared->keyring.info = (CK_MECHANISM_INFO){.ulMinKeySize = 16, .ulMaxKeySize = 4096};
        EXPECT(fn->C_GetMechanismInfo(0, rows[i].type, &info), CKR_OK);
        ck_assert_uint_eq(info.ulMinKeySize, rows[i].least);
        shared->keyring.info.ulMinKeySize = 3072;
        EXPECT(fn->C_GetMechanismInfo(0, rows[i].type, &info), CKR_OK);
        ck_assert_uint_eq(info.ulMinKeySize, 3072);
    }
    EXPECT(fn->C_GetMechanismInfo(0, CKM_MD5_RSA_PKCS, &info), CKR_MECHANISM_INVALID);
    EXPECT(fn->C_GetMechanismInfo(0, CKM_DES_CBC, &info), CKR_MECHANISM_INVALID);
}

/* A list of java.security's own kind denies a mechanism to some of what it can do. */
TEST(info_says_only_what_is_permitted)
{
    static const CK_MECHANISM_TYPE all[] = {CKM_RSA_PKCS, CKM_MD5, CKM_AES_CBC};
    static const CK_FLAGS sign = CKF_SIGN | CKF_SIGN_RECOVER | CKF_VERIFY | CKF_VERIFY_RECOVER;
    static const CK_FLAGS cipher = CKF_ENCRYPT | CKF_DECRYPT | CKF_WRAP | CKF_UNWRAP;
    CK_MECHANISM rsa = {CKM_RSA_PKCS, NULL, 0};
    CK_MECHANISM_INFO info;
    write_in_root("crypto", "jdk.crypto.disabledAlgorithms=Cipher.RSA, MessageDigest.MD5\n");
    start(text_of("x-disabled-algorithms-file: %s", in_root("crypto")));
    has(all, 3);
    shared->keyring.info.flags = CKF_HW | sign | cipher;
    EXPECT(fn->C_GetMechanismInfo(0, CKM_RSA_PKCS, &info), CKR_OK);
    ck_assert_uint_eq(info.flags, CKF_HW | sign);
    EXPECT(fn->C_GetMechanismInfo(0, CKM_AES_CBC, &info), CKR_OK);
    ck_assert_uint_eq(info.flags, CKF_HW | sign | cipher);
    EXPECT(fn->C_GetMechanismInfo(0, CKM_MD5, &info), CKR_MECHANISM_INVALID);
    ck_assert(is_shown(CKM_RSA_PKCS) && !is_shown(CKM_MD5) && is_shown(CKM_AES_CBC));
    EXPECT(fn->C_EncryptInit(session, &rsa, 1), CKR_MECHANISM_INVALID);
    EXPECT(fn->C_UnwrapKey(session, &rsa, 1, NULL, 0, NULL, 0, NULL), CKR_MECHANISM_INVALID);
    EXPECT(fn->C_SignInit(session, &rsa, 1), CKR_OK);
}

static void point_link_to(const char *name)
{
    ck_assert_int_eq(symlink(name, in_root("fresh")), 0);
    ck_assert_int_eq(rename(in_root("fresh"), in_root("policy")), 0);
}

/* A new life; then, of MD5, RC4 and SHA-256, the mechanisms that are shown. */
static const char *shown(void)
{
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    initialize();
    return text_of("%s%s%s", is_shown(CKM_MD5) ? "MD5 " : "", is_shown(CKM_RC4) ? "RC4 " : "",
                   is_shown(CKM_SHA256) ? "SHA256" : "");
}

/* As crypto-policies has it: a link to a generated file of several keys, which is swapped at run time. */
TEST(a_list_file_behind_a_link_is_read_again_at_each_initialize)
{
    static const CK_MECHANISM_TYPE all[] = {CKM_MD5, CKM_RC4, CKM_SHA256};
    write_in_root("first", "jdk.tls.disabledAlgorithms=SHA1, \\\n  MD5, frobnicate\n"
                           "jdk.certpath.disabledAlgorithms=DES\njdk.tls.legacyAlgorithms=RC4\n");
    write_in_root("second", "jdk.tls.disabledAlgorithms=RC4\n");
    write_in_root("empty", "jdk.tls.disabledAlgorithms=");
    point_link_to("first");
    start(text_of("x-disabled-algorithms: CKM_SHA256\nx-disabled-algorithms-file: %s",
                  in_root("policy")));
    has(all, COUNT_OF(all));
    ck_assert_uint_eq(messages_with("frobnicate"), 1);
    ck_assert_str_eq(shown(), "RC4 ");
    point_link_to("second");
    ck_assert(!is_shown(CKM_MD5) && is_shown(CKM_RC4));
    ck_assert_str_eq(shown(), "MD5 ");
    /* Half written or gone: an error, never an empty list. */
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    point_link_to("empty");
    EXPECT(fn->C_Initialize(&os_locking), CKR_GENERAL_ERROR);
    point_link_to("nowhere");
    EXPECT(fn->C_Initialize(&os_locking), CKR_GENERAL_ERROR);
}
