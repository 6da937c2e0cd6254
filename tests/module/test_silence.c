/* test_silence.c - at its most talkative level the log has no random byte, no PIN, no seed and no key. */
#include "fixture.h"

enum { SECRETS_MOST = 4 * 1024 * 1024, SECRET_BYTES = 8 };

static uint64_t *secrets;
static size_t secrets_count;

/* Every piece of SECRET_BYTES of these is a secret from now on. */
static void secrets_add(const uint8_t *bytes, size_t len_bytes)
{
    if (secrets == NULL)
        secrets = malloc(SECRETS_MOST * sizeof *secrets);
    ck_assert_ptr_nonnull(secrets);
    for (size_t at = 0; at + SECRET_BYTES <= len_bytes; at++) {
        ck_assert_uint_lt(secrets_count, SECRETS_MOST);
        memcpy(&secrets[secrets_count++], bytes + at, SECRET_BYTES);
    }
}

static int compare(const void *one, const void *other)
{
    return memcmp(one, other, SECRET_BYTES);
}

/* Bytes in either order. */
static bool is_secret(const void *bytes)
{
    uint64_t turned;
    memcpy(&turned, bytes, sizeof turned);
    turned = __builtin_bswap64(turned);
    return bsearch(bytes, secrets, secrets_count, SECRET_BYTES, compare) != NULL ||
           bsearch(&turned, secrets, secrets_count, SECRET_BYTES, compare) != NULL;
}

/* Whether hexadecimal digits of one begin there. What stands between two bytes is skipped: a blank, ", 0x", "\\x". */
static bool is_secret_in_hex(const char *text)
{
    uint8_t bytes[SECRET_BYTES];
    for (size_t i = 0; i < SECRET_BYTES; i++) {
        text += strspn(text, " ,:-\\x");
        text += strncmp(text, "0x", 2) == 0 ? 2 : 0;
        if (sscanf(text, "%2hhx", &bytes[i]) != 1)
            return false;
        text += 2;
    }
    return is_secret(bytes);
}

/* Where in text, which a NUL ends, a secret is, as it is or in hex. NULL: nowhere. */
static const char *secrets_find(const char *text, size_t len_bytes)
{
    qsort(secrets, secrets_count, sizeof *secrets, compare);
    for (const char *at = text; at < text + len_bytes; at++)
        if ((at + SECRET_BYTES <= text + len_bytes && is_secret(at)) || is_secret_in_hex(at))
            return at;
    return NULL;
}

static CK_BYTE long_pin[] = "Schaf-8-Wolke-31";
static CK_BYTE new_pin[] = "Kuh-77-Regenbogen";
static CK_BYTE seed[] = "Saat-1-Sand-22-Meer";
static CK_BYTE key[16] = {0x9c, 0x41, 0xe7, 0x0d, 0x5b, 0xf2, 0x38, 0xa6,
                          0x17, 0xcb, 0x84, 0x6e, 0xd3, 0x2f, 0x90, 0x65};

/* Everything that there is to say, in a file. */
static void begin_talkative(const char *settings)
{
    setenv("P11_PROXY_LOG", in_root("log debug"), 1);
    secrets_add(long_pin, sizeof long_pin - 1);
    secrets_add(new_pin, sizeof new_pin - 1);
    secrets_add(seed, sizeof seed - 1);
    secrets_add(key, sizeof key);
    capture_stderr();
    proxy_with(settings);
}

static void has_no_secret(const char *name)
{
    static char text[1024 * 1024];
    FILE *file = fopen(in_root(name), "re");
    size_t len = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    text[len] = '\0';
    const char *found = secrets_find(text, len);
    ck_assert_msg(found == NULL, "%s tells: %.64s", name, found);
}

static void draw_sizes(unsigned times)
{
    static const CK_ULONG sizes[] = {16, 8, 100, 1024, 3000};
    CK_BYTE buf[3000] = {0}; /* a target may write nothing */
    for (unsigned i = 0; i < times; i++) {
        CK_ULONG len_bytes = sizes[i % COUNT_OF(sizes)];
        if (fn->C_GenerateRandom(session, buf, len_bytes) == CKR_OK)
            secrets_add(buf, len_bytes);
    }
}

static void log_in_and_out(void)
{
    fn->C_Login(session, CKU_USER, long_pin, sizeof long_pin - 1);
    fn->C_Login(session, CKU_USER, long_pin, sizeof long_pin - 1);
    draw_sizes(10);
    fn->C_SetPIN(session, long_pin, sizeof long_pin - 1, new_pin, sizeof new_pin - 1);
    fn->C_Logout(session);
    fn->C_Login(session, CKU_SO, new_pin, sizeof new_pin - 1);
    fn->C_InitPIN(session, long_pin, sizeof long_pin - 1);
    fn->C_Logout(session);
}

