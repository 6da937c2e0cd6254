/* interfaces.c - the three functions that the module exports: the ways to its lists. */
#include <string.h>

#include "calls/own.h"
#include "state/settings.h"

#define EXPORT __attribute__((visibility("default")))

static const char standard_name[] = "PKCS 11";

/* Our interfaces, by the number of their list and their flags. */
static CK_INTERFACE ours[TARGET_LISTS][2];

__attribute__((constructor)) static void prepare_interfaces(void)
{
    for (unsigned i = 0; i < TARGET_LISTS; i++)
        for (CK_FLAGS flags = 0; flags <= CKF_INTERFACE_FORK_SAFE; flags++)
            ours[i][flags] = (CK_INTERFACE){(CK_UTF8CHAR *)standard_name, own_list(i), flags};
}

/* A vendor's interface leads past the policy, since what its functions take is not known. */
static bool leads_past_policy(const CK_INTERFACE *targets)
{
    const struct policy *policy = policy_in_force();
    return policy != NULL && !policy_is_audit(policy) && !target_is_standard(targets);
}

/* What stands for one of the target's interfaces: one of ours, or itself. NULL if it is not offered. */
static const CK_INTERFACE *offered(const CK_INTERFACE *targets)
{
    if (targets->pInterfaceName == NULL || leads_past_policy(targets))
        return NULL;
    if (!target_is_standard(targets))
        return targets;
    unsigned number = target_list_number(targets->pFunctionList);
    return own_list(number) != NULL ? &ours[number][targets->flags & CKF_INTERFACE_FORK_SAFE]
                                    : NULL;
}

/* The one interface of a target that has no getter for them: its list from C_GetFunctionList. */
static CK_INTERFACE *offered_plain(void)
{
    own_list(0);
    return &ours[0][0];
}

CK_RV own_C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR ppFunctionList,
                            const struct p11_functions *functions)
{
    (void)functions;
    if (ppFunctionList == NULL)
        return CKR_ARGUMENTS_BAD;
    if (!module_prepare())
        return CKR_HOST_MEMORY;
    struct p11_functions *list = own_list(0);
    /* Nothing was loaded: C_Initialize, which is next, will say why. */
    if (list->version.major == 0)
        list->version = (CK_VERSION){2, 40};
    *ppFunctionList = (CK_FUNCTION_LIST_PTR)list;
    return CKR_OK;
}

CK_RV own_C_GetInterfaceList(CK_INTERFACE_PTR pInterfacesList, CK_ULONG_PTR pulCount,
                             const struct p11_functions *functions)
{
    size_t count;
    CK_ULONG kept = 0;
    (void)functions;
    if (pulCount == NULL)
        return CKR_ARGUMENTS_BAD;
    if (!module_prepare())
        return CKR_HOST_MEMORY;
    const CK_INTERFACE *targets = target_interfaces(&count);
    CK_ULONG room = pInterfacesList != NULL ? *pulCount : 0;
    for (size_t i = 0; i < count; i++) {
        const CK_INTERFACE *interface = offered(&targets[i]);
        if (interface != NULL && kept++ < room)
            pInterfacesList[kept - 1] = *interface;
    }
    if (count == 0 && kept++ < room)
        pInterfacesList[0] = *offered_plain();
    *pulCount = kept;
    return pInterfacesList == NULL || kept <= room ? CKR_OK : CKR_BUFFER_TOO_SMALL;
}

/* As the target's own C_GetInterface answers. */
static CK_RV get_targets(CK_UTF8CHAR_PTR name, CK_VERSION_PTR version, CK_FLAGS flags,
                         CK_INTERFACE **found)
{
    CK_INTERFACE *interface = NULL;
    CK_RV rv = target_get_interface()(name, version, &interface, flags);
    /* The default, if that is a vendor's: then the standard one. */
    if (rv == CKR_OK && interface != NULL && name == NULL && leads_past_policy(interface))
        rv = target_get_interface()((CK_UTF8CHAR_PTR)standard_name, version, &interface, flags);
    if (rv == CKR_OK && interface != NULL)
        *found = (CK_INTERFACE *)offered(interface);
    return rv;
}

static bool is_plain(const CK_UTF8CHAR *name, const CK_VERSION *version, CK_FLAGS flags)
{
    CK_VERSION plain = own_list(0)->version;
    return (name == NULL || strcmp((const char *)name, standard_name) == 0) && flags == 0 &&
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
    if (target_get_interface() != NULL)
        rv = get_targets(pInterfaceName, pVersion, flags, &interface);
    else if (is_plain(pInterfaceName, pVersion, flags))
        interface = offered_plain();
    if (rv != CKR_OK || interface == NULL)
        return rv != CKR_OK ? rv : CKR_ARGUMENTS_BAD;
    *ppInterface = interface;
    return CKR_OK;
}

EXPORT CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR ppFunctionList)
{
    return own_C_GetFunctionList(ppFunctionList, NULL);
}

EXPORT CK_RV C_GetInterfaceList(CK_INTERFACE_PTR pInterfacesList, CK_ULONG_PTR pulCount);
EXPORT CK_RV C_GetInterfaceList(CK_INTERFACE_PTR pInterfacesList, CK_ULONG_PTR pulCount)
{
    return own_C_GetInterfaceList(pInterfacesList, pulCount, NULL);
}

EXPORT CK_RV C_GetInterface(CK_UTF8CHAR_PTR pInterfaceName, CK_VERSION_PTR pVersion,
                            CK_INTERFACE_PTR_PTR ppInterface, CK_FLAGS flags);
EXPORT CK_RV C_GetInterface(CK_UTF8CHAR_PTR pInterfaceName, CK_VERSION_PTR pVersion,
                            CK_INTERFACE_PTR_PTR ppInterface, CK_FLAGS flags)
{
    return own_C_GetInterface(pInterfaceName, pVersion, ppInterface, flags, NULL);
}
