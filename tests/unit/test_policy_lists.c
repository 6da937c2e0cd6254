/* test_policy_lists.c - lists in files: which keys count, and what is refused. */
#include "policy_helper.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>

#define MD5    0x210
#define SHA_1  0x220
#define RC4    0x111
#define SHA256 0x250

static bool file_denies(const char *text, uint64_t number)
{
    struct policy *policy = policy_of_file_text(text);
    bool denied = policy_mechanism(policy, number) != NULL;
    policy_free(policy);
    return denied;
}

START_TEST(keys_that_end_in_disabled_algorithms_are_joined)
{
    struct policy *policy = policy_of_file_text("jdk.tls.disabledAlgorithms=MD5\n"
                                                "jdk.certpath.disabledAlgorithms=SHA1\n"
                                                "jdk.tls.legacyAlgorithms=SHA256\n"
                                                "jdk.sasl.disabledMechanisms=SHA256\n"
                                                "disabledAlgorithms=SHA256\n"
                                                "jdk.jar.disabledAlgorithms : RC4\n");
    ck_assert_ptr_nonnull(policy_mechanism(policy, MD5));
    ck_assert_ptr_nonnull(policy_mechanism(policy, SHA_1));
    ck_assert_ptr_nonnull(policy_mechanism(policy, RC4));
    ck_assert_ptr_null(policy_mechanism(policy, SHA256));
    ck_assert_str_eq(policy_mechanism(policy, SHA_1)->key, "jdk.certpath.disabledAlgorithms");
    policy_free(policy);
}
END_TEST

START_TEST(inline_list_and_file_are_joined)
{
    struct policy *policy;
    ck_assert_int_eq(policy_try_file_text(&policy, "RC4", "jdk.tls.disabledAlgorithms=MD5\n"), 0);
    ck_assert_ptr_nonnull(policy_mechanism(policy, MD5));
    ck_assert_ptr_nonnull(policy_mechanism(policy, RC4));
    policy_free(policy);
}
END_TEST

START_TEST(two_files_are_joined_and_may_include_each_other)
{
    static const uint8_t k1[] = "\x06\x05\x2b\x81\x04\x00\x0a";
    char first[64], second[64];
    struct policy *policy = NULL;

    strcpy(first, file_with("jdk.tls.disabledAlgorithms=MD5, include jdk.disabled.namedCurves\n"));
    strcpy(second, file_with("jdk.disabled.namedCurves=secp256k1\n"
                             "jdk.tls.disabledAlgorithms=RC4\n"));
    struct policy_file files[] = {{first, "a", 1}, {second, "b", 2}};
    struct policy_sources sources = {.files = files, .files_count = 2, .now_s = NOW_S};
    ck_assert_int_eq(policy_compile(&policy, &sources, policy_error, sizeof policy_error), 0);
    ck_assert_str_eq(policy_mechanism(policy, MD5)->file, first);
    ck_assert_str_eq(policy_mechanism(policy, RC4)->file, second);
    ck_assert_str_eq(policy_curve(policy, k1, sizeof k1 - 1)->file, second);
    policy_free(policy);

    /* One that cannot be read is an error, whatever the other holds. */
    unlink(second);
    policy = NULL;
    ck_assert_int_eq(policy_compile(&policy, &sources, policy_error, sizeof policy_error), -ENOENT);
    ck_assert_ptr_null(policy);
    ck_assert_ptr_eq(strstr(policy_error, "b:2: "), policy_error);
    unlink(first);
}
END_TEST

