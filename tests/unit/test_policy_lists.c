/* test_policy_lists.c - lists and their files: what is read and how, what is refused, and how a policy is printed. */
#include "policy_helper.h"

#include <dirent.h>
#include <errno.h>

#define KEY "jdk.tls.disabledAlgorithms"

/* A list file's text; names that it denies, and others. */
static const struct {
    const char *text, *denied, *permitted;
} files[] = {
    {KEY "=MD5\njdk.certpath.disabledAlgorithms=SHA1\njdk.jar.disabledAlgorithms=RC4\n"
         "jdk.tls.legacyAlgorithms=SHA256\njdk.sasl.disabledMechanisms=SHA256\n"
         "jdk.security.caDistrustPolicies=SHA256\nmine.disabledAlgorithms=SHA256\n",
     "CKM_MD5 CKM_SHA_1 CKM_RC4", "CKM_SHA256"},
    /* The last line with a key counts. */
    {"jdk.jar.disabledAlgorithms=MD5\njdk.jar.disabledAlgorithms : RC4", "CKM_RC4", "CKM_MD5"},
    /* As java.util.Properties reads it. */
    {KEY " MD5\n", "CKM_MD5", "CKM_RC4"},
    {"\t " KEY "\t=  MD5\n", "CKM_MD5", "CKM_RC4"},
    {"\xef\xbb\xbf" KEY "=MD5\n", "CKM_MD5", "CKM_RC4"},
    {KEY " = \\\n   RC4, \\\r\n\tMD5\n", "CKM_MD5 CKM_RC4", "CKM_SHA_1"},
    {"jdk.tls.\\\n  disabledAlgorithms=MD5\n", "CKM_MD5", "CKM_RC4"},
    {KEY "=\\u004d\\u00445\r", "CKM_MD5", "CKM_RC4"},
    {KEY "=\\M\\D5,\\tRC4\n", "CKM_MD5 CKM_RC4", "CKM_SHA_1"},
    {"jdk.tls.disabled\\u0041lgorithms=MD5\n", "CKM_MD5", "CKM_RC4"},
    {KEY "=\"RC4, MD5\"\n", "CKM_MD5 CKM_RC4", "CKM_SHA_1"},
    {KEY "\\==MD5\njdk.jar.disabledAlgorithms=RC4\n", "CKM_RC4", "CKM_MD5"},
    {KEY "\\ MD5\njdk.jar.disabledAlgorithms=RC4\n", "CKM_RC4", "CKM_MD5"},
    /* An even number of backslashes does not go on, and a comment never does. */
    {"x=\\\\\n" KEY "=MD5\n", "CKM_MD5", "CKM_RC4"},
    {"# comment \\\n" KEY "=MD5\r\n\r\n", "CKM_MD5", "CKM_RC4"},
    {"#" KEY "=MD5\n!x\njdk.jar.disabledAlgorithms=RC4\n", "CKM_RC4", "CKM_MD5"},
    /* A comment sign within a line that goes on is part of it. */
    {KEY "=RC4, \\\n# MD5\n", "CKM_RC4", "CKM_MD5"},
    {KEY "=RC4\n\nMD5\n", "CKM_RC4", "CKM_MD5"},
    /* In a key of TLS, ECDH is a part of suites. */
    {KEY "=MD5, ECDH, ECDHE\n", "CKM_MD5", "CKM_ECDH1_DERIVE"},
    {KEY "=MD5, ECDH\njdk.jar.disabledAlgorithms=ecdh\n", "CKM_ECDH1_DERIVE", "CKM_RC4"},
    /* A date in a key of signed files or certificates is about those. */
    {KEY "=MD5 denyAfter 2019-01-01\n", "CKM_MD5", "CKM_RC4"},
    {"jdk.jar.disabledAlgorithms=RC4, MD5 denyAfter 2019-01-01\n", "CKM_RC4", "CKM_MD5"},
    {"jdk.certpath.disabledAlgorithms=RC4, MD5 denyAfter 2019-01-01\n", "CKM_RC4", "CKM_MD5"},
};

TEST(a_list_file_is_read_as_the_jdk_reads_it)
{
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        judges(NULL, files[i].text, true, files[i].denied);
        judges(NULL, files[i].text, false, files[i].permitted);
    }
    judges("ECDH", KEY "=MD5, ECDH\n", true, "CKM_MD5 CKM_ECDH1_DERIVE");
}

