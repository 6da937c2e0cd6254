/* slots_and_tokens.c - "Slot and token management functions" of the specification.
 *
 * Any of them may tell that there is no token, or no such slot; then what is held was another token's.
 */
#include "base/clock.h"
#include "calls/own.h"
#include "random/fill_session.h"
#include "state/counters.h"

/* A token that opens or closes the filler's session for longer hangs, and the application has not asked for that. */
static const int64_t TRANSITION_WAIT_NS = 1 * NS_PER_S;

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
    if (rv == CKR_CRYPTOKI_NOT_INITIALIZED)
        slots_invalidate(SLOT_FINALIZED);
    return rv;
}

CK_RV own_C_GetSlotInfo(CK_SLOT_ID slotID, CK_SLOT_INFO_PTR pInfo,
                        const struct p11_functions *functions)
{
    CK_RV rv = functions->C_GetSlotInfo(slotID, pInfo);
    bool empty = rv == CKR_OK && pInfo != NULL && (pInfo->flags & CKF_TOKEN_PRESENT) == 0;
    slots_note_code(slotID, empty ? CKR_TOKEN_NOT_PRESENT : rv);
    return rv;
}

CK_RV own_C_WaitForSlotEvent(CK_FLAGS flags, CK_SLOT_ID_PTR pSlot, CK_VOID_PTR pReserved,
                             const struct p11_functions *functions)
{
    CK_RV rv = functions->C_WaitForSlotEvent(flags, pSlot, pReserved);
    struct slot *slot = rv == CKR_OK && pSlot != NULL ? slot_find(*pSlot) : NULL;
    /* A token came or went. Either way what was there is there no longer. */
    if (slot != NULL)
        slot_invalidate(slot, SLOT_TOKEN_GONE);
    return rv;
}

static void subtract_one(CK_ULONG *count)
{
    if (*count != 0 && *count != CK_UNAVAILABLE_INFORMATION)
        --*count;
}

CK_RV own_C_GetTokenInfo(CK_SLOT_ID slotID, CK_TOKEN_INFO_PTR pInfo,
                         const struct p11_functions *functions)
{
    struct slot *slot = is_recursive() ? NULL : slot_find(slotID);
    struct fill_session_view before = {CK_INVALID_HANDLE, false, false}, after = before;
    CK_RV rv = CKR_OK;
    int64_t until_ns = slot != NULL ? clock_exact_ns() + TRANSITION_WAIT_NS : 0;
    /* Again if the filler's session was opened or closed while the token counted, but not for ever. */
    for (int tries = 0; tries < 4; tries++) {
        if (slot != NULL)
            before = fill_session_view(slot, until_ns);
        rv = functions->C_GetTokenInfo(slotID, pInfo);
        if (slot != NULL)
            after = fill_session_view(slot, /* until_ns= */ 0);
        if (rv != CKR_OK || (before.session == after.session && !after.in_transition))
            break;
    }
    if (rv == CKR_OK && pInfo != NULL && before.session != CK_INVALID_HANDLE) {
        subtract_one(&pInfo->ulSessionCount);
        if (before.is_read_write)
            subtract_one(&pInfo->ulRwSessionCount);
    }
    if (rv == CKR_OK && pInfo != NULL && !is_recursive())
        count_token(slot_add(slotID), pInfo->label);
    slots_note_code(slotID, rv);
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
    if (slot != NULL && rv == CKR_OK) {
        slot_invalidate(slot, SLOT_TOKEN_INITIALIZED);
        count_pool(slot);
    }
    slots_note_code(slotID, rv);
    fill_session_resume();
    return rv;
}
