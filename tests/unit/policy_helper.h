/* policy_helper.h - short ways to a compiled policy, for the tests of policy*.c. */
#ifndef P11_PROXY_TEST_POLICY_HELPER_H
#define P11_PROXY_TEST_POLICY_HELPER_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../hang.h"
#include "policy/policy.h"

#define NOW_S 1800000000 /* 2027-01-15 */

static char policy_error[512];
static char policy_warnings[8192];
static size_t policy_warnings_count;

static inline void keep_warning(void *context, const char *message)
{
    (void)context;
    policy_warnings_count++;
    strncat(policy_warnings, message, sizeof policy_warnings - strlen(policy_warnings) - 2);
    strcat(policy_warnings, "\n");
}

/* 0 and *policy, or the error code and policy_error. */
static inline int policy_try(struct policy **policy, const char *list, const char *file,
                             int64_t now_s)
{
    struct policy_file from = {file, "proxy.module", 8};
    struct policy_sources sources = {.list = list,
                                     .list_file = "proxy.module",
                                     .list_line = 7,
                                     .files = &from,
                                     .files_count = file ? 1 : 0,
                                     .now_s = now_s,
                                     .warn = keep_warning};

    policy_warnings_count = 0;
    policy_warnings[0] = policy_error[0] = '\0';
    return policy_compile(policy, &sources, policy_error, sizeof policy_error);
}

static inline struct policy *policy_of(const char *list)
{
    struct policy *policy = NULL;
    int rc = policy_try(&policy, list, NULL, NOW_S);
    ck_assert_msg(rc == 0, "'%s': %s", list, policy_error);
    return policy;
}

/* The message that refuses a list. */
static inline const char *refusal_of(const char *list)
{
    struct policy *policy = NULL;
    int rc = policy_try(&policy, list, NULL, NOW_S);
    ck_assert_msg(rc < 0, "'%s' was taken", list);
    ck_assert_ptr_null(policy);
    return policy_error;
}

/* Writes text to a new file; its name is static. */
static inline const char *file_with(const char *text)
{
    static char path[64];
    strcpy(path, "/tmp/p11-proxy-policy-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

static inline int policy_try_file_text(struct policy **policy, const char *list, const char *text)
{
    const char *path = file_with(text);
    int rc = policy_try(policy, list, path, NOW_S);
    unlink(path);
    return rc;
}

static inline struct policy *policy_of_file_text(const char *text)
{
    struct policy *policy = NULL;
    int rc = policy_try_file_text(&policy, NULL, text);
    ck_assert_msg(rc == 0, "'%s': %s", text, policy_error);
    return policy;
}

static inline bool denies(const char *list, uint64_t number)
{
    struct policy *policy = policy_of(list);
    bool denied = policy_mechanism(policy, number) != NULL;
    policy_free(policy);
    return denied;
}

/* The number of a mechanism that the table has. */
static inline uint64_t ckm(const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < mechanisms_count; i++) {
        for (const char *at = text_at(mechanisms[i].names); *at;
             at += strcspn(at, "|"), at += *at == '|') {
            if (strcspn(at, "|") == len && memcmp(at, name, len) == 0)
                return mechanisms[i].number;
        }
    }
    ck_abort_msg("no %s in the table", name);
    return NO_MECHANISM;
}

/* The policy as text; the caller frees it. */
static inline char *text_of(const struct policy *policy)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    ck_assert_int_eq(policy_print(policy, out), 0);
    fclose(out);
    return text;
}

/* Runs the cases of one suite. */
static inline int run_cases(const char *name, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    tcase_set_timeout(cases, HANG_S);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
