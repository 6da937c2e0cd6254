/* leaning.c - what links a target that knows nothing of interfaces with a module that does. */
#include "cryptoki.h"

#define EXPORT __attribute__((visibility("default")))

extern CK_RV C_GetInterfaceList(CK_INTERFACE_PTR pInterfacesList, CK_ULONG_PTR pulCount);

EXPORT extern CK_RV (*leans_on)(CK_INTERFACE_PTR, CK_ULONG_PTR);
CK_RV (*leans_on)(CK_INTERFACE_PTR, CK_ULONG_PTR) = C_GetInterfaceList;
