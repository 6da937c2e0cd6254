/* test_policy_lists.c - lists in files: which keys count, what is refused, and how a policy is printed. */
#include "policy_helper.h"

#include <dirent.h>
#include <sys/stat.h>

#define MD5    0x210
#define SHA_1  0x220
#define RC4    0x111
#define SHA256 0x250

#define KEY "jdk.tls.disabledAlgorithms"

static bool file_denies(const char *text, uint64_t number)
{
    return denies(NULL, text, number);
}

static bool denies_k256(const struct policy *policy)
{
    static const uint8_t k256[] = "\x06\x05\x2b\x81\x04\x00\x0a";
    struct key_info key = key_info_of(key_type_find(3));
    key_info_params(&key, k256, sizeof k256 - 1);
    return policy_key(policy, NO_MECHANISM, &key, NULL) != NULL;
}

TEST(keys_of_the_jdk_that_end_so_are_joined_with_the_inline_list)
{
    struct policy *policy = policy_of("RC4", "jdk.tls.disabledAlgorithms=MD5\n"
                                             "jdk.certpath.disabledAlgorithms=SHA1\n"
                                             "jdk.tls.legacyAlgorithms=SHA256\n"
                                             "jdk.sasl.disabledMechanisms=SHA256\n"
                                             "jdk.security.caDistrustPolicies=SHA256\n"
                                             "mine.disabledAlgorithms=SHA256\n"
                                             "jdk.jar.disabledAlgorithms=SHA256\n"
                                             "jdk.jar.disabledAlgorithms : DES, \\\n"
                                             " RC2, \\\n\n");
    ck_assert_ptr_nonnull(denied(policy, MD5));
    ck_assert_ptr_nonnull(denied(policy, SHA_1));
    ck_assert_ptr_nonnull(denied(policy, RC4));
    ck_assert_ptr_nonnull(denied(policy, ckm("CKM_DES_CBC")));
    ck_assert_ptr_null(denied(policy, SHA256));
    ck_assert_uint_eq(denied(policy, ckm("CKM_DES_CBC"))->line, 8);
    ck_assert_uint_eq(denied(policy, ckm("CKM_RC2_CBC"))->line, 9);
    ck_assert_str_eq(denied(policy, SHA_1)->key, "jdk.certpath.disabledAlgorithms");
    ck_assert_uint_eq(policy_warnings_count, 1);
    ck_assert_ptr_nonnull(strstr(
        policy_warnings, ":6: mine.disabledAlgorithms is a key of which nothing is in force"));
    policy_free(policy);
}

TEST(separators_comments_and_escapes_are_those_of_java)
{
    static const char *const denying[] = {
        KEY " MD5\n",
        "\t " KEY "\t=  MD5\n",
        "\xef\xbb\xbf" KEY "=MD5\n",
        KEY " = \\\n   RC4, \\\r\n\tMD5\n",
        "jdk.tls.\\\n  disabledAlgorithms=MD5\n",
        KEY "=\\u004d\\u00445\r",
        KEY "=\\M\\D5\n",
        KEY "=RC4,\\tMD5\n",
        "jdk.tls.disabled\\u0041lgorithms=MD5\n",
        KEY "=\"RC4, MD5\"\n",
        /* An even number of backslashes does not go on, and a comment never does. */
        "x=\\\\\n" KEY "=MD5\n",
        "# comment \\\n" KEY "=MD5\r\n\r\n",
    };
    static const char *const others[] = {
        "#" KEY "=MD5\n!x\njdk.jar.disabledAlgorithms=RC4\n",
        /* A comment sign within a line that goes on is part of it. */
        KEY "=RC4, \\\n# MD5\n",
        KEY "=RC4\n\nMD5\n",
        KEY "\\==MD5\njdk.jar.disabledAlgorithms=RC4\n",
        KEY "\\ MD5\njdk.jar.disabledAlgorithms=RC4\n",
    };

    for (size_t i = 0; i < COUNT_OF(denying); i++)
        ck_assert_msg(file_denies(denying[i], MD5), "%s", denying[i]);
    for (size_t i = 0; i < COUNT_OF(others); i++)
        ck_assert_msg(!file_denies(others[i], MD5) && file_denies(others[i], RC4), "%s", others[i]);
}

