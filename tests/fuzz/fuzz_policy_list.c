/* fuzz_policy_list.c - any text as an inline list. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *list = malloc(size + 1);

    if (!list)
        return 0;
    memcpy(list, data, size);
    list[size] = '\0';
    struct policy_sources sources = {
        .list = list, .list_from = "fuzz", .list_line = 1, .now_s = 1800000000};
    fuzz_policy(&sources, list, size);
    free(list);
    return 0;
}