START_TEST(separators_comments_and_escapes_are_those_of_java)
{
    ck_assert(file_denies("jdk.tls.disabledAlgorithms MD5\n", MD5));
    ck_assert(file_denies("jdk.tls.disabledAlgorithms:MD5\n", MD5));
    ck_assert(file_denies("\t jdk.tls.disabledAlgorithms\t=  MD5\n", MD5));
    ck_assert(file_denies("jdk.tls.disabledAlgorithms = \\\n   RC4, \\\r\n\tMD5\n", MD5));
    ck_assert(file_denies("jdk.tls.disabledAlgorithms \\\n = MD5\n", MD5));
    ck_assert(file_denies("jdk.tls.\\\n  disabledAlgorithms=MD5\n", MD5));
    ck_assert(file_denies("jdk.tls.disabledAlgorithms=M\\\n   D5\n", MD5));
    ck_assert(file_denies("jdk.tls.disabledAlgorithms=\\u004d\\u00445\r", MD5));
    ck_assert(file_denies("jdk.tls.disabledAlgorithms=\\M\\D5\n", MD5));
    ck_assert(file_denies("jdk.tls.disabledAlgorithms=RC4,\\tMD5\n", MD5));
    ck_assert(file_denies("jdk.tls.disabled\\u0041lgorithms=MD5\n", MD5));
    ck_assert(file_denies("jdk.tls.disabledAlgorithms=\" MD5 \"\n", MD5));
    /* An even number of backslashes does not go on, and a comment never does. */
    ck_assert(file_denies("x=\\\\\njdk.tls.disabledAlgorithms=MD5\n", MD5));
    ck_assert(file_denies("# comment \\\njdk.tls.disabledAlgorithms=MD5\n", MD5));
    ck_assert(
        !file_denies("#jdk.tls.disabledAlgorithms=MD5\n!x\njdk.jar.disabledAlgorithms=RC4\n", MD5));
    /* A comment sign within a line that goes on is part of it. */
    ck_assert(!file_denies("jdk.tls.disabledAlgorithms=RC4, \\\n# MD5\n", MD5));
    ck_assert(!file_denies("jdk.tls.disabledAlgorithms=RC4\n\nMD5\n", MD5));
}
END_TEST

START_TEST(an_item_is_found_in_its_own_line)
{
    struct policy *policy = policy_of_file_text(
        "# 1\n\njdk.tls.disabledAlgorithms = \\\n  RC4, \\\n  MD5, SHA1, \\\n\n");
    ck_assert_uint_eq(policy_mechanism(policy, RC4)->line, 4);
    ck_assert_uint_eq(policy_mechanism(policy, MD5)->line, 5);
    ck_assert_uint_eq(policy_mechanism(policy, SHA_1)->line, 5);
    policy_free(policy);
}
END_TEST

START_TEST(the_last_of_two_equal_keys_holds_and_that_is_said)
{
    struct policy *policy =
        policy_of_file_text("jdk.tls.disabledAlgorithms=MD5\njdk.tls.disabledAlgorithms=RC4\n");
    ck_assert_ptr_null(policy_mechanism(policy, MD5));
    ck_assert_ptr_nonnull(policy_mechanism(policy, RC4));
    ck_assert_uint_eq(policy_warnings_count, 1);
    ck_assert_ptr_nonnull(
        strstr(policy_warnings, ":1: jdk.tls.disabledAlgorithms comes again later"));
    policy_free(policy);
}
END_TEST

START_TEST(an_inclusion_of_the_named_curves_is_followed)
{
    static const uint8_t k1[] = "\x06\x05\x2b\x81\x04\x00\x0a";
    struct policy *policy =
        policy_of_file_text("jdk.disabled.namedCurves = secp256k1, \\\n secp224k1\n"
                            "jdk.tls.disabledAlgorithms=include jdk.disabled.namedCurves\n");
    ck_assert_ptr_nonnull(policy_curve(policy, k1, sizeof k1 - 1));
    ck_assert_str_eq(policy_curve(policy, k1, sizeof k1 - 1)->key, "jdk.disabled.namedCurves");
    ck_assert_uint_eq(policy_curve(policy, k1, sizeof k1 - 1)->line, 1);
    policy_free(policy);

    policy = policy_of_file_text(
        "jdk.disabled.namedCurves = secp256k1\njdk.tls.disabledAlgorithms=MD5\n");
    ck_assert_ptr_null(policy_curve(policy, k1, sizeof k1 - 1));
    policy_free(policy);

    ck_assert_int_eq(policy_try_file_text(&policy, "include jdk.disabled.namedCurves",
                                          "jdk.disabled.namedCurves = secp256k1\n"),
                     0);
    ck_assert_ptr_nonnull(policy_curve(policy, k1, sizeof k1 - 1));
    policy_free(policy);
}
END_TEST

