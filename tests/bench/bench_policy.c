/* bench_policy.c - what a check costs: names against 56 and 56,000, and mechanisms by number.
 * usage: bench_policy LIST - LIST holds one inline list, of 56 names. Prints medians; compare them on one
 * machine only. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "policy/policy.h"

#define ROUNDS 31
#define CALLS  2000000
#define MANY   56000

/*
 * Nanoseconds that one call takes, the median of all rounds. name NULL: a mechanism number is asked
 * for.
 */
static double median_ns(const struct policy *policy, const char *name, uint64_t number)
{
    double round[ROUNDS];
    volatile uint64_t denied = 0;

    for (int i = 0; i < ROUNDS; i++) {
        int64_t start = now_ns();
        for (int j = 0; j < CALLS; j++) {
            /* The compiler may not know that it is the same question again. */
            __asm__ volatile("" : "+r"(name), "+r"(number) : : "memory");
            denied =
                (uint64_t)(name ? policy_name(policy, name) : policy_mechanism(policy, number, USE_SIGN));
        }
        round[i] = (double)(now_ns() - start) / CALLS;
    }
    (void)denied;
    return median_of(round, ROUNDS);
}

static struct policy *compile(const char *list, const char *file, double *took_us)
{
    struct policy *policy = NULL;
    struct policy_sources sources = {.list = list,
                                     .list_from = "bench",
                                     .list_line = 1,
                                     .file = file,
                                     .file_from = "bench",
                                     .file_line = 1,
                                     .now_s = time(NULL)};
    struct message error;
    int64_t start = now_ns();

    if (policy_compile(&policy, &sources, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    *took_us = (double)(now_ns() - start) / 1000;
    return policy;
}

/* A list file with so many names more that are none of the others. */
static void write_many(char path[])
{
    int fd = mkstemp(path);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

    if (!out) {
        perror(path);
        exit(1);
    }
    fprintf(out, "jdk.tls.disabledAlgorithms=RC2,name1");
    for (int i = 2; i < MANY - 56; i++)
        fprintf(out, ",name%d", i);
    fprintf(out, "\n");
    fclose(out);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"SSLv3",  "DES",        "NULL",         "TLS1.3",
                                        "absent", "MD5withRSA", "MD5withAbsent"};
    static const struct {
        const char *what;
        uint64_t number;
    } mechanisms_asked[] = {{"CKM_SHA256_RSA_PKCS, permitted", 0x40},
                            {"CKM_DES_CBC, denied", 0x122},
                            {"vendor number, permitted", 0x80000142},
                            {"vendor number, denied", 0x80001234}};
    char path[] = "/tmp/bench-policy-XXXXXX", list[16384];
    double few_us, many_us;
    FILE *in;

    if (argc != 2 || !(in = fopen(argv[1], "r"))) {
        fprintf(stderr, "usage: bench_policy LIST\n");
        return 2;
    }
    size_t len = fread(list, 1, sizeof list - 32, in);
    list[len] = '\0';
    fclose(in);
    list[strcspn(list, "\n")] = '\0';
    strcat(list, ", 0x80001234");

    struct policy_sources sources = {.list = list, .list_from = argv[1], .list_line = 1};
    struct policy *few = NULL;
    struct message error;
    int64_t start = now_ns();
    if (policy_compile(&few, &sources, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    few_us = (double)(now_ns() - start) / 1000;
    write_many(path);
    struct policy *many = compile(list, path, &many_us);
    unlink(path);

    printf("%-36s %12s %12s\n", "ns a check, median", "56 names", "56,000 names");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        printf("%-36s %12.2f %12.2f\n", names[i], median_ns(few, names[i], 0),
               median_ns(many, names[i], 0));
    for (size_t i = 0; i < sizeof mechanisms_asked / sizeof *mechanisms_asked; i++)
        printf("%-36s %12.2f %12.2f\n", mechanisms_asked[i].what,
               median_ns(few, NULL, mechanisms_asked[i].number),
               median_ns(many, NULL, mechanisms_asked[i].number));
    printf("%-36s %12.0f %12.0f\n", "us to compile, once", few_us, many_us);
    policy_free(few);
    policy_free(many);
    return 0;
}
