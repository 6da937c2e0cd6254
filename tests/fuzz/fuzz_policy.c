/* fuzz_policy.c - any text as an inline list, and any bytes as a list file. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "policy/policy.h"

enum { NOW_S = 1800000000 };

static size_t warnings;

static void fuzz_warning(const char *message)
{
    must(strlen(message) < 1024);
    warnings++;
}

/* Compiles, asks, prints and frees a policy, and checks what must hold of any. */
static void fuzz_policy(struct policy_sources *sources, const void *data, size_t size)
{
    struct policy *policy = NULL;
    struct message error;

    warnings = 0;
    sources->warn = fuzz_warning;
    error.text[0] = '\0';
    int rc = policy_compile(&policy, sources, &error);
    must(warnings <= POLICY_WARNINGS_MAX + 1);
    if (rc != 0) {
        must(rc < 0 && !policy && error.text[0] != '\0');
        return;
    }
    /* What came is a list, so it is also a name, a key's parameters and data. */
    must(policy != NULL || sources->file.text == NULL);
    for (size_t i = 0; i < mechanism_count; i++) {
        uint64_t number = mechanisms[i].number, min = policy_min_key_bits(policy, number);
        struct key_info key = key_info_of(key_type_find(number % 80));
        key.bits = size;
        must(min == 0 || policy_looks_at_keys_of(policy, NO_MECHANISM));
        must(policy_mechanism(policy, number, USE_SIGN) == NULL ||
             policy_denied_uses(policy, number) != 0);
        (void)policy_key(policy, number, &key, NULL);
    }
    static struct policy_answer answer;
    for (size_t i = 0; policy_rule(policy, i); i++) {
        (void)policy_name(policy, policy_rule(policy, i)->text);
        must(policy_ask(policy, policy_rule(policy, i)->text, &answer) == 0);
    }
    struct key_info key = key_info_of(key_type_find(3));
    key_info_params(&key, data, size);
    (void)policy_key(policy, NO_MECHANISM, &key, NULL);
    (void)policy_digest_info(policy, data, size);

    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    must(out != NULL);
    policy_print(policy, out);
    fclose(out);
    for (size_t i = 0; i < len; i++)
        must(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
    free(text);
    policy_free(policy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64], *list = strndup((const char *)data, size);
    int fd = memfd_create("list", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    fuzz_policy(&(struct policy_sources){.now_s = NOW_S, .list = {list, "fuzz", NULL, 1, NULL}},
                data, size);
    fuzz_policy(&(struct policy_sources){.now_s = NOW_S, .file = {path, "fuzz", "file", 1, NULL}},
                data, size);
    close(fd);
    free(list);
    return 0;
}