START_TEST(an_inclusion_that_leads_nowhere_is_told)
{
    struct policy *policy =
        policy_of_file_text("jdk.tls.disabledAlgorithms=MD5, include jdk.disabled.namedCurves\n");
    ck_assert_uint_eq(policy_warnings_count, 1);
    policy_free(policy);
    ck_assert_ptr_nonnull(
        strstr(refusal_of("include jdk.disabled.namedCurves"), "no list file has"));
    ck_assert_ptr_nonnull(strstr(refusal_of("include other"), "'include other'"));
}
END_TEST

START_TEST(an_inclusion_of_itself_ends)
{
    struct policy *policy =
        policy_of_file_text("jdk.disabled.namedCurves=include jdk.disabled.namedCurves, secp256k1\n"
                            "jdk.tls.disabledAlgorithms=include jdk.disabled.namedCurves,include "
                            "jdk.disabled.namedCurves\n");
    ck_assert_uint_eq(policy_rules_count(policy), 1);
    policy_free(policy);
}
END_TEST

START_TEST(an_unknown_name_in_a_file_is_one_warning)
{
    struct policy *policy =
        policy_of_file_text("jdk.tls.disabledAlgorithms=Foo, MD5, FOO\n"
                            "jdk.jar.disabledAlgorithms=foo, Foo keySize < 3\n");
    ck_assert_uint_eq(policy_warnings_count, 1);
    ck_assert_ptr_nonnull(
        strstr(policy_warnings, "jdk.tls.disabledAlgorithms has an item that is no known"));
    ck_assert_ptr_nonnull(strstr(policy_warnings, ": 'Foo'\n"));
    ck_assert_ptr_nonnull(policy_mechanism(policy, MD5));
    ck_assert_ptr_nonnull(policy_name(policy, "foo"));
    policy_free(policy);
}
END_TEST

START_TEST(many_unknown_names_are_counted_not_told)
{
    char *text = malloc(200000), *to = text;
    to += sprintf(to, "jdk.tls.disabledAlgorithms=MD5");
    for (int i = 0; i < 10000; i++)
        to += sprintf(to, ",foo%d", i);
    strcpy(to, "\n");
    struct policy *policy = policy_of_file_text(text);
    ck_assert_uint_eq(policy_warnings_count, POLICY_WARNINGS_MAX + 1);
    ck_assert_uint_eq(policy_rules_count(policy), 10001);
    ck_assert_ptr_nonnull(strstr(policy_warnings, "and 9950 more"));
    policy_free(policy);
    free(text);
}
END_TEST

START_TEST(a_malformed_condition_in_a_file_is_an_error)
{
    struct policy *policy;
    ck_assert_int_eq(policy_try_file_text(&policy, NULL,
                                          "a=b\njdk.tls.disabledAlgorithms=\\\n RSA keySize < x\n"),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(policy_error,
                                 ":3: jdk.tls.disabledAlgorithms has no number of bits behind "
                                 "keySize and its operator: 'RSA keySize < x'"));
}
END_TEST

static void refuses_text(const char *text, const char *should)
{
    struct policy *policy = NULL;
    int rc = policy_try_file_text(&policy, NULL, text);
    ck_assert_msg(rc == -EINVAL, "'%s'", text);
    ck_assert_ptr_null(policy);
    ck_assert_msg(strstr(policy_error, should) != NULL, "'%s': %s", text, policy_error);
}