/* The first of several rules is the one that denies. */
TEST(a_rule_tells_where_it_stands)
{
    static const struct {
        const char *mechanism, *text, *key;
        unsigned line;
    } rules[] = {{"CKM_RC4", "RC4", NULL, 7},
                 {"CKM_MD5_RSA_PKCS", "MD5withRSA", NULL, 7},
                 {"CKM_MD5", "MD5", KEY, 2},
                 {"CKM_RSA_PKCS", "RSA", KEY, 4},
                 {"CKM_RC2_CBC", "RC2", KEY, 4}};
    A_POLICY *policy = policy_of("RC4, MD5withRSA", "mine.disabledAlgorithms=DES\n" KEY
                                                    " : MD5, \\\n \\\n RSA,  RC2\n");
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        const struct policy_rule *rule = denied(policy, ckm(rules[i].mechanism));
        ck_assert_str_eq(rule->text, rules[i].text);
        ck_assert_pstr_eq(rule->key, rules[i].key);
        ck_assert_uint_eq(rule->line, rules[i].line);
        ck_assert(rules[i].key != NULL || strcmp(rule->file, "proxy.module") == 0);
    }
    ck_assert_uint_eq(policy_warnings_count, 1);
    ck_assert_ptr_nonnull(strstr(
        policy_warnings, ":1: mine.disabledAlgorithms is a key of which nothing is in force"));
}

