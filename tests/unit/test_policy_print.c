/* test_policy_print.c - policies as text, compared with the committed texts in tests/policy. */
#include "policy_helper.h"

#include <dirent.h>

static char *text_of(const struct policy *policy)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    policy_print(policy, out);
    fclose(out);
    return text;
}

/* A whole small file; the caller frees it. NULL if it is not there. */
static char *contents_of(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = file != NULL ? calloc(1, 200000) : NULL;

    if (file == NULL)
        return NULL;
    ck_assert_uint_lt(fread(text, 1, 199999, file), 199999);
    fclose(file);
    return text;
}

/* With the text of the same name, if there is one. What differs is printed, for diff(1). */
static bool is_compared(struct policy *policy, const char *list_name)
{
    char committed[300];
    snprintf(committed, sizeof committed, "%.*s.txt", (int)strcspn(list_name, "."), list_name);
    char *printed = text_of(policy), *expected = contents_of(committed);
    bool is_there = expected != NULL;

    if (is_there && strcmp(printed, expected) != 0) {
        fputs(printed, stdout);
        ck_abort_msg("tests/policy/%s is not what is printed", committed);
    }
    free(printed);
    free(expected);
    policy_free(policy);
    return is_there;
}

/* Each *.security and *.config of tests/policy is understood without a warning. */
TEST(list_files_print_as_committed)
{
    DIR *folder = opendir(".");
    struct dirent *entry;
    size_t count = 0, compared = 0;

    while ((entry = readdir(folder)) != NULL) {
        const char *ending = strrchr(entry->d_name, '.');
        struct policy *policy = NULL;
        if (ending == NULL || (strcmp(ending, ".security") != 0 && strcmp(ending, ".config") != 0))
            continue;
        ck_assert_msg(policy_try(&policy, NULL, entry->d_name, NOW_S) == 0, "%s",
                      policy_error.text);
        ck_assert_msg(policy_warnings_count == 0, "%s", policy_warnings);
        compared += is_compared(policy, entry->d_name);
        count++;
    }
    closedir(folder);
    ck_assert_uint_ge(count, 8);
    ck_assert_uint_ge(compared, 2);
}

TEST(an_inline_list_prints_as_committed)
{
    char *list = contents_of("inline.list");
    ck_assert_ptr_nonnull(list);
    ck_assert(is_compared(policy_of(list, NULL), "inline.list"));
    free(list);
}

TEST(no_policy_and_control_characters_print_harmlessly)
{
    char *text = text_of(NULL);
    ck_assert_str_eq(text, "policy: none\n");
    free(text);

    struct policy *policy = policy_of(NULL, "jdk.tls.disabledAlgorithms=MD5,\\u001b[31mred\n");
    text = text_of(policy);
    ck_assert_ptr_null(strchr(text, '\x1b'));
    ck_assert_ptr_nonnull(strstr(text, "?[31mred\n    no effect: an unknown name\n"));
    free(text);
    policy_free(policy);
}

int main(void)
{
    return test_main("policy print", NULL, NULL);
}
