/* lists.c - one constant list for each version of PKCS#11 that a target may claim. */
#include "calls/forward.h"
#include "calls/lists.h"

/* Every list is filled to the end: whoever knows an older version reads the part that it knows. */
static const struct p11_functions lists[] = {
    {
        .version = {3, 2},
#include "calls/entries.def"
    },
    {
        .version = {3, 1},
#include "calls/entries.def"
    },
    {
        .version = {3, 0},
#include "calls/entries.def"
    },
    {
        .version = {2, 40},
#include "calls/entries.def"
    },
    {
        .version = {2, 30},
#include "calls/entries.def"
    },
    {
        .version = {2, 20},
#include "calls/entries.def"
    },
    {
        .version = {2, 11},
#include "calls/entries.def"
    },
    {
        .version = {2, 10},
#include "calls/entries.def"
    },
    {
        .version = {2, 1},
#include "calls/entries.def"
    },
    {
        .version = {2, 0},
#include "calls/entries.def"
    },
};

const struct p11_functions *list_of_version(unsigned major, unsigned minor)
{
    size_t last = sizeof lists / sizeof *lists - 1;
    for (size_t i = 0; i < last; i++)
        if (lists[i].version.major < major ||
            (lists[i].version.major == major && lists[i].version.minor <= minor))
            return &lists[i];
    return &lists[last];
}

/* The distribution's header proof-reads the first 68 rows: their types and their order. */
#define P11_UPTO 240
#define ROW(name, ...)                                                                             \
    _Static_assert(__builtin_types_compatible_p(__typeof__(((struct p11_functions *)0)->name),     \
                                                __typeof__(((CK_FUNCTION_LIST *)0)->name)),        \
                   "p11-kit's header has other parameters for " #name);                            \
    _Static_assert(offsetof(struct p11_functions, name) == offsetof(CK_FUNCTION_LIST, name),       \
                   "p11-kit's header has another place for " #name);
#include "functions.def"

_Static_assert(offsetof(struct p11_functions, C_GetInterfaceList) == sizeof(CK_FUNCTION_LIST) &&
                   sizeof(CK_FUNCTION_LIST) == (FUNCTIONS_2_40 + 1) * sizeof(void *),
               "2.40 has 68 functions");
_Static_assert(offsetof(struct p11_functions, C_EncapsulateKey) ==
                   (FUNCTIONS_3_0 + 1) * sizeof(void *),
               "3.0 has 92 functions");
_Static_assert(sizeof(struct p11_functions) == (FUNCTIONS_3_2 + 1) * sizeof(void *),
               "3.2 has 104 functions");
