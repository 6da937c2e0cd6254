/* counting_wait.c - the counting target waits for a slot's event: the one it is told of, or the end of its life. */
#include <limits.h>
#include <time.h>

#include "counting.h"

CK_RV counting_C_WaitForSlotEvent(CK_FLAGS flags, CK_SLOT_ID_PTR pSlot, CK_VOID_PTR pReserved)
{
    static const struct timespec a_moment = {.tv_nsec = 2 * 1000 * 1000};
    struct knobs knobs;
    (void)pReserved;
    call_log("C_WaitForSlotEvent", NO_NUMBER, NO_NUMBER, NO_NUMBER, CKR_OK);
    knobs_read(&knobs);
    if (knobs.event_slot != ULONG_MAX) {
        *pSlot = knobs.event_slot;
        return CKR_OK;
    }
    while (counting_enter()) {
        counting_leave();
        if ((flags & CKF_DONT_BLOCK) != 0)
            return CKR_NO_EVENT;
        nanosleep(&a_moment, NULL);
    }
    return CKR_CRYPTOKI_NOT_INITIALIZED;
}
