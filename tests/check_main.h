/* check_main.h - a program of tests that is made with Check; its main() is in check_main.c. */
#ifndef P11_PROXY_TEST_CHECK_MAIN_H
#define P11_PROXY_TEST_CHECK_MAIN_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* A program may have these: around each test, and before all of them. */
void set_up(void);
void tear_down(void);
void before_all(void);

void test_add(const TTest *test, int from, int upto);

/* As printf() writes it, in memory that is never freed. */
const char *__attribute__((format(printf, 1, 2))) text_of(const char *format, ...);

/* A folder of its own for each test, which goes when the program ends, however its tests ended. */
extern char root[64];
const char *in_root(const char *name); /* its path */
void write_in_root(const char *name, const char *text);
void write_bytes_in_root(const char *name, const void *bytes, size_t len_bytes);

#define COUNT_OF(rows) (sizeof(rows) / sizeof *(rows))

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

#endif