START_TEST(a_file_that_lists_nothing_is_never_an_empty_policy)
{
    refuses_text("", "proxy.module:8: x-disabled-algorithms-file lists no algorithm");
    refuses_text("\n# nothing\n", "lists no algorithm");
    refuses_text("jdk.tls.disabledAlgorithms=", "lists no algorithm");
    refuses_text("jdk.tls.disabledAlgorithms=,, ,\n", "lists no algorithm");
    refuses_text("jdk.tls.disabledAlg", "lists no algorithm");
    refuses_text("jdk.tls.legacyAlgorithms=MD5\n", "lists no algorithm");
    refuses_text("jdk.disabled.namedCurves=secp256k1\n", "lists no algorithm");
    refuses_text("jdk.disabled.namedCurves=include jdk.disabled.namedCurves\n"
                 "jdk.tls.disabledAlgorithms=include jdk.disabled.namedCurves\n",
                 "lists no algorithm");
}
END_TEST

START_TEST(a_file_that_was_cut_off_is_refused_or_told)
{
    refuses_text("jdk.tls.disabledAlgorithms=MD5, \\", "its last line goes on");
    refuses_text("jdk.tls.disabledAlgorithms=MD5, \\\n", "its last line goes on");
    refuses_text("jdk.tls.disabledAlgorithms=MD5, \\\n   ", "its last line goes on");
    policy_free(policy_of_file_text("jdk.tls.disabledAlgorithms=MD5"));
    ck_assert_uint_eq(policy_warnings_count, 1);
}
END_TEST

START_TEST(bad_escapes_are_refused_with_their_line)
{
    refuses_text("a=b\njdk.tls.disabledAlgorithms=MD5\\u12\n",
                 ":2: the list has no four hexadecimal digits");
    refuses_text("a=b\\uzzzz\n", ":1: the list has no four hexadecimal digits");
    refuses_text("jdk.tls.disabledAlgorithms=MD5\\u0000\n", "\\u0000");
}
END_TEST

static void refuses_path(const char *path, int code, const char *should)
{
    struct policy *policy = NULL;
    struct timespec before, after;

    clock_gettime(CLOCK_MONOTONIC, &before);
    ck_assert_int_eq(policy_try(&policy, "MD5", path, NOW_S), code);
    clock_gettime(CLOCK_MONOTONIC, &after);
    ck_assert_int_lt(after.tv_sec - before.tv_sec, 10);
    ck_assert_ptr_null(policy);
    ck_assert_msg(strstr(policy_error, should) != NULL, "%s", policy_error);
    ck_assert_ptr_eq(strstr(policy_error, "proxy.module:8: x-disabled-algorithms-file "),
                     policy_error);
}

