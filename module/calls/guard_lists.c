/* guard_lists.c - C_GetMechanismList and C_GetMechanismInfo, without what the policy denies. */
#include <stdlib.h>
#include <string.h>

#include "calls/own.h"
#include "guard/guard.h"
#include "state/slots.h"
#include "state/settings.h"

/* Of a token whose list grows while it is asked. */
enum { TRIES = 4 };

/* Mechanisms that no key is left for are as good as denied. */
static bool is_hidden(const struct policy *policy, CK_MECHANISM_TYPE type)
{
    return policy_denied_uses(policy, type) == FOR_ANY ||
           policy_min_key_bits(policy, type) == BITS_UNKNOWN;
}

/* The whole list in one piece, so that what is counted is what is copied. *list is the caller's to free(). */
static CK_RV fetch_list(const struct p11_functions *functions, CK_SLOT_ID slot,
                        CK_MECHANISM_TYPE **list, CK_ULONG *count)
{
    CK_RV rv = CKR_BUFFER_TOO_SMALL;
    CK_ULONG room;
    *list = NULL;
    for (int i = 0; i < TRIES && rv == CKR_BUFFER_TOO_SMALL; i++) {
        rv = functions->C_GetMechanismList(slot, NULL, &room);
        if (rv != CKR_OK)
            return rv;
        free(*list);
        *list = calloc(room + 1, sizeof **list);
        if (*list == NULL)
            return CKR_HOST_MEMORY;
        *count = room;
        rv = functions->C_GetMechanismList(slot, *list, count);
    }
    /* There may be tokens that count more than they wrote. */
    if (*count > room)
        *count = room;
    return rv;
}

static CK_ULONG remove_hidden(const struct policy *policy, CK_MECHANISM_TYPE *list, CK_ULONG count)
{
    CK_ULONG kept = 0;
    for (CK_ULONG i = 0; i < count; i++)
        if (!is_hidden(policy, list[i]))
            list[kept++] = list[i];
    return kept;
}

CK_RV own_C_GetMechanismList(CK_SLOT_ID slotID, CK_MECHANISM_TYPE_PTR pMechanismList,
                             CK_ULONG_PTR pulCount, const struct p11_functions *functions)
{
    const struct policy *policy = policy_in_force();
    CK_MECHANISM_TYPE *list;
    CK_ULONG kept = 0;
    if (policy == NULL || policy_is_audit(policy) || pulCount == NULL) {
        CK_RV rv = functions->C_GetMechanismList(slotID, pMechanismList, pulCount);
        slots_note_code(slotID, rv);
        return rv;
    }
    CK_RV rv = fetch_list(functions, slotID, &list, &kept);
    slots_note_code(slotID, rv);
    if (rv == CKR_OK) {
        kept = remove_hidden(policy, list, kept);
        if (pMechanismList != NULL && *pulCount < kept)
            rv = CKR_BUFFER_TOO_SMALL;
        else if (pMechanismList != NULL)
            memcpy(pMechanismList, list, kept * sizeof *list);
        *pulCount = kept;
    }
    free(list);
    return rv;
}

/* In what unit a mechanism gives the sizes of its keys, by its description in the standard; 0: in none. */
static CK_ULONG unit_bits(CK_MECHANISM_TYPE type)
{
    const struct mechanism *row = mechanism_find(type);
    switch (row != NULL ? row->size_from : SIZE_NONE) {
    case SIZE_MODULUS:
    case SIZE_PRIME:
    case SIZE_ORDER:
    case SIZE_CURVE:
        return 1;
    case SIZE_VALUE:
        break;
    default:
        return 0;
    }
    static const char *const in_bits[] = {"RC2", "RC4", "Generic"};
    for (size_t i = 0; i < sizeof in_bits / sizeof *in_bits; i++)
        if (has_name(row->names, in_bits[i], strlen(in_bits[i])))
            return 1;
    return 8;
}

CK_RV own_C_GetMechanismInfo(CK_SLOT_ID slotID, CK_MECHANISM_TYPE type, CK_MECHANISM_INFO_PTR pInfo,
                             const struct p11_functions *functions)
{
    const struct policy *policy = policy_in_force();
    bool enforced = policy != NULL && !policy_is_audit(policy);
    if (enforced && is_hidden(policy, type))
        return CKR_MECHANISM_INVALID;
    CK_RV rv = functions->C_GetMechanismInfo(slotID, type, pInfo);
    slots_note_code(slotID, rv);
    if (!enforced || rv != CKR_OK || pInfo == NULL)
        return rv;

    for (int use = 0; use < USES; use++)
        if (policy_denied_uses(policy, type) & 1u << use)
            pInfo->flags &= ~guard_purposes[use];
    uint64_t least_bits = policy_min_key_bits(policy, type);
    CK_ULONG unit = least_bits != 0 ? unit_bits(type) : 0;
    if (unit == 0)
        return rv;
    CK_ULONG least = (CK_ULONG)((least_bits + unit - 1) / unit);
    if (pInfo->ulMinKeySize < least)
        pInfo->ulMinKeySize = least;
    return rv;
}
