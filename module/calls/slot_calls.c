/* slot_calls.c - what is asked about slots and their tokens: how many sessions, and whether there is a token.
 *
 * That there is none, or no such slot, may be said by any of them; then what is held was another token's.
 */
#include "base/clock.h"
#include "calls/forward.h"
#include "random/prefetch.h"

/* Those of our slots that are not listed have lost their token, or are gone themselves. */
static void note_listed(const CK_SLOT_ID *listed, CK_ULONG count)
{
    lock_acquire(&state->lock);
    unsigned known = state->slot_count;
    lock_release(&state->lock);
    for (unsigned i = 0; i < known; i++) {
        CK_ULONG at = 0;
        while (at < count && listed[at] != state->slots[i].id)
            at++;
        if (at == count)
            note_slot_answer(&state->slots[i], CKR_TOKEN_NOT_PRESENT);
    }
}

CK_RV proxy_C_GetSlotList(CK_BBOOL tokenPresent, CK_SLOT_ID_PTR pSlotList, CK_ULONG_PTR pulCount)
{
    CK_RV rv = target.C_GetSlotList(tokenPresent, pSlotList, pulCount);
    if (rv == CKR_OK && pSlotList != NULL && pulCount != NULL)
        note_listed(pSlotList, *pulCount);
    if (rv == CKR_CRYPTOKI_NOT_INITIALIZED)
        note_finalized();
    return rv;
}

CK_RV proxy_C_GetSlotInfo(CK_SLOT_ID slotID, CK_SLOT_INFO_PTR pInfo)
{
    CK_RV rv = target.C_GetSlotInfo(slotID, pInfo);
    bool empty = rv == CKR_OK && pInfo != NULL && (pInfo->flags & CKF_TOKEN_PRESENT) == 0;
    note_answer_of_slot(slotID, empty ? CKR_TOKEN_NOT_PRESENT : rv);
    return rv;
}

CK_RV proxy_C_WaitForSlotEvent(CK_FLAGS flags, CK_SLOT_ID_PTR pSlot, CK_VOID_PTR pReserved)
{
    CK_RV rv = target.C_WaitForSlotEvent(flags, pSlot, pReserved);
    struct slot *slot = rv == CKR_OK && pSlot != NULL ? slot_find(*pSlot) : NULL;
    /* A token came or went. Either way what was there is there no longer. */
    if (slot != NULL)
        note_slot_answer(slot, CKR_TOKEN_NOT_PRESENT);
    return rv;
}

/* Ours, as the application must not count it. */
struct ours {
    CK_SESSION_HANDLE session;
    bool is_rw;
    bool in_between; /* it is being opened or closed: the token may count it or not */
};

/* Longer only if the token hangs, and then the application shall not wait for what it did not ask for. */
static const int64_t IN_BETWEEN_NS = 1 * NS_PER_S;

static struct ours ours_of(struct slot *slot)
{
    struct ours ours = {.session = CK_INVALID_HANDLE};
    if (slot == NULL)
        return ours;
    lock_acquire(&state->lock);
    ours = (struct ours){.session = slot->hidden,
                         .is_rw = slot->hidden_is_rw,
                         .in_between = slot->hidden == CK_INVALID_HANDLE && slot->hidden_at_work};
    lock_release(&state->lock);
    return ours;
}

/* Waits while it is in between, until *until_ns, which the first wait sets; 0 before. */
static struct ours settled_ours_of(struct slot *slot, int64_t *until_ns)
{
    for (;;) {
        unsigned bell = atomic_load(&state->slot_bell);
        struct ours ours = ours_of(slot);
        if (!ours.in_between)
            return ours;
        int64_t now_ns = clock_exact_ns();
        if (*until_ns == 0)
            *until_ns = now_ns + IN_BETWEEN_NS;
        if (now_ns >= *until_ns)
            return ours;
        wait_on_word(&state->slot_bell, bell, *until_ns - now_ns);
    }
}

static void subtract_one(CK_ULONG *count)
{
    if (*count != 0 && *count != CK_UNAVAILABLE_INFORMATION)
        --*count;
}

CK_RV proxy_C_GetTokenInfo(CK_SLOT_ID slotID, CK_TOKEN_INFO_PTR pInfo)
{
    struct slot *slot = slot_find(slotID);
    hidden_close_inherited();
    int64_t until_ns = 0;
    struct ours before = settled_ours_of(slot, &until_ns);
    CK_RV rv = target.C_GetTokenInfo(slotID, pInfo);
    struct ours after = ours_of(slot);
    /* Opened or closed while the token counted: ask again, but not for ever. */
    for (int tries = 0;
         tries < 3 && rv == CKR_OK && (before.session != after.session || after.in_between);
         tries++) {
        before = settled_ours_of(slot, &until_ns);
        rv = target.C_GetTokenInfo(slotID, pInfo);
        after = ours_of(slot);
    }
    if (rv == CKR_OK && pInfo != NULL && before.session != CK_INVALID_HANDLE) {
        subtract_one(&pInfo->ulSessionCount);
        if (before.is_rw)
            subtract_one(&pInfo->ulRwSessionCount);
    }
    note_answer_of_slot(slotID, rv);
    return rv;
}