START_TEST(what_is_no_readable_regular_file_is_refused_at_once)
{
    char path[] = "/tmp/p11-proxy-fifo-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(path));
    refuses_path(path, -EINVAL, "is not a regular file");
    rmdir(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    refuses_path(path, -EINVAL, "is not a regular file");
    unlink(path);
    refuses_path(path, -ENOENT, "(No such file or directory)");
    refuses_path("/dev/zero", -EINVAL, "is not a regular file");
    ck_assert_int_eq(symlink(path, path), 0);
    refuses_path(path, -ELOOP, "is not a file that can be read");
    unlink(path);
}
END_TEST

START_TEST(a_file_over_one_mebibyte_is_refused_and_one_of_it_is_not)
{
    const char *path = file_with("jdk.tls.disabledAlgorithms=MD5\n#");
    struct policy *policy;
    ck_assert_int_eq(truncate(path, 1024 * 1024 + 1), 0);
    refuses_path(path, -EINVAL, "is not a file of at most 1 MiB");
    ck_assert_int_eq(truncate(path, 1024 * 1024), 0);
    refuses_path(path, -EINVAL, "it holds a NUL byte");
    FILE *file = fopen(path, "r+");
    fputs("jdk.tls.disabledAlgorithms=MD5\n#", file);
    while (ftell(file) < 1024 * 1024 - 1)
        putc('x', file);
    putc('\n', file);
    fclose(file);
    ck_assert_int_eq(policy_try(&policy, NULL, path, NOW_S), 0);
    policy_free(policy);
    unlink(path);
}
END_TEST

START_TEST(links_are_followed_and_a_swapped_link_is_seen_by_the_next_policy)
{
    char first[64], second[64];
    char link[80];
    struct policy *before, *after;

    strcpy(first, file_with("jdk.tls.disabledAlgorithms=MD5\n"));
    strcpy(second, file_with("jdk.tls.disabledAlgorithms=RC4\n"));
    snprintf(link, sizeof link, "%s.link", first);
    ck_assert_int_eq(symlink(first, link), 0);
    ck_assert_int_eq(policy_try(&before, NULL, link, NOW_S), 0);
    unlink(link);
    ck_assert_int_eq(symlink(second, link), 0);
    ck_assert_int_eq(policy_try(&after, NULL, link, NOW_S), 0);
    ck_assert_ptr_nonnull(policy_mechanism(before, MD5));
    ck_assert_ptr_null(policy_mechanism(after, MD5));
    ck_assert_ptr_nonnull(policy_mechanism(after, RC4));
    policy_free(before);
    policy_free(after);
    unlink(link);
    unlink(first);
    unlink(second);
}
END_TEST

START_TEST(deep_and_long_files_do_not_hang)
{
    struct policy *policy;
    char *text = malloc(1024 * 1024), *to = text;

    to += sprintf(to, "jdk.tls.disabledAlgorithms=MD5");
    while (to - text < 1000000)
        to += sprintf(to, ",\\\n ");
    strcpy(to, "RC4\n");
    ck_assert(file_denies(text, RC4));

    to = text;
    while (to - text < 1000000)
        to += sprintf(to, "jdk.tls.disabledAlgorithms=RC4\n");
    ck_assert(file_denies(text, RC4));

    to = text + sprintf(text, "jdk.disabled.namedCurves=secp256k1\njdk.tls.disabledAlgorithms=MD5");
    while (to - text < 1000000)
        to += sprintf(to, ",include jdk.disabled.namedCurves");
    strcpy(to, "\n");
    ck_assert(file_denies(text, MD5));

    to = text + sprintf(text, "jdk.tls.disabledAlgorithms=MD5");
    for (unsigned i = 0; to - text < 1000000; i++)
        to += sprintf(to, ",HMAC keySize<%u", i);
    strcpy(to, "\n");
    ck_assert_int_eq(policy_try_file_text(&policy, NULL, text), 0);
    ck_assert_ptr_nonnull(policy_key(policy, 0x221, 0x10, 1000));
    ck_assert_ptr_null(policy_key(policy, 0x221, 0x10, 100000));
    policy_free(policy);
    free(text);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        keys_that_end_in_disabled_algorithms_are_joined,
        inline_list_and_file_are_joined,
        two_files_are_joined_and_may_include_each_other,
        separators_comments_and_escapes_are_those_of_java,
        an_item_is_found_in_its_own_line,
        the_last_of_two_equal_keys_holds_and_that_is_said,
        an_inclusion_of_the_named_curves_is_followed,
        an_inclusion_that_leads_nowhere_is_told,
        an_inclusion_of_itself_ends,
        an_unknown_name_in_a_file_is_one_warning,
        many_unknown_names_are_counted_not_told,
        a_malformed_condition_in_a_file_is_an_error,
        a_file_that_lists_nothing_is_never_an_empty_policy,
        a_file_that_was_cut_off_is_refused_or_told,
        bad_escapes_are_refused_with_their_line,
        what_is_no_readable_regular_file_is_refused_at_once,
        a_file_over_one_mebibyte_is_refused_and_one_of_it_is_not,
        links_are_followed_and_a_swapped_link_is_seen_by_the_next_policy,
        deep_and_long_files_do_not_hang,
    };
    return run_cases("policy lists", tests, sizeof tests / sizeof *tests);
}
