/* fuzz_policy.h - compiles, asks, prints and frees a policy, and checks what must hold of any. */
#ifndef P11_PROXY_FUZZ_POLICY_H
#define P11_PROXY_FUZZ_POLICY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy.h"

/* What must not be, whatever came. */
static inline void fuzz_must(int holds)
{
    if (!holds)
        abort();
}

static inline void fuzz_warning(void *context, const char *message)
{
    fuzz_must(strlen(message) < 1024);
    ++*(size_t *)context;
}

static inline void fuzz_policy(struct policy_sources *sources, const void *data, size_t size)
{
    struct policy *policy = NULL;
    char error[256];
    size_t warnings = 0;

    sources->warn = fuzz_warning;
    sources->warn_context = &warnings;
    error[0] = '\0';
    int rc = policy_compile(&policy, sources, error, sizeof error);
    fuzz_must(warnings <= POLICY_WARNINGS_MAX + 1);
    if (rc != 0) {
        fuzz_must(rc < 0 && !policy && error[0] != '\0');
        return;
    }
    fuzz_must(sources->files_count == 0 || policy_rules_count(policy) > 0);
    for (size_t i = 0; i < mechanisms_count; i++) {
        uint64_t number = mechanisms[i].number, min = policy_min_key_bits(policy, number);
        fuzz_must(policy_has_key_rules(policy) || min == 0);
        (void)policy_mechanism(policy, number);
        (void)policy_key(policy, number, number % 80, size);
    }
    /* A rule that denies by name is found by its own name; and nothing that is asked may crash. */
    for (size_t i = 0; policy_rule(policy, i); i++)
        (void)policy_name(policy, policy_rule(policy, i)->text);
    (void)policy_curve(policy, data, size);
    (void)policy_digest_info(policy, data, size);

    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    fuzz_must(out && policy_print(policy, out) == 0);
    fclose(out);
    for (size_t i = 0; i < len; i++)
        fuzz_must(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
    free(text);
    policy_free(policy);
}

#endif
