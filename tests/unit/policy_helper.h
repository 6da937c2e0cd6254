/* policy_helper.h - short ways to a compiled policy, for the tests of common/policy. */
#ifndef P11_PROXY_TEST_POLICY_HELPER_H
#define P11_PROXY_TEST_POLICY_HELPER_H

#include "../check_main.h"

#include <unistd.h>

#include "policy/policy.h"

static int64_t now_s = 1800000000; /* 2027-01-15 */

/* What the last compilation said. */
static struct message policy_error;
static char policy_warnings[16384];
static unsigned policy_warnings_count;

static inline void keep_warning(const char *message)
{
    size_t len = strlen(policy_warnings);
    policy_warnings_count++;
    snprintf(policy_warnings + len, sizeof policy_warnings - len, "%s\n", message);
}

/* 0 and *policy, or the error code and policy_error. Either may be NULL: the inline list, a list file's path. */
static inline int policy_try(struct policy **policy, const char *list, const char *path)
{
    static const char key[] = "x-disabled-algorithms-file";
    struct policy_sources sources = {.list = {list, "proxy.module", NULL, 7, NULL},
                                     .file = {path, "proxy.module", key, 8, NULL},
                                     .now_s = now_s,
                                     .warn = keep_warning};

    *policy = NULL;
    policy_warnings_count = 0;
    policy_warnings[0] = policy_error.text[0] = '\0';
    return policy_compile(policy, &sources, &policy_error);
}

/* As policy_try(), of an inline list, of a file of that text, or of both. */
static inline int policy_try_text(struct policy **policy, const char *list, const char *text)
{
    if (text != NULL)
        write_in_root("list", text);
    return policy_try(policy, list, text != NULL ? in_root("list") : NULL);
}

/* Of a policy that ends with its block. */
#define A_POLICY __attribute__((cleanup(policy_end))) struct policy
static inline void policy_end(struct policy **policy)
{
    policy_free(*policy);
}

static inline struct policy *policy_of(const char *list, const char *text)
{
    struct policy *policy;
    int rc = policy_try_text(&policy, list, text);
    ck_assert_msg(rc == 0, "'%s' '%s': %s", list ? list : "", text ? text : "", policy_error.text);
    return policy;
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

/* Of the mechanisms, named or numbered and separated by blanks, all are denied by the lists or none is. */
static inline void judges(const char *list, const char *text, bool denies, const char *names)
{
    A_POLICY *policy = policy_of(list, text);
    char *copy = strdup(names), *rest = copy;
    for (char *name; (name = strsep(&rest, " ")) != NULL;) {
        uint64_t number = name[0] == 'C' ? ckm(name) : strtoull(name, NULL, 0);
        ck_assert_msg((denied(policy, number) != NULL) == denies, "'%s' '%s': %s", list ? list : "",
                      text ? text : "", name);
    }
    free(copy);
}

#endif
