/* interfaces.c - the three functions that the module exports: the ways to its lists. */
#include <string.h>

#include "calls/own.h"
#include "state/settings.h"

static CK_UTF8CHAR standard_name[] = "PKCS 11";

/* Our interfaces, by the number of their list and their flags. */
/* clang-format off */
#define OF_LIST(number) {{standard_name, &own_lists[number], 0}, {standard_name, &own_lists[number], CKF_INTERFACE_FORK_SAFE}}
static CK_INTERFACE ours[TARGET_LISTS][2] = {OF_LIST(0), OF_LIST(1), OF_LIST(2), OF_LIST(3), OF_LIST(4)};
/* clang-format on */

/* Our list of that number has the version of the target's. */
static CK_INTERFACE *own_interface(unsigned number, CK_FLAGS flags)
{
    own_lists[number].version = target_list_version(number);
    return &ours[number][flags & CKF_INTERFACE_FORK_SAFE];
}

/* A vendor's interface leads past the policy, since what its functions take is not known. */
static bool leads_past_policy(const CK_INTERFACE *targets)
{
    return policy_enforced() != NULL && !target_is_standard(targets);
}

/* What stands for one of the target's interfaces: one of ours, or itself. NULL if it is not offered. */
static CK_INTERFACE *offered(const CK_INTERFACE *targets)
{
    if (targets->pInterfaceName == NULL || leads_past_policy(targets))
        return NULL;
    if (!target_is_standard(targets))
        return (CK_INTERFACE *)targets;
    unsigned number = target_list_number(targets->pFunctionList);
    return number < TARGET_LISTS ? own_interface(number, targets->flags) : NULL;
}

CK_RV own_C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR ppFunctionList,
                            const struct p11_functions *functions)
{
    (void)functions;
    if (ppFunctionList == NULL)
        return CKR_ARGUMENTS_BAD;
    if (!module_prepare())
        return CKR_HOST_MEMORY;
    *ppFunctionList = own_interface(0, 0)->pFunctionList;
    return CKR_OK;
}

CK_RV own_C_GetInterfaceList(CK_INTERFACE_PTR pInterfacesList, CK_ULONG_PTR pulCount,
                             const struct p11_functions *functions)
{
    CK_ULONG kept = 0;
    (void)functions;
    if (pulCount == NULL)
        return CKR_ARGUMENTS_BAD;
    if (!module_prepare())
        return CKR_HOST_MEMORY;
    const CK_INTERFACE *targets = target_loaded.interfaces;
    size_t count = target_loaded.interfaces_count;
    CK_ULONG room = pInterfacesList != NULL ? *pulCount : 0;
    /* A target that has no getter for interfaces has one: its list from C_GetFunctionList. */
    for (size_t i = 0; i < count || (i == 0 && count == 0); i++) {
        const CK_INTERFACE *interface = count != 0 ? offered(&targets[i]) : own_interface(0, 0);
        if (interface != NULL && kept++ < room)
            pInterfacesList[kept - 1] = *interface;
    }
    *pulCount = kept;
    return pInterfacesList == NULL || kept <= room ? CKR_OK : CKR_BUFFER_TOO_SMALL;
}

static bool is_plain(const CK_UTF8CHAR *name, const CK_VERSION *version, CK_FLAGS flags)
{
    CK_VERSION plain = target_list_version(0);
    return (name == NULL || strcmp((const char *)name, (const char *)standard_name) == 0) &&
           flags == 0 &&
           (version == NULL || (version->major == plain.major && version->minor == plain.minor));
}

CK_RV own_C_GetInterface(CK_UTF8CHAR_PTR pInterfaceName, CK_VERSION_PTR pVersion,
                         CK_INTERFACE_PTR_PTR ppInterface, CK_FLAGS flags,
                         const struct p11_functions *functions)
{
    CK_INTERFACE *interface = NULL;
    CK_RV rv = CKR_OK;
    (void)functions;
    if (ppInterface == NULL)
        return CKR_ARGUMENTS_BAD;
    if (!module_prepare())
        return CKR_HOST_MEMORY;
    if (target_loaded.interface != NULL) {
        rv = target_loaded.interface(pInterfaceName, pVersion, &interface, flags);
        /* The default, if that is a vendor's: then the standard one. */
        if (rv == CKR_OK && interface != NULL && pInterfaceName == NULL &&
            leads_past_policy(interface))
            rv = target_loaded.interface(standard_name, pVersion, &interface, flags);
        interface = rv == CKR_OK && interface != NULL ? offered(interface) : NULL;
    } else if (is_plain(pInterfaceName, pVersion, flags))
        interface = own_interface(0, 0);
    if (interface == NULL)
        return rv != CKR_OK ? rv : CKR_ARGUMENTS_BAD;
    *ppInterface = interface;
    return CKR_OK;
}

#define EXPORTED(name, ...)                                                                        \
    __attribute__((visibility("default"))) CK_RV name(PARAMS(__VA_ARGS__));                        \
    CK_RV name(PARAMS(__VA_ARGS__))                                                                \
    {                                                                                              \
        return own_##name(ARGS(__VA_ARGS__), NULL);                                                \
    }
/* clang-format off */
EXPORTED(C_GetFunctionList, (CK_FUNCTION_LIST_PTR_PTR, ppFunctionList))
EXPORTED(C_GetInterfaceList, (CK_INTERFACE_PTR, pInterfacesList), (CK_ULONG_PTR, pulCount))
EXPORTED(C_GetInterface, (CK_UTF8CHAR_PTR, pInterfaceName), (CK_VERSION_PTR, pVersion), (CK_INTERFACE_PTR_PTR, ppInterface), (CK_FLAGS, flags))
/* clang-format on */
