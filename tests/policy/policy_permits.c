/* policy_permits.c - what our name check says of each name, in the form of Permits.java.
 * usage: policy_permits LIST NAMES - LIST holds one list (*.list), or is a file of lists; NAMES holds
 * one name a line */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy.h"

int main(int argc, char **argv)
{
    FILE *list_file = argc == 3 ? fopen(argv[1], "r") : NULL;
    FILE *names_file = argc == 3 ? fopen(argv[2], "r") : NULL;
    struct policy *policy = NULL;
    struct message error;
    char list[8192] = "", name[256];

    if (!list_file || !names_file) {
        fprintf(stderr, "usage: policy_permits LIST NAMES\n");
        return 2;
    }
    list[fread(list, 1, sizeof list - 1, list_file)] = '\0';
    fclose(list_file);

    struct policy_sources sources = {.list = {list, argv[1], NULL, 1, NULL}};
    if (strstr(argv[1], ".list") == NULL)
        sources = (struct policy_sources){.file = {argv[1], "argument", "file", 1, NULL}};
    if (policy_compile(&policy, &sources, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    while (fgets(name, sizeof name, names_file)) {
        name[strcspn(name, "\n")] = '\0';
        printf("%s%s\n", policy_name(policy, name) ? "denies  " : "permits ", name);
    }
    policy_free(policy);
    fclose(names_file);
    return 0;
}
