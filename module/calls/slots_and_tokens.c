/* slots_and_tokens.c - "Slot and token management functions" of the specification.
 *
 * Any of them may tell that there is no token, or no such slot; then what is held was another token's.
 */
#include <stdlib.h>
#include <string.h>

#include "calls/own.h"
#include "guard/guard.h"
#include "random/fill_session.h"
#include "state/counters.h"
#include "state/settings.h"

/* Slots that are not listed have lost their token, or are gone themselves. */
static void note_listed(const CK_SLOT_ID *listed, CK_ULONG count)
{
    unsigned known = slots_count();
    for (unsigned i = 0; i < known; i++) {
        CK_ULONG at = 0;
        while (at < count && listed[at] != slot_at(i)->id)
            at++;
        if (at == count)
            slot_invalidate(slot_at(i), SLOT_TOKEN_GONE);
    }
}

CK_RV own_C_GetSlotList(CK_BBOOL tokenPresent, CK_SLOT_ID_PTR pSlotList, CK_ULONG_PTR pulCount,
                        const struct p11_functions *functions)
{
    CK_RV rv = functions->C_GetSlotList(tokenPresent, pSlotList, pulCount);
    if (rv == CKR_OK && pSlotList != NULL && pulCount != NULL)
        note_listed(pSlotList, *pulCount);
    slot_note_code(NULL, rv);
    return rv;
}

CK_RV own_C_GetSlotInfo(CK_SLOT_ID slotID, CK_SLOT_INFO_PTR pInfo,
                        const struct p11_functions *functions)
{
    CK_RV rv = functions->C_GetSlotInfo(slotID, pInfo);
    bool empty = rv == CKR_OK && pInfo != NULL && (pInfo->flags & CKF_TOKEN_PRESENT) == 0;
    slot_note_code(slot_find(slotID), empty ? CKR_TOKEN_NOT_PRESENT : rv);
    return rv;
}

CK_RV own_C_WaitForSlotEvent(CK_FLAGS flags, CK_SLOT_ID_PTR pSlot, CK_VOID_PTR pReserved,
                             const struct p11_functions *functions)
{
    CK_RV rv = functions->C_WaitForSlotEvent(flags, pSlot, pReserved);
    /* A token came or went. Either way what was there is there no longer. */
    if (rv == CKR_OK && pSlot != NULL)
        slot_note_code(slot_find(*pSlot), CKR_TOKEN_NOT_PRESENT);
    return rv;
}

static void subtract(CK_ULONG *count, bool one)
{
    if (one && *count != 0 && *count != CK_UNAVAILABLE_INFORMATION)
        --*count;
}

CK_RV own_C_GetTokenInfo(CK_SLOT_ID slotID, CK_TOKEN_INFO_PTR pInfo,
                         const struct p11_functions *functions)
{
    bool recursive = is_recursive(), is_open = false, is_read_write = false;
    struct slot *slot = recursive ? NULL : slot_find(slotID);
    if (slot != NULL)
        fill_session_hold(slot, &is_open, &is_read_write);
    CK_RV rv = functions->C_GetTokenInfo(slotID, pInfo);
    if (slot != NULL)
        fill_session_resume();
    if (rv == CKR_OK && pInfo != NULL && !recursive) {
        subtract(&pInfo->ulSessionCount, is_open);
        subtract(&pInfo->ulRwSessionCount, is_open && is_read_write);
        count_token(slot_add(slotID), pInfo->label);
    }
    slot_note_code(slot_find(slotID), rv);
    return rv;
}

CK_RV own_C_InitToken(CK_SLOT_ID slotID, CK_UTF8CHAR_PTR pPin, CK_ULONG ulPinLen,
                      CK_UTF8CHAR_PTR pLabel, const struct p11_functions *functions)
{
    if (is_recursive())
        return CKR_FUNCTION_FAILED;
    struct slot *slot = slot_find(slotID);
    fill_session_suspend(slot);
    CK_RV rv = functions->C_InitToken(slotID, pPin, ulPinLen, pLabel);
    if (slot != NULL && rv == CKR_OK)
        slot_invalidate(slot, SLOT_TOKEN_INITIALIZED);
    slot_note_code(slot, rv);
    fill_session_resume();
    return rv;
}

