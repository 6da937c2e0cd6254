/* check_main.h - the main() of a program of tests that is made with Check. */
#ifndef P11_PROXY_TEST_CHECK_MAIN_H
#define P11_PROXY_TEST_CHECK_MAIN_H

#include <check.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* How long a test may take: Check's own answer, four seconds, is too short for sanitizers and a loaded machine. What a
 * test forks ends itself earlier, so that the test can tell. */
enum { HANG_S = 120, CHILD_HANGS_S = 60 };

/* In a child of a process with threads a sanitizer finds its own locks held for ever. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

/* Ends a test that cannot be made here. The line that it prints makes tests/tally.py count it as skipped. */
#define SKIP_IF(condition, reason)                                                                 \
    do {                                                                                           \
        if (condition) {                                                                           \
            printf("SKIP %.*s: %s\n", (int)strlen(__func__) - 3 /* Check's "_fn" */, __func__,     \
                   reason);                                                                        \
            return;                                                                                \
        }                                                                                          \
    } while (0)

static TCase *all_tests;

static inline void test_add(const TTest *test, int from, int upto)
{
    if (all_tests == NULL)
        all_tests = tcase_create(program_invocation_short_name);
    tcase_add_loop_test(all_tests, test, from, upto);
}

/* Before the body of a test, which adds itself to its program. The second: one test for each value of _i. */
#define TEST(name) TEST_EACH(name, 0, 1)
#define TEST_EACH(name, from, upto)                                                                \
    static void name##_fn(int _i CK_ATTRIBUTE_UNUSED);                                             \
    __attribute__((constructor)) static void name##_is_added(void)                                 \
    {                                                                                              \
        static const TTest test = {#name, name##_fn, __FILE__, __LINE__};                          \
        test_add(&test, from, upto);                                                               \
    }                                                                                              \
    static void name##_fn(int _i CK_ATTRIBUTE_UNUSED)

/* A new folder, which goes when the program ends, however its tests ended. */
static inline void make_folder(char path[64])
{
    snprintf(path, 64, "%s/XXXXXX", getenv("TMPDIR"));
    ck_assert_ptr_nonnull(mkdtemp(path));
}

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

/* Runs the tests of this program, each between set_up() and tear_down(); either may be NULL. */
static inline int test_main(const char *name, SFun set_up, SFun tear_down)
{
    char folder[] = "/tmp/p11-proxy.XXXXXX";
    if (mkdtemp(folder) == NULL || chmod(folder, 0755) != 0 || setenv("TMPDIR", folder, 1) != 0) {
        perror(folder);
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create(name);
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(all_tests, HANG_S);
    tcase_add_checked_fixture(all_tests, set_up, tear_down);
    suite_add_tcase(suite, all_tests);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