/* Lists, and how many items and curves they deny with the named curves. */
TEST(an_inclusion_of_the_named_curves_is_followed)
{
#define CURVES_KEY     "jdk.disabled.namedCurves"
#define INCLUDE_CURVES "include " CURVES_KEY
    static const struct {
        const char *list, *text;
        size_t items, curves;
        unsigned warnings;
    } cases[] = {
        {NULL, CURVES_KEY "=secp256k1, \\\n secp224k1\n" KEY "=" INCLUDE_CURVES "\n", 2, 2, 0},
        {NULL, CURVES_KEY "=secp256k1\n" KEY "=MD5\n", 1, 0, 0},
        {INCLUDE_CURVES, CURVES_KEY "=secp256k1\n" KEY "=MD5\n", 2, 1, 0},
        /* Of itself, and more than once. */
        {NULL,
         CURVES_KEY "=" INCLUDE_CURVES ", secp256k1\n" KEY "=" INCLUDE_CURVES "," INCLUDE_CURVES
                    "\n",
         1, 1, 0},
        {NULL, KEY "=MD5, " INCLUDE_CURVES "\n", 1, 0, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        A_POLICY *policy = policy_of(cases[i].list, cases[i].text);
        struct policy_counts counts = policy_count(policy);
        ck_assert_uint_eq(counts.items, cases[i].items);
        ck_assert_uint_eq(counts.curves, cases[i].curves);
        ck_assert_uint_eq(policy_warnings_count, cases[i].warnings);
        if (i == 0)
            ck_assert_str_eq(policy_rule(policy, 1)->key, CURVES_KEY);
        if (i == 0)
            ck_assert_uint_eq(policy_rule(policy, 1)->line, 2);
    }
}

/* The lists are refused with a message that has this in it. */
static void refuses(const char *list, const char *text, const char *should)
{
    struct policy *policy;
    int rc = policy_try_text(&policy, list, text);
    ck_assert_msg(rc == -EINVAL && policy == NULL, "'%s' '%s' is taken", list ? list : "",
                  text ? text : "");
    ck_assert_msg(strstr(policy_error.text, should) != NULL, "no '%s' in %s", should,
                  policy_error.text);
}

/* "include PATH" at the place of a key. A path is relative to the file that includes. */
TEST(included_files_are_joined_and_later_keys_hold)
{
    const char *path = in_root("other");
    const char *text = text_of(KEY "=MD5\ninclude %s\njdk.jar.disabledAlgorithms=DES\n", path);
    write_in_root("other", KEY "=RC4\njdk.jar.disabledAlgorithms=SHA1\n");
    judges(NULL, text, true, "CKM_RC4 CKM_DES_CBC");
    judges(NULL, text, false, "CKM_MD5 CKM_SHA_1");
    A_POLICY *policy = policy_of(NULL, text);
    ck_assert_str_eq(denied(policy, ckm("CKM_RC4"))->file, path);
    judges(NULL, "include = other \n" KEY "=MD5\n", true, "CKM_MD5 CKM_SHA_1");

    text = text_of("include %s\n", path);
    write_in_root("other", KEY "=MD5\ninclude other\n");
    refuses(NULL, text, "does one include itself?");
    unlink(path);
    struct policy *none;
    ck_assert_int_eq(policy_try_text(&none, NULL, text), -ENOENT);
    ck_assert_msg(strstr(policy_error.text, ":1: include: ") != NULL, "%s", policy_error.text);
}

TEST(unknown_names_in_a_file_are_warnings_one_a_name)
{
    A_POLICY *policy =
        policy_of(NULL, KEY "=Foo, MD5, FOO\njdk.jar.disabledAlgorithms=foo, Foo keySize < 3\n");
    ck_assert_uint_eq(policy_warnings_count, 1);
    ck_assert_ptr_nonnull(strstr(policy_warnings, KEY " has no known algorithm"));
    ck_assert_ptr_nonnull(strstr(policy_warnings, ": 'Foo'\n"));
    ck_assert_ptr_nonnull(policy_name(policy, "foo"));

    char *text = malloc(200000), *to = text;
    to += sprintf(to, KEY "=MD5");
    for (int i = 0; i < 10000; i++)
        to += sprintf(to, ",foo%d", i);
    policy_free(policy_of(NULL, text));
    ck_assert_uint_eq(policy_warnings_count, POLICY_WARNINGS_MAX + 1);
    ck_assert_ptr_nonnull(strstr(policy_warnings, "is one of more warnings than are shown"));
    free(text);
}

/* An inline list, a list file's text, and what is said of them. */
static const char *const refused[][3] = {
    {"MD5, SHA257", NULL,
     "proxy.module:7: x-disabled-algorithms has no known algorithm, mechanism or curve "
     "(nearest: SHA256): 'SHA257'"},
    {"secp192k2", NULL, "(nearest: secp192k1)"},
    {"include other", NULL, "'include other'"},
    {"include jdk.disabled.namedCurves", NULL, "no list file has"},
    {"MessageDigest.MD5", NULL, "'MessageDigest.MD5'"},
    {"Foo/CBC/PKCS5Padding", NULL, "no known algorithm"},
    {"1234x", NULL, "no known algorithm"},
    /* What looks like a list, and is none. */
    {"MD5 SHA1", NULL, "'MD5 SHA1'"},
    {"\"MD5\", \"SHA1\"", NULL, "'MD5\"'"},
    {"MD5,\xc2\xa0SHA1", NULL, "'\\xc2\\xa0SHA1'"},
    {"MD5 # no more", NULL, "curve: 'MD5 # no more'"},
    /* Java pads itself. */
    {"MD5, AES/CBC/PKCS5Padding", NULL, "write AES/CBC, as an example, or CKM_AES_CBC_PAD"},
    {"aes/ecb/pkcs5padding", NULL, "a padding that Java does itself"},
    /* Numbers. */
    {"0x1FFFFFFFFFFFFFFFF", NULL, "mechanism number"},
    {"80000142", NULL, "mechanism number"},
    {"0x", NULL, "mechanism number"},
    {"0528", NULL, "mechanism number"},
    {"18446744073709551616", NULL, "mechanism number"},
    {"18446744073709551615", NULL, "mechanism number"},
    {"0x80000142h", NULL, "mechanism number"},
    /* Conditions. */
    {"RSA keySise < 2048", NULL, "'RSA keySise < 2048'"},
    {"RSA keySize", NULL, "no <=, <, =="},
    {"RSA keySize = 2048", NULL, "no <=, <, =="},
    {"RSA keySize <", NULL, "no number of bits"},
    {"RSA keySize < -1", NULL, "no number of bits"},
    {"RSA keySize < 99999999999", NULL, "no number of bits"},
    {"RSA keySize < 2048 &", NULL, "where a condition begins"},
    {"RSA keySize < 2048 keySize > 3", NULL, "no & between"},
    {"RSA keySize < 2048x", NULL, "no & between"},
    {"RSA keySize != 1 & keySize != 2", NULL, "more than one !="},
    {"SHA1 usage & jdkCA", NULL, "no usage behind"},
    {"SHA1 denyAfter", NULL, "no date"},
    {"SHA1 denyAfter 2019-02-29", NULL, "no date"},
    {"SHA1 denyAfter 2019-1-1", NULL, "no date"},
    {"SHA1 denyAfter 0000-01-01", NULL, "no date"},
    {NULL, "a=b\n" KEY "=\\\n RSA keySize < x\n",
     ":3: " KEY " has no number of bits behind keySize and its operator: 'RSA keySize < x'"},
    /* A file that was cut off, or is no properties file. */
    {NULL, KEY "=MD5, \\", "its last line goes on"},
    {NULL, KEY "=MD5, \\\n   ", "its last line goes on"},
    {NULL, "a=b\n" KEY "=MD5\\u12\n", ":2: " KEY " has no four hexadecimal digits"},
    {NULL, "a=b\\uzzzz\n", ":1: a has no four hexadecimal digits"},
    /* Lists of which nothing takes effect are no empty policy, whatever stands beside them. */
    {"MD5", "", "proxy.module:8: x-disabled-algorithms-file lists no algorithm"},
    {NULL, "\n# nothing\n", "lists no algorithm"},
    {"MD5", KEY "=", "lists no algorithm"},
    {NULL, KEY "=,, ,\n", "lists no algorithm"},
    {NULL, "jdk.tls.disabledAlg", "lists no algorithm"},
    {NULL, "jdk.disabled.namedCurves=secp256k1\n", "lists no algorithm"},
    {NULL, "mine.disabledAlgorithms=MD5\n", "lists no algorithm"},
    {"MD5", KEY "=include jdk.disabled.namedCurves\njdk.disabled.namedCurves=\n",
     "lists no algorithm"},
    {NULL, KEY "=anon, NULL\n", ":1: " KEY " lists nothing that takes effect (a part of TLS"},
    {NULL, KEY "=MD5 SHA1\n", "takes effect (an unknown name): 'MD5 SHA1'"},
    {NULL, KEY "=\"MD5\", \"SHA1\"\n", "takes effect (an unknown name)"},
    {"MD5", KEY "=TLS_RSA_*\n", "lists nothing that takes effect"},
    {"anon", KEY "=MD5\n", "proxy.module:7: x-disabled-algorithms lists nothing"},
};

TEST(what_is_no_list_is_refused_with_its_place_and_what_would_be_right)
{
    char item[5000];
    struct policy *policy;

    for (size_t i = 0; i < COUNT_OF(refused); i++)
        refuses(refused[i][0], refused[i][1], refused[i][2]);
    memset(item, 'x', sizeof item);
    item[0] = '\x1b';
    item[sizeof item - 1] = '\0';
    refuses(item, NULL, "'\\x1bxxx");
    ck_assert_uint_lt(strlen(policy_error.text), 300);
    ck_assert_int_eq(policy_try(&policy, "MD5", "/dev/zero"), -EINVAL);
    ck_assert_ptr_null(policy);
    ck_assert_ptr_nonnull(strstr(policy_error.text, "proxy.module:8: x-disabled-algorithms-file: "
                                                    "/dev/zero: is not a regular file"));
}

/* Each beside MD5, because a list of nothing else is refused. */
TEST(what_has_no_effect_says_why)
{
    static const char *const items[][2] = {
        {"anon", "TLS cipher suites"},
        {"TLS_RSA_*", "a TLS cipher suite"},
        {"TLS_RSA_WITH_AES_128_CBC_SHA", "a TLS cipher suite"},
        {"AES_128_CBC", "TLS cipher suites"},
        {"DTLSv1.0", "a protocol version"},
        {"ffdhe2048", "a TLS group"},
        {"rsa_pkcs1_sha1 usage HandshakeSignature", "a TLS signature scheme"},
        {"SHA1 jdkCA & usage TLSServer", "certificates"},
        {"RSA keySize < 9999 & jdkCA", "certificates"},
        {"RSA keySize < 64 & keySize > 64", "no size meets"},
        {"RSA keySize == 64 & keySize != 64", "no size meets"},
        {"ML-KEM keySize < 1024", "no size in bits"},
        {"MD5withECDSA", "no mechanism is this combination"},
        {"SHA256withRSA/PSS", "no mechanism is this combination"},
        {"AES_128", "write AES keySize == 128"},
    };

    for (size_t i = 0; i < COUNT_OF(items); i++) {
        const char *list = text_of("MD5, %s", items[i][0]);
        A_POLICY *policy = policy_of(list, NULL);
        const char *why = policy_rule(policy, 1)->no_effect;
        ck_assert_msg(why != NULL && strstr(why, items[i][1]) != NULL, "%s: %s", list, why);
        ck_assert(!policy_looks_at_keys_of(policy, NO_MECHANISM));
        for (size_t j = 0; j < mechanism_count; j++) {
            const struct policy_rule *rule = denied(policy, mechanisms[j].number);
            if (rule != NULL && rule != policy_rule(policy, 0))
                ck_abort_msg("%s denies %s", list, mechanisms[j].names);
        }
        refuses(items[i][0], NULL, "lists nothing that takes effect (");
    }
}

TEST(deep_and_long_files_do_not_hang)
{
    static const char *const parts[][2] = {
        {KEY "=RC4", ",\\\n "},
        {"", KEY "=RC4\n"},
        {"jdk.disabled.namedCurves=secp256k1\n" KEY "=RC4", ",include jdk.disabled.namedCurves"},
        {KEY "=RC4", ",RSA keySize == 7 & keySize == 8"},
        {KEY "=RC4", ",HMAC keySize<7"},
    };
    static char text[1024 * 1024];

    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        char *to = stpcpy(text, parts[i][0]);
        while (to - text < 1000000)
            to = stpcpy(to, parts[i][1]);
        strcpy(to, "\n");
        if (i + 1 < COUNT_OF(parts))
            judges(NULL, text, true, "CKM_RC4");
        else
            refuses(NULL, text, "one key-size rule more than can be held");
    }
}