/* Mechanisms that no key is left for are as good as denied. */
static bool is_hidden(const struct policy *policy, CK_MECHANISM_TYPE type)
{
    return policy_denied_uses(policy, type) == FOR_ANY ||
           policy_min_key_bits(policy, type) == BITS_UNKNOWN;
}

CK_RV own_C_GetMechanismList(CK_SLOT_ID slotID, CK_MECHANISM_TYPE_PTR pMechanismList,
                             CK_ULONG_PTR pulCount, const struct p11_functions *functions)
{
    enum { MORE = 64 }; /* of a token whose list grows while it is asked */
    const struct policy *policy = policy_enforced();
    bool filters = policy != NULL && pulCount != NULL;
    CK_ULONG count = 0, kept = 0;
    CK_RV rv = functions->C_GetMechanismList(slotID, filters ? NULL : pMechanismList,
                                             filters ? &count : pulCount);
    slot_note_code(slot_find(slotID), rv);
    if (!filters || rv != CKR_OK)
        return rv;
    /* The whole list in one piece, so that what is counted is what is copied, without what is hidden. */
    CK_ULONG room = count += MORE;
    CK_MECHANISM_TYPE *shown = calloc(room, sizeof *shown);
    rv = shown != NULL ? functions->C_GetMechanismList(slotID, shown, &count) : CKR_HOST_MEMORY;
    if (rv == CKR_OK) {
        /* There may be tokens that count more than they wrote. */
        for (CK_ULONG i = 0; i < count && i < room; i++)
            if (!is_hidden(policy, shown[i]))
                shown[kept++] = shown[i];
        if (pMechanismList != NULL && *pulCount < kept)
            rv = CKR_BUFFER_TOO_SMALL;
        else if (pMechanismList != NULL)
            memcpy(pMechanismList, shown, kept * sizeof *shown);
        *pulCount = kept;
    }
    slot_note_code(slot_find(slotID), rv);
    free(shown);
    return rv;
}

/* In what unit a mechanism gives the sizes of its keys, by its description in the standard; 0: in none. */
static CK_ULONG unit_bits(CK_MECHANISM_TYPE type)
{
    static const char *const in_bits[] = {"RC2", "RC4", "Generic"};
    const struct mechanism *row = mechanism_find(type);
    if (row == NULL || row->size_from == SIZE_NONE || row->size_from > SIZE_VALUE)
        return 0;
    bool bits = row->size_from != SIZE_VALUE;
    for (size_t i = 0; i < sizeof in_bits / sizeof *in_bits; i++)
        bits = bits || has_name(row->names, in_bits[i], strlen(in_bits[i]));
    return bits ? 1 : 8;
}

CK_RV own_C_GetMechanismInfo(CK_SLOT_ID slotID, CK_MECHANISM_TYPE type, CK_MECHANISM_INFO_PTR pInfo,
                             const struct p11_functions *functions)
{
    const struct policy *policy = policy_enforced();
    if (policy != NULL && is_hidden(policy, type))
        return CKR_MECHANISM_INVALID;
    CK_RV rv = functions->C_GetMechanismInfo(slotID, type, pInfo);
    slot_note_code(slot_find(slotID), rv);
    if (policy == NULL || rv != CKR_OK || pInfo == NULL)
        return rv;
    for (int use = 0; use < USES; use++)
        if (policy_denied_uses(policy, type) & 1u << use)
            pInfo->flags &= ~guard_purposes[use];
    CK_ULONG unit = unit_bits(type);
    CK_ULONG least =
        unit != 0 ? (CK_ULONG)((policy_min_key_bits(policy, type) + unit - 1) / unit) : 0;
    if (pInfo->ulMinKeySize < least)
        pInfo->ulMinKeySize = least;
    return rv;
}