TEST(ecdh_means_cipher_suites_in_a_tls_key_and_mechanisms_elsewhere)
{
    const uint64_t ecdh = ckm("CKM_ECDH1_DERIVE");
    struct policy *policy = policy_of(NULL, KEY "=MD5, ECDH\n");
    ck_assert_ptr_null(denied(policy, ecdh));
    ck_assert_ptr_nonnull(policy_name(policy, "ECDH"));
    policy_free(policy);
    ck_assert(file_denies("jdk.certpath.disabledAlgorithms=ECDH\n", ecdh));
    ck_assert(denies("ECDH", KEY "=MD5, ECDH\n", ecdh));
    ck_assert(file_denies(KEY "=MD5, ECDH\njdk.jar.disabledAlgorithms=ecdh\n", ecdh));
    ck_assert(!file_denies(KEY "=ECDHE, MD5\n", ecdh));
}

TEST(a_date_in_a_key_about_signed_files_or_certificates_has_no_effect)
{
    static const char *const keys[] = {"jdk.jar.", "jdk.certpath.", "jdk.tls.", "jdk.security."};
    char text[200];

    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        snprintf(text, sizeof text, "%sdisabledAlgorithms=MD5, SHA1 denyAfter 2019-01-01\n",
                 keys[i]);
        ck_assert_msg(file_denies(text, SHA_1) == (i >= 2), "%s", text);
        ck_assert(file_denies(text, MD5));
    }
    ck_assert(denies("SHA1 denyAfter 2019-01-01", NULL, SHA_1));
}

TEST(an_inclusion_of_the_named_curves_is_followed)
{
    struct policy *policy =
        policy_of(NULL, "jdk.disabled.namedCurves = secp256k1, \\\n secp224k1\n" KEY
                        "=include jdk.disabled.namedCurves\n");
    ck_assert(denies_k256(policy));
    ck_assert_str_eq(policy_rule(policy, 0)->key, "jdk.disabled.namedCurves");
    ck_assert_uint_eq(policy_rule(policy, 0)->line, 1);
    ck_assert_uint_eq(policy_rule(policy, 1)->line, 2);
    policy_free(policy);

    policy = policy_of(NULL, "jdk.disabled.namedCurves = secp256k1\n" KEY "=MD5\n");
    ck_assert(!denies_k256(policy));
    policy_free(policy);
    policy = policy_of("include jdk.disabled.namedCurves",
                       "jdk.disabled.namedCurves = secp256k1\n" KEY "=MD5\n");
    ck_assert(denies_k256(policy));
    policy_free(policy);

    /* Of itself, and more than once. */
    policy =
        policy_of(NULL, "jdk.disabled.namedCurves=include jdk.disabled.namedCurves, secp256k1\n" KEY
                        "=include jdk.disabled.namedCurves,include jdk.disabled.namedCurves\n");
    ck_assert_uint_eq(count_of(policy).items, 1);
    policy_free(policy);

    policy_free(policy_of(NULL, KEY "=MD5, include jdk.disabled.namedCurves\n"));
    ck_assert_uint_eq(policy_warnings_count, 1);
    refuses("include jdk.disabled.namedCurves", NULL, "no list file has");
}

/* "include PATH" at the place of a key. */
TEST(included_files_are_joined_and_later_keys_hold)
{
    char folder[64], path[80], text[256];
    make_folder(folder);
    snprintf(path, sizeof path, "%s/other", folder);
    FILE *other = fopen(path, "w");
    fputs(KEY "=RC4\njdk.jar.disabledAlgorithms=SHA1\n", other);
    fclose(other);

    snprintf(text, sizeof text, KEY "=MD5\ninclude %s\njdk.jar.disabledAlgorithms=DES\n", path);
    struct policy *policy = policy_of(NULL, text);
    ck_assert_ptr_null(denied(policy, MD5));
    ck_assert_ptr_nonnull(denied(policy, RC4));
    ck_assert_str_eq(denied(policy, RC4)->file, path);
    ck_assert_ptr_null(denied(policy, SHA_1));
    policy_free(policy);

    /* From the file that includes; and again, so that the first file's keys are the last ones. */
    snprintf(text, sizeof text, "include=%s/../%s/other \n" KEY "=MD5\n", folder,
             strrchr(folder, '/') + 1);
    ck_assert(denies(NULL, text, MD5));
    snprintf(text, sizeof text, "include ../%s/other\n", folder + strlen("/tmp/"));
    ck_assert(denies(NULL, text, RC4));

    other = fopen(path, "w");
    fputs(KEY "=MD5\ninclude other\n", other);
    fclose(other);
    snprintf(text, sizeof text, "include %s\n", path);
    refuses(NULL, text, "does one include itself?");
    unlink(path);
    ck_assert_int_eq(policy_try_text(&policy, NULL, text), -ENOENT);
    ck_assert_msg(strstr(policy_error.text, ":1: include: ") != NULL, "%s", policy_error.text);
    rmdir(folder);
}