static char *printed(const struct policy *policy)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    policy_print(policy, out);
    fclose(out);
    return text;
}

/* Each *.security and *.config of tests/policy is understood without a warning, and one is what is committed. What
 * differs is printed, for diff(1). */
TEST(list_files_print_as_committed)
{
    DIR *folder = opendir(".");
    struct dirent *entry;
    char expected[4096] = "";
    FILE *file = fopen("services.txt", "r");
    size_t count = fread(expected, 1, sizeof expected - 1, file);

    fclose(file);
    for (count = 0; (entry = readdir(folder)) != NULL;) {
        const char *ending = strrchr(entry->d_name, '.');
        A_POLICY *policy = NULL;
        if (ending == NULL || (strcmp(ending, ".security") != 0 && strcmp(ending, ".config") != 0))
            continue;
        ck_assert_msg(policy_try(&policy, NULL, entry->d_name) == 0, "%s", policy_error.text);
        ck_assert_msg(policy_warnings_count == 0, "%s", policy_warnings);
        char *text = printed(policy);
        if (strcmp(entry->d_name, "services.security") == 0 && strcmp(text, expected) != 0) {
            fputs(text, stdout);
            ck_abort_msg("another text than expected is printed");
        }
        free(text);
        count++;
    }
    closedir(folder);
    ck_assert_uint_ge(count, 6);
}

