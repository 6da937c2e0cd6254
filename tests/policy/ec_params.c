/* ec_params.c - what we read in values of CKA_EC_PARAMS.
 * usage: ec_params - standard input holds "name bits DER" in lines, the DER in hexadecimal. Prints the
 * lines that are not read as a curve with that name and those bits; exits with 1 if there are any. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "policy/policy.h"

enum { DER_BYTES = 4096 };

int main(void)
{
    static char name[128], hex[2 * DER_BYTES + 1];
    static uint8_t der[DER_BYTES];
    uint64_t bits;
    int code = 0;

    while (scanf("%127s %" SCNu64 " %8192s", name, &bits, hex) == 3) {
        struct key_info key = key_info_of(key_type_find(3));
        size_t len = strlen(hex) / 2;
        for (size_t i = 0; i < len; i++)
            if (sscanf(hex + 2 * i, "%2hhx", &der[i]) != 1)
                return 2;
        key_info_params(&key, der, len);
        /* A twin has the same order, and stands for the curve if its parameters are spelled out. */
        bool is_named = key.curve != NULL && (key.spelled_out || has_name(key.curve->names, name, strlen(name)));
        if (is_named && key.bits == bits)
            continue;
        printf("%s %" PRIu64 ": read as %s, %" PRIu64 " bits\n", name, bits,
               key.curve != NULL ? key.curve->names : "nothing", key.bits);
        code = 1;
    }
    return code;
}