TEST(unknown_names_in_a_file_are_warnings_one_a_name)
{
    struct policy *policy =
        policy_of(NULL, KEY "=Foo, MD5, FOO\njdk.jar.disabledAlgorithms=foo, Foo keySize < 3\n");
    ck_assert_uint_eq(policy_warnings_count, 1);
    ck_assert_ptr_nonnull(strstr(policy_warnings, KEY " has no known algorithm"));
    ck_assert_ptr_nonnull(strstr(policy_warnings, ": 'Foo'\n"));
    ck_assert_ptr_nonnull(denied(policy, MD5));
    ck_assert_ptr_nonnull(policy_name(policy, "foo"));
    policy_free(policy);

    char *text = malloc(200000), *to = text;
    to += sprintf(to, KEY "=MD5");
    for (int i = 0; i < 10000; i++)
        to += sprintf(to, ",foo%d", i);
    strcpy(to, "\n");
    policy = policy_of(NULL, text);
    ck_assert_uint_eq(policy_warnings_count, POLICY_WARNINGS_MAX + 1);
    ck_assert_uint_eq(count_of(policy).items, 10001);
    ck_assert_ptr_nonnull(strstr(policy_warnings, "is one of more warnings than are shown"));
    policy_free(policy);
    free(text);
}

TEST(a_file_of_which_nothing_takes_effect_is_never_an_empty_policy)
{
    static const char *const empty[] = {
        "",
        "\n# nothing\n",
        KEY "=",
        KEY "=,, ,\n",
        "jdk.tls.disabledAlg",
        "jdk.disabled.namedCurves=secp256k1\n",
        "mine.disabledAlgorithms=MD5\n",
        "jdk.disabled.namedCurves=include jdk.disabled.namedCurves\n" KEY
        "=include jdk.disabled.namedCurves\n"};

    for (size_t i = 0; i < COUNT_OF(empty); i++) {
        refuses(NULL, empty[i], "proxy.module:8: x-disabled-algorithms-file lists no algorithm");
        refuses("MD5", empty[i], "lists no algorithm");
    }
    refuses(NULL, KEY "=anon, NULL\n",
            ":1: " KEY " lists nothing that takes effect (a part of TLS");
    refuses(NULL, KEY "=MD5 SHA1\n", "takes effect (an unknown name): 'MD5 SHA1'");
    refuses(NULL, KEY "=\"MD5\", \"SHA1\"\n", "takes effect (an unknown name)");
    refuses("MD5", KEY "=TLS_RSA_*\n", "lists nothing that takes effect");
    refuses("anon", KEY "=MD5\n", "proxy.module:7: x-disabled-algorithms lists nothing");
    policy_free(policy_of("MD5", KEY "=MD5\n"));
}

TEST(a_file_that_was_cut_off_or_malformed_is_refused_with_its_line)
{
    refuses(NULL, KEY "=MD5, \\", "its last line goes on");
    refuses(NULL, "a=b\n" KEY "=\\\n RSA keySize < x\n",
            ":3: " KEY " has no number of bits behind keySize and its operator: 'RSA keySize < x'");
    refuses(NULL, KEY "=MD5, \\\n   ", "its last line goes on");
    refuses(NULL, "a=b\n" KEY "=MD5\\u12\n", ":2: " KEY " has no four hexadecimal digits");
    refuses(NULL, "a=b\\uzzzz\n", ":1: a has no four hexadecimal digits");
}

static void refuses_path(const char *path, int code, const char *should)
{
    static const char place[] = "proxy.module:8: x-disabled-algorithms-file: ";
    struct policy *policy = NULL;

    ck_assert_int_eq(policy_try(&policy, "MD5", path, NOW_S), code);
    ck_assert_ptr_null(policy);
    ck_assert_msg(strstr(policy_error.text, should) != NULL, "%s", policy_error.text);
    ck_assert_ptr_eq(strstr(policy_error.text, place), policy_error.text);
}

