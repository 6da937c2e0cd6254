/* policy_permits.c - what our name check says of each name, in the form of Permits.java; or how long it takes.
 * usage: policy_permits LIST NAMES [TIMES] - LIST holds one list (*.list), or is a file of lists; NAMES holds one name a
 * line. With TIMES it looks so often at each, and prints nanoseconds for one. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "policy/policy.h"

int main(int argc, char **argv)
{
    FILE *list_file = argc >= 3 ? fopen(argv[1], "r") : NULL;
    FILE *names_file = argc >= 3 ? fopen(argv[2], "r") : NULL;
    long count = 0, times = argc > 3 ? atol(argv[3]) : 1;
    struct policy *policy = NULL;
    struct message error;
    char list[8192] = "", name[256];
    int64_t took_ns = 0;

    if (!list_file || !names_file)
        errx(2, "usage: policy_permits LIST NAMES [TIMES]");
    list[fread(list, 1, sizeof list - 1, list_file)] = '\0';
    struct policy_sources sources = {.list = {list, argv[1], NULL, 1, NULL}};
    if (strstr(argv[1], ".list") == NULL)
        sources = (struct policy_sources){.file = {argv[1], "argument", "file", 1, NULL}};
    if (policy_compile(&policy, &sources, &error) != 0)
        errx(2, "%s", error.text);
    for (; fgets(name, sizeof name, names_file); count++) {
        const struct policy_rule *volatile rule;
        name[strcspn(name, "\n")] = '\0';
        int64_t begin_ns = clock_exact_ns();
        for (long i = 0; i < times; i++)
            rule = policy_name(policy, name);
        took_ns += clock_exact_ns() - begin_ns;
        if (argc == 3)
            printf("%s%s\n", rule ? "denies  " : "permits ", name);
    }
    if (argc > 3)
        printf("%.3f\n", (double)took_ns / (double)(count * times));
    policy_free(policy);
    return 0;
}
