/* test_policy_print.c - policies as text, compared with the committed texts in tests/policy. */
#include "policy_helper.h"

/* Reads a whole small file; the caller frees it. NULL if it is not there. */
static char *contents_of(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 200000);

    if (!file) {
        free(text);
        return NULL;
    }
    size_t got = fread(text, 1, 199999, file);
    text[got] = '\0';
    fclose(file);
    return text;
}

/* What was printed stays in a file of its own when it differs, for diff(1). */
static void compare(struct policy *policy, const char *committed)
{
    char *printed = text_of(policy), *expected = contents_of(committed);

    if (!expected || strcmp(printed, expected) != 0) {
        const char *came = file_with(printed);
        ck_abort_msg("tests/policy/%s is not what is printed: diff it with %s", committed, came);
    }
    free(printed);
    free(expected);
    policy_free(policy);
}

static struct policy *policy_of_file(const char *path)
{
    struct policy *policy = NULL;
    int rc = policy_try(&policy, NULL, path, NOW_S);
    ck_assert_msg(rc == 0, "%s", policy_error);
    ck_assert_msg(policy_warnings_count == 0, "%s", policy_warnings);
    return policy;
}

START_TEST(the_56_names_print_as_committed)
{
    struct policy *policy = policy_of_file("names-56.security");
    ck_assert_uint_eq(policy_rules_count(policy), 56);
    compare(policy, "names-56.txt");
}
END_TEST

START_TEST(the_default_of_the_jdk_prints_as_committed)
{
    compare(policy_of_file("jdk-default.security"), "jdk-default.txt");
}
END_TEST

START_TEST(a_fips_like_list_prints_as_committed)
{
    compare(policy_of_file("fips-like.security"), "fips-like.txt");
}
END_TEST

START_TEST(a_list_of_crypto_policies_prints_as_committed)
{
    compare(policy_of_file("crypto-policies.config"), "crypto-policies.txt");
}
END_TEST

START_TEST(an_inline_list_prints_as_committed)
{
    char *list = contents_of("inline.list");
    ck_assert_ptr_nonnull(list);
    compare(policy_of(list), "inline.txt");
    free(list);
}
END_TEST

START_TEST(no_policy_and_control_characters_print_harmlessly)
{
    char *text = text_of(NULL);
    ck_assert_str_eq(text, "policy: none\n");
    free(text);

    struct policy *policy = policy_of_file_text("jdk.tls.disabledAlgorithms=MD5,\\u001b[31mred\n");
    text = text_of(policy);
    ck_assert_ptr_null(strchr(text, '\x1b'));
    ck_assert_ptr_nonnull(strstr(text, "?[31mred\n    no effect: unknown name\n"));
    free(text);
    policy_free(policy);
}
END_TEST

START_TEST(a_full_disk_is_an_error)
{
    FILE *full = fopen("/dev/full", "w");
    if (!full)
        return;
    setvbuf(full, NULL, _IONBF, 0);
    struct policy *policy = policy_of("MD5");
    ck_assert_int_lt(policy_print(policy, full), 0);
    policy_free(policy);
    fclose(full);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_56_names_print_as_committed,
        the_default_of_the_jdk_prints_as_committed,
        a_fips_like_list_prints_as_committed,
        a_list_of_crypto_policies_prints_as_committed,
        an_inline_list_prints_as_committed,
        no_policy_and_control_characters_print_harmlessly,
        a_full_disk_is_an_error,
    };
    return run_cases("policy print", tests, sizeof tests / sizeof *tests);
}