static CK_MECHANISM md5 = {CKM_MD5, key, sizeof key};
static CK_KEY_DERIVATION_STRING_DATA more = {key, sizeof key};
static CK_MECHANISM concatenate = {CKM_CONCATENATE_BASE_AND_DATA, &more, sizeof more};
static CK_MECHANISM hmac = {CKM_SHA_1_HMAC, NULL, 0};

/* Some is refused, and the rest is the token's to answer. */
static void use_keys(void)
{
    static CK_OBJECT_CLASS class = CKO_SECRET_KEY;
    static CK_KEY_TYPE types[] = {CKK_AES, CKK_DES, CKK_GENERIC_SECRET};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        CK_OBJECT_HANDLE made = 1;
        CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class},
                                   {CKA_KEY_TYPE, &types[i], sizeof types[i]},
                                   {CKA_VALUE, key, types[i] == CKK_DES ? 8 : sizeof key}};
        fn->C_CreateObject(session, template, 3, &made);
        fn->C_UnwrapKey(session, &md5, 1, key, sizeof key, template, 2, &made);
        fn->C_DeriveKey(session, &concatenate, made, template, 2, &made);
        fn->C_SetAttributeValue(session, made, template + 2, 1);
        fn->C_DigestInit(session, &md5);
        fn->C_SignInit(session, &hmac, made);
        fn->C_Sign(session, key, sizeof key, key, &(CK_ULONG){0});
        fn->C_SetOperationState(session, key, sizeof key, made, made);
    }
}

/* A token that fails, comes back, has no room for a session of ours, and repeats itself at last. */
static void go_through_bad_times(void)
{
    static const char *const times[] = {"fail 0x30", "ok",         "over 64: fail 0x21",
                                        "ok",        "write half", "ok"};
    script("sessions at most 1");
    fn->C_CloseSession(session);
    session = open_session(0, CKF_RW_SESSION);
    draw_sizes(50);
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        script("C_GenerateRandom%s%s", strchr(times[i], ':') != NULL ? " " : ": ", times[i]);
        fn->C_Login(session, CKU_USER, long_pin, sizeof long_pin - 1);
        draw_sizes(50);
        fn->C_Logout(session);
    }
}

/* _i % 2: the policy refuses, or would; _i / 2: the token takes every key, and there is no thread. */
TEST_EACH(a_life_with_all_that_can_go_wrong_tells_nothing, 0, 4)
{
    script("%s", _i / 2 == 0 ? "" : "keyring");
    begin_talkative(text_of("x-disabled-algorithms: MD5, DES, AES keySize < 256, CKM_SHA_1_HMAC, "
                            "CKM_CONCATENATE_BASE_AND_DATA\nx-policy: %s",
                            _i % 2 == 0 ? "enforce" : "audit"));
    EXPECT(fn->C_Initialize(_i / 2 == 0 ? &os_locking : &no_threads), CKR_OK);
    session = open_session(0, CKF_RW_SESSION);
    draw_sizes(200);
    fn->C_SeedRandom(session, seed, sizeof seed - 1);
    draw_sizes(50);
    log_in_and_out();
    use_keys();
    go_through_bad_times();
    EXPECT(fn->C_Finalize(NULL), CKR_OK);
    ck_assert_uint_ge(messages_with("MD5"), 1);
    ck_assert_uint_ge(messages_with("random"), 3);
    has_no_secret("log");
    has_no_secret("stderr");
}

/* The target's string may have a PIN in it. */
TEST_EACH(a_start_that_fails_does_not_tell_the_targets_string, 0, 4)
{
    static const char *const lines[] = {"", "x-no-such-key: 1", "x-pool-size: 3 fish",
                                        "x-target-init: twice"};
    script("C_Initialize: fail 7");
    begin_talkative(text_of("x-target-init: %s\n%s", (char *)long_pin, lines[_i]));
    ck_assert_uint_ne(fn->C_Initialize(&os_locking), CKR_OK);
    ck_assert_uint_ge(messages_with("p11-proxy"), 1);
    has_no_secret("log");
    has_no_secret("stderr");
}

/* Or a search that finds nothing proves nothing. */
TEST(a_secret_is_found_in_every_form)
{
    static const char *const forms[] = {"%02x", "%02X", "%02x ", "%02x:", "0x%02x, ", "\\x%02x"};
    char text[256];
    secrets_add(key, sizeof key);
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        size_t len = (size_t)snprintf(text, sizeof text, "the bytes are ");
        for (int k = 3; k < 3 + SECRET_BYTES; k++)
            len += (size_t)snprintf(text + len, sizeof text - len, forms[i], key[k]);
        ck_assert_msg(secrets_find(text, len) != NULL, "%s: %s", forms[i], text);
        text[len / 2] = '?';
        ck_assert_msg(secrets_find(text, len) == NULL, "%s: %s", forms[i], text);
    }
    memcpy(text, key, sizeof key);
    text[sizeof key] = '\0';
    ck_assert_ptr_nonnull(secrets_find(text, sizeof key - 3));
    text[7] = '\0';
    ck_assert_ptr_null(secrets_find(text, 7));
}
