/* test_nss_rows.c - proof-reads rows against NSS's header: the 92 functions of 3.0, and members of parameters. */
#include <stddef.h>

#include <pkcs11.h>
#include <pkcs11n.h>

/* Known to 3.2 only; rows that name them come behind those that are read here. */
typedef CK_FLAGS *CK_FLAGS_PTR;
typedef CK_ULONG CK_SESSION_VALIDATION_FLAGS_TYPE;
typedef struct CK_ASYNC_DATA *CK_ASYNC_DATA_PTR;

#include "functions.h"

#define P11_UPTO 300
#define ROW(name, ...)                                                                             \
    _Static_assert(__builtin_types_compatible_p(__typeof__(((struct p11_functions *)0)->name),     \
                                                __typeof__(((CK_FUNCTION_LIST_3_0 *)0)->name)),    \
                   "NSS's header has other parameters for " #name);                                \
    _Static_assert(offsetof(struct p11_functions, name) == offsetof(CK_FUNCTION_LIST_3_0, name),   \
                   "NSS's header has another place for " #name);
#include "functions.def"

#define HEADER_IS_3_0
#define MEMBER(structure, word, type, member, what)                                                \
    _Static_assert(offsetof(type, member) == (word) * sizeof(CK_ULONG),                            \
                   "NSS's header has another place for " #member " of " #type);
#include "guard/parameters.def"

_Static_assert(sizeof(CK_FUNCTION_LIST_3_0) == (FUNCTIONS_3_0 + 1) * sizeof(void *) &&
                   offsetof(struct p11_functions, C_EncapsulateKey) == sizeof(CK_FUNCTION_LIST_3_0),
               "NSS's header has another number of functions");

int main(void)
{
    return 0; /* it could be compiled */
}