TEST(every_kind_of_item_prints_what_it_denies)
{
    static const char *const parts[] = {
        "policy: enforce\nitems: 10\nwithout effect: 2\ndenied mechanisms: 2\n",
        "\ndenied curves: 1\nkey-size rules: 3\n\nproxy.module:7: RSA keySize < 2048\n",
        "\n    denies such keys of type RSA\n",
        ": secp192r1\n    denies curve secp192r1\n",
        "\n    denies 0x80001234\n",
        "\n    denies parameter set ML-KEM-512\n",
        "\n    denies such keys CKM_ECDSA_SHA512\n",
        "\n    denies such keys 0x80004321\n",
        "\n    no effect: its date is to come\n",
        "?[31mred\n    no effect: an unknown name\n"};
    A_POLICY *policy = policy_of(
        "RSA keySize < 2048, secp192r1, 0x80001234, ML-KEM-512, SHA512withECDSA keySize < 256, "
        "0x80004321 keySize == 64, secp192r1, SHA256 denyAfter 2099-12-31",
        "jdk.tls.disabledAlgorithms=\\u001b[31mred, CKM_MD5\n");
    char *text = printed(policy);

    for (size_t i = 0; i < COUNT_OF(parts); i++)
        ck_assert_msg(strstr(text, parts[i]) != NULL, "no '%s' in %s", parts[i], text);
    ck_assert_ptr_null(strchr(text, '\x1b'));
    free(text);
}
