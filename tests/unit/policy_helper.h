/* policy_helper.h - short ways to a compiled policy, for the tests of common/policy. */
#ifndef P11_PROXY_TEST_POLICY_HELPER_H
#define P11_PROXY_TEST_POLICY_HELPER_H

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../check_main.h"
#include "policy/policy.h"

#define NOW_S          1800000000 /* 2027-01-15 */
#define COUNT_OF(rows) (sizeof(rows) / sizeof *(rows))

static struct message policy_error;
static char policy_warnings[16384];
static size_t policy_warnings_count;

static inline void keep_warning(const char *message)
{
    policy_warnings_count++;
    strncat(policy_warnings, message, sizeof policy_warnings - strlen(policy_warnings) - 2);
    strcat(policy_warnings, "\n");
}

/* 0 and *policy, or the error code and policy_error. Either may be NULL: the inline list, a list file's path. */
static inline int policy_try(struct policy **policy, const char *list, const char *path,
                             int64_t now_s)
{
    static const char key[] = "x-disabled-algorithms-file";
    struct policy_sources sources = {.list = {list, "proxy.module", NULL, 7, NULL},
                                     .file = {path, "proxy.module", key, 8, NULL},
                                     .now_s = now_s,
                                     .warn = keep_warning};

    policy_warnings_count = 0;
    policy_warnings[0] = policy_error.text[0] = '\0';
    return policy_compile(policy, &sources, &policy_error);
}

/* Writes text to a new file; its name is static. */
static inline const char *file_with(const char *text)
{
    static char path[64];
    snprintf(path, sizeof path, "%s/XXXXXX", getenv("TMPDIR"));
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

/* The same, of an inline list, of a file of that text, or of both. */
static inline int policy_try_text(struct policy **policy, const char *list, const char *text)
{
    const char *path = text != NULL ? file_with(text) : NULL;
    int rc = policy_try(policy, list, path, NOW_S);
    if (path != NULL)
        unlink(path);
    return rc;
}

static inline struct policy *policy_of(const char *list, const char *text)
{
    struct policy *policy = NULL;
    int rc = policy_try_text(&policy, list, text);
    ck_assert_msg(rc == 0, "'%s' '%s': %s", list ? list : "", text ? text : "", policy_error.text);
    return policy;
}

/* The lists are refused with a message that has this in it. */
static inline void refuses(const char *list, const char *text, const char *should)
{
    struct policy *policy = NULL;
    int rc = policy_try_text(&policy, list, text);
    ck_assert_msg(rc == -EINVAL && policy == NULL, "'%s' '%s' is taken", list ? list : "",
                  text ? text : "");
    ck_assert_msg(strstr(policy_error.text, should) != NULL, "no '%s' in %s", should,
                  policy_error.text);
}

/* The number of a mechanism that the table has. */
static inline uint64_t ckm(const char *name)
{
    for (size_t i = 0; i < mechanism_count; i++)
        if (has_name(mechanisms[i].names, name, strlen(name)))
            return mechanisms[i].number;
    ck_abort_msg("no %s in the table", name);
    return NO_MECHANISM;
}

/* The rule that denies a mechanism, to all uses. */
static inline const struct policy_rule *denied(const struct policy *policy, uint64_t number)
{
    const struct policy_rule *rule = policy_mechanism(policy, number, USE_DIGEST);
    for (int use = 0; use < USES; use++)
        if (policy_mechanism(policy, number, (enum mechanism_use)use) != rule)
            ck_abort_msg("not all uses of 0x%llx are as one", (unsigned long long)number);
    return rule;
}

/* Whether the lists deny a mechanism. */
static inline bool denies(const char *list, const char *text, uint64_t number)
{
    struct policy *policy = policy_of(list, text);
    bool is = denied(policy, number) != NULL;
    policy_free(policy);
    return is;
}

/* All names between the bars are denied by the name check, or none is. */
static inline void judges_names(const struct policy *policy, bool denies, const char *names)
{
    char *copy = strdup(names), *rest = copy;
    for (char *name; (name = strsep(&rest, "|")) != NULL;)
        ck_assert_msg((policy_name(policy, name) != NULL) == denies, "'%s'", name);
    free(copy);
}

static inline struct policy_counts count_of(const struct policy *policy)
{
    struct policy_counts counts;
    policy_count(policy, &counts);
    return counts;
}

#endif
