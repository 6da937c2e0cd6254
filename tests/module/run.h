/* run.h - the main() of a program of tests: lists them and runs them. */
#ifndef P11_PROXY_TEST_RUN_H
#define P11_PROXY_TEST_RUN_H

#include <check.h>
#include <stdlib.h>

#include "../hang.h"
#include "proxy_fixture.h"

/* In a child of a process with threads AddressSanitizer's allocator finds its own locks held for ever, where libc
 * sees to its own, and ThreadSanitizer starts no thread and takes the parent's for the child's. Tests with such
 * children run in the other builds. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { CHILDREN_CAN_RUN = 0 };
#else
enum { CHILDREN_CAN_RUN = 1 };
#endif

/* ThreadSanitizer has a thread of its own; and it takes an atexit() in a module for the program's, so what an unloaded
 * one registered is still called. */
#ifdef __SANITIZE_THREAD__
enum { ALL_THREADS_ARE_OURS = 0, UNLOADING_IS_THE_END = 0 };
#else
enum { ALL_THREADS_ARE_OURS = 1, UNLOADING_IS_THE_END = 1 };
#endif

/* add_tests() calls tcase_add_test() for each. */
static inline int run_tests(const char *name, void (*add_tests)(TCase *))
{
    TCase *tcase = tcase_create(name);
    Suite *suite = suite_create(name);
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(tcase, HANG_S);
    tcase_add_checked_fixture(tcase, fixture_setup, fixture_teardown);
    add_tests(tcase);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
