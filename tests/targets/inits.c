/* inits.c - a target that remembers what C_Initialize was given, and can call back meanwhile. */
#include "inits.h"

#include <stddef.h>
#include <stdint.h>

#include "functions.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT extern struct inits inits;
struct inits inits;

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define P11_UPTO 240
#define ROW(name, ...)                                                                             \
    static CK_RV missing_##name(PARAMS(__VA_ARGS__))                                               \
    {                                                                                              \
        return CKR_FUNCTION_NOT_SUPPORTED;                                                         \
    }
#include "functions.def"

static CK_RV inits_C_Initialize(CK_VOID_PTR pInitArgs)
{
    unsigned call = inits.calls < INITS_MOST ? inits.calls++ : INITS_MOST - 1;
    inits.got[call].pointer = pInitArgs;
    /* Nothing to be read at (void *)1, which a test may well pass. */
    if ((uintptr_t)pInitArgs > sizeof(CK_C_INITIALIZE_ARGS))
        inits.got[call].args = *(CK_C_INITIALIZE_ARGS *)pInitArgs;
    if (inits.during != NULL)
        inits.during();
    return inits.answers[call];
}

static CK_RV inits_C_Finalize(CK_VOID_PTR pReserved)
{
    return CKR_OK;
}

static CK_RV inits_C_GetInfo(CK_INFO_PTR pInfo)
{
    return CKR_OK;
}

EXPORT CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR ppFunctionList)
{
    static struct p11_functions list = {
        .version = {2, 40},
#define P11_UPTO       240
#define ROW(name, ...) .name = missing_##name,
#include "functions.def"
    };
    list.C_Initialize = inits_C_Initialize;
    list.C_Finalize = inits_C_Finalize;
    list.C_GetInfo = inits_C_GetInfo;
    *ppFunctionList = (CK_FUNCTION_LIST_PTR)&list;
    return CKR_OK;
}
