/* interfaces.c - the three functions that we export: the ways to our lists. */
#include <string.h>

#include "calls/forward.h"
#include "calls/lifecycle.h"
#include "calls/lists.h"
#include "state/settings.h"

enum { INTERFACES_MAX = 64 };

#define EXPORT __attribute__((visibility("default")))

static const char standard_name[] = "PKCS 11";

/* What we ever gave out. Entries stay: applications keep pointers to them. Guarded by state->lock. */
static CK_INTERFACE given[INTERFACES_MAX];
static unsigned given_count;

static bool is_standard_name(const CK_UTF8CHAR *name)
{
    return name != NULL && strcmp((const char *)name, standard_name) == 0;
}

/* The version that our list from C_GetFunctionList claims: the target's, but never more than 2.40,
 * since a list that comes that way ends there. */
static CK_VERSION plain_version(void)
{
    const CK_FUNCTION_LIST *plain = target_plain_list();
    CK_VERSION highest = {2, 40};
    return plain != NULL && plain->version.major <= 2 ? plain->version : highest;
}

/* A vendor's interface leads past the policy, since nobody knows what its functions take. */
static bool leads_past_policy(const CK_INTERFACE *theirs)
{
    const struct policy *policy = policy_in_force();
    return policy != NULL && !policy_is_audit(policy) && !is_standard_name(theirs->pInterfaceName);
}

/* Our interface that stands for one of the target's. NULL if there were too many, or if it is not offered. */
static CK_INTERFACE *give(const CK_INTERFACE *theirs)
{
    CK_INTERFACE ours = *theirs;
    if (leads_past_policy(theirs))
        return NULL;
    if (is_standard_name(theirs->pInterfaceName)) {
        const CK_VERSION *version = theirs->pFunctionList;
        ours.pInterfaceName = (CK_UTF8CHAR *)standard_name;
        ours.pFunctionList = (void *)list_of_version(version->major, version->minor);
    }
    CK_INTERFACE *found = NULL;
    lock_acquire(&state->lock);
    for (unsigned i = 0; i < given_count && found == NULL; i++)
        if (given[i].pInterfaceName == ours.pInterfaceName &&
            given[i].pFunctionList == ours.pFunctionList && given[i].flags == ours.flags)
            found = &given[i];
    if (found == NULL && given_count < INTERFACES_MAX) {
        found = &given[given_count++];
        *found = ours;
    }
    lock_release(&state->lock);
    return found;
}

/* The one interface of a target that has no getter for them. */
static CK_INTERFACE *give_plain(void)
{
    CK_VERSION version = plain_version();
    CK_INTERFACE plain = {.pInterfaceName = (CK_UTF8CHAR *)standard_name,
                          .pFunctionList = &version};
    return give(&plain);
}

CK_RV proxy_C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR ppFunctionList)
{
    if (ppFunctionList == NULL)
        return CKR_ARGUMENTS_BAD;
    life_prepare_target();
    CK_VERSION version = plain_version();
    *ppFunctionList = (CK_FUNCTION_LIST_PTR)list_of_version(version.major, version.minor);
    return CKR_OK;
}

CK_RV proxy_C_GetInterfaceList(CK_INTERFACE_PTR pInterfacesList, CK_ULONG_PTR pulCount)
{
    CK_INTERFACE theirs[INTERFACES_MAX];
    CK_INTERFACE ours[INTERFACES_MAX];
    CK_ULONG count = INTERFACES_MAX;
    CK_ULONG kept = 0;
    if (pulCount == NULL)
        return CKR_ARGUMENTS_BAD;
    life_prepare_target();
    if (target_interface_list() != NULL) {
        CK_RV rv = target_interface_list()(theirs, &count);
        if (rv != CKR_OK)
            return rv;
        for (CK_ULONG i = 0; i < count; i++) {
            CK_INTERFACE *interface = give(&theirs[i]);
            if (interface != NULL)
                ours[kept++] = *interface;
        }
    } else
        ours[kept++] = *give_plain();

    CK_ULONG room = *pulCount;
    *pulCount = kept;
    if (pInterfacesList == NULL)
        return CKR_OK;
    if (room < kept)
        return CKR_BUFFER_TOO_SMALL;
    memcpy(pInterfacesList, ours, kept * sizeof *ours);
    return CKR_OK;
}

CK_RV proxy_C_GetInterface(CK_UTF8CHAR_PTR pInterfaceName, CK_VERSION_PTR pVersion,
                           CK_INTERFACE_PTR_PTR ppInterface, CK_FLAGS flags)
{
    CK_INTERFACE *interface = NULL;
    if (ppInterface == NULL)
        return CKR_ARGUMENTS_BAD;
    life_prepare_target();
    if (target_interface() != NULL) {
        CK_RV rv = target_interface()(pInterfaceName, pVersion, &interface, flags);
        if (rv != CKR_OK)
            return rv;
        /* The default, if that is a vendor's: then the standard one. */
        if (interface != NULL && pInterfaceName == NULL && leads_past_policy(interface))
            rv = target_interface()((CK_UTF8CHAR_PTR)standard_name, pVersion, &interface, flags);
        if (rv != CKR_OK)
            return rv;
        interface = interface != NULL ? give(interface) : NULL;
    } else {
        CK_VERSION plain = plain_version();
        bool named = pInterfaceName == NULL || is_standard_name(pInterfaceName);
        bool versioned =
            pVersion == NULL || (pVersion->major == plain.major && pVersion->minor == plain.minor);
        if (named && versioned && flags == 0)
            interface = give_plain();
    }
    if (interface == NULL)
        return CKR_ARGUMENTS_BAD;
    *ppInterface = interface;
    return CKR_OK;
}

EXPORT CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR ppFunctionList)
{
    return proxy_C_GetFunctionList(ppFunctionList);
}

EXPORT CK_RV C_GetInterfaceList(CK_INTERFACE_PTR pInterfacesList, CK_ULONG_PTR pulCount);
EXPORT CK_RV C_GetInterfaceList(CK_INTERFACE_PTR pInterfacesList, CK_ULONG_PTR pulCount)
{
    return proxy_C_GetInterfaceList(pInterfacesList, pulCount);
}

EXPORT CK_RV C_GetInterface(CK_UTF8CHAR_PTR pInterfaceName, CK_VERSION_PTR pVersion,
                            CK_INTERFACE_PTR_PTR ppInterface, CK_FLAGS flags);
EXPORT CK_RV C_GetInterface(CK_UTF8CHAR_PTR pInterfaceName, CK_VERSION_PTR pVersion,
                            CK_INTERFACE_PTR_PTR ppInterface, CK_FLAGS flags)
{
    return proxy_C_GetInterface(pInterfaceName, pVersion, ppInterface, flags);
}