TEST(what_is_no_readable_regular_text_file_is_refused_at_once)
{
    char path[64];
    make_folder(path);
    refuses_path(path, -EINVAL, "is not a regular file");
    rmdir(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    refuses_path(path, -EINVAL, "is not a regular file");
    unlink(path);
    refuses_path(path, -ENOENT, "No such file or directory");
    refuses_path("/dev/zero", -EINVAL, "is not a regular file");

    const char *large = file_with(KEY "=MD5\n#");
    ck_assert_int_eq(truncate(large, 1024 * 1024 + 1), 0);
    refuses_path(large, -EINVAL, "larger than 1MiB");
    ck_assert_int_eq(truncate(large, 1024 * 1024), 0);
    refuses_path(large, -EINVAL, "NUL byte");
    unlink(large);
}

/* A mebibyte of the same, then an end. */
static char *repeated(const char *start, const char *one, const char *end)
{
    char *text = malloc(1024 * 1024), *to = text + sprintf(text, "%s", start);
    while (to - text < 1000000)
        to = stpcpy(to, one);
    strcpy(to, end);
    return text;
}

TEST(deep_and_long_files_do_not_hang)
{
    static const char *const parts[][3] = {
        {KEY "=MD5", ",\\\n ", "RC4\n"},
        {"", KEY "=RC4\n", "\n"},
        {"jdk.disabled.namedCurves=secp256k1\n" KEY "=RC4", ",include jdk.disabled.namedCurves",
         "\n"},
        {KEY "=RC4", ",RSA keySize == 7 & keySize == 8", "\n"},
    };
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        char *text = repeated(parts[i][0], parts[i][1], parts[i][2]);
        ck_assert(file_denies(text, RC4));
        free(text);
    }
    char *text = repeated(KEY "=RC4", ",HMAC keySize<7", "\n");
    refuses(NULL, text, "one key-size rule more than can be held");
    free(text);
}

static char *text_of(const struct policy *policy)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    policy_print(policy, out);
    fclose(out);
    return text;
}

/* A whole small file; the caller frees it. */
static char *contents_of(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 200000);
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_lt(fread(text, 1, 199999, file), 199999);
    fclose(file);
    return text;
}

/* What differs is printed, for diff(1). Frees expected. */
static void prints(const struct policy *policy, char *expected)
{
    char *printed = text_of(policy);
    if (strcmp(printed, expected) != 0) {
        fputs(printed, stdout);
        ck_abort_msg("another text than expected is printed");
    }
    free(printed);
    free(expected);
}

/* Each *.security and *.config of tests/policy is understood without a warning, and one is what is committed. */
TEST(list_files_print_as_committed)
{
    DIR *folder = opendir(".");
    struct dirent *entry;
    size_t count = 0;

    while ((entry = readdir(folder)) != NULL) {
        const char *ending = strrchr(entry->d_name, '.');
        struct policy *policy = NULL;
        if (ending == NULL || (strcmp(ending, ".security") != 0 && strcmp(ending, ".config") != 0))
            continue;
        ck_assert_msg(policy_try(&policy, NULL, entry->d_name, NOW_S) == 0, "%s",
                      policy_error.text);
        ck_assert_msg(policy_warnings_count == 0, "%s", policy_warnings);
        if (strcmp(entry->d_name, "services.security") == 0)
            prints(policy, contents_of("services.txt"));
        policy_free(policy);
        count++;
    }
    closedir(folder);
    ck_assert_uint_ge(count, 6);
}

TEST(every_kind_of_item_prints_what_it_denies)
{
    struct policy *policy = policy_of(
        "RSA keySize < 2048, secp192r1, 0x80001234, ML-KEM-512, SHA512withECDSA keySize < 256, "
        "0x80004321 keySize == 64, secp192r1, SHA256 denyAfter 2099-12-31",
        "jdk.tls.disabledAlgorithms=\\u001b[31mred, CKM_MD5\n");
    char *text = text_of(policy);
    static const char *const parts[] = {
        "policy: enforce\nitems: 10\nwithout effect: 2\ndenied mechanisms: 2\n"
        "denied curves: 1\nkey-size rules: 3\n\nproxy.module:7: RSA keySize < 2048\n",
        "\n    denies such keys of type RSA\n",
        ": secp192r1\n    denies curve secp192r1\n",
        "\n    denies 0x80001234\n",
        "\n    denies parameter set ML-KEM-512\n",
        "\n    denies such keys CKM_ECDSA_SHA512\n",
        "\n    denies such keys 0x80004321\n",
        "\n    no effect: its date is to come\n",
        "?[31mred\n    no effect: an unknown name\n"};

    for (size_t i = 0; i < COUNT_OF(parts); i++)
        ck_assert_msg(strstr(text, parts[i]) != NULL, "no '%s' in %s", parts[i], text);
    ck_assert_ptr_null(strchr(text, '\x1b'));
    free(text);
    policy_free(policy);
    prints(NULL, strdup("policy: none\n"));
}

int main(void)
{
    return test_main("policy lists", NULL, NULL);
}
