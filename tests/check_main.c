/* check_main.c - the main() of a program of tests that is made with Check. */
#include "check_main.h"

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <sys/stat.h>

#pragma weak set_up
#pragma weak tear_down
#pragma weak before_all

static TCase *all_tests;

void test_add(const TTest *test, int from, int upto)
{
    if (all_tests == NULL)
        all_tests = tcase_create(program_invocation_short_name);
    tcase_add_loop_test(all_tests, test, from, upto);
}

const char *text_of(const char *format, ...)
{
    char *text = NULL;
    va_list values;
    va_start(values, format);
    if (vasprintf(&text, format, values) < 0) /* Check's macros write to a descriptor */
        abort();
    va_end(values);
    return text;
}

char root[64];

static void make_root(void)
{
    snprintf(root, sizeof root, "%s/XXXXXX", getenv("TMPDIR"));
    ck_assert_ptr_nonnull(mkdtemp(root));
}

const char *in_root(const char *name)
{
    return text_of("%s/%s", root, name);
}

void write_bytes_in_root(const char *name, const void *bytes, size_t len_bytes)
{
    FILE *file = fopen(in_root(name), "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, len_bytes, file), len_bytes);
    ck_assert_int_eq(fclose(file), 0);
}

void write_in_root(const char *name, const char *text)
{
    write_bytes_in_root(name, text, strlen(text));
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

int main(void)
{
    char folder[] = "/tmp/p11-proxy.XXXXXX";
    if (mkdtemp(folder) == NULL || chmod(folder, 0755) != 0 || setenv("TMPDIR", folder, 1) != 0) {
        perror(folder);
        return EXIT_FAILURE;
    }
    if (before_all != NULL)
        before_all();
    Suite *suite = suite_create(program_invocation_short_name);
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(all_tests, HANG_S);
    tcase_add_checked_fixture(all_tests, make_root, NULL);
    tcase_add_checked_fixture(all_tests, set_up, tear_down);
    suite_add_tcase(suite, all_tests);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
