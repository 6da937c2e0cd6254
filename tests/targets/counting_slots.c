/* counting_slots.c - what the counting target says of a slot without being asked about its token's bytes. */
#include <string.h>

#include "counting.h"

/* What such a call on the slot is answered before anything else. */
static CK_RV enter_and_ask(CK_SLOT_ID id, const void *output, const struct knobs *knobs)
{
    if (!counting_enter())
        return CKR_CRYPTOKI_NOT_INITIALIZED;
    unsigned token;
    CK_RV rv = slot_answer(id, knobs, &token);
    counting_leave();
    return rv == CKR_OK && output == NULL ? CKR_ARGUMENTS_BAD : rv;
}

static CK_RV counting_C_GetSlotInfo(CK_SLOT_ID slotID, CK_SLOT_INFO_PTR pInfo)
{
    struct knobs knobs;
    knobs_read(&knobs);
    CK_RV rv = enter_and_ask(slotID, pInfo, &knobs);
    if (rv == CKR_OK) {
        memset(pInfo, ' ', sizeof *pInfo);
        pInfo->flags = CKF_REMOVABLE_DEVICE | CKF_HW_SLOT |
                       (slotID != knobs.empty_slot ? CKF_TOKEN_PRESENT : 0);
    }
    return call_log("C_GetSlotInfo", NO_NUMBER, (long)slotID, NO_NUMBER, rv);
}

/* It has a generator and nothing else. */
static CK_RV counting_C_GetMechanismList(CK_SLOT_ID slotID, CK_MECHANISM_TYPE_PTR pMechanismList,
                                         CK_ULONG_PTR pulCount)
{
    struct knobs knobs;
    (void)pMechanismList;
    knobs_read(&knobs);
    CK_RV rv = enter_and_ask(slotID, pulCount, &knobs);
    if (rv == CKR_OK)
        *pulCount = 0;
    return call_log("C_GetMechanismList", NO_NUMBER, (long)slotID, NO_NUMBER, rv);
}

static CK_RV counting_C_GetMechanismInfo(CK_SLOT_ID slotID, CK_MECHANISM_TYPE type,
                                         CK_MECHANISM_INFO_PTR pInfo)
{
    struct knobs knobs;
    (void)type;
    knobs_read(&knobs);
    CK_RV rv = enter_and_ask(slotID, pInfo, &knobs);
    if (rv == CKR_OK)
        rv = CKR_MECHANISM_INVALID;
    return call_log("C_GetMechanismInfo", NO_NUMBER, (long)slotID, NO_NUMBER, rv);
}

void counting_add_slots(struct p11_functions *list)
{
    list->C_GetSlotInfo = counting_C_GetSlotInfo;
    list->C_GetMechanismList = counting_C_GetMechanismList;
    list->C_GetMechanismInfo = counting_C_GetMechanismInfo;
}
