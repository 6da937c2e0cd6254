/* moves.c - slots that get other numbers, and tokens that get into other slots, without a word. */
#include "random/moves.h"

#include "calls/forward.h"
#include "guard/guard_calls.h"
#include "random/lifeboat.h"
#include "random/manners.h"
#include "random/prefetch.h"
#include "state/settings.h"

static bool is_still_on(const struct slot *slot, CK_RV rv, const CK_SESSION_INFO *info)
{
    return rv == CKR_FUNCTION_NOT_SUPPORTED || (rv == CKR_OK && info->slotID == slot->id);
}

/* Nothing that could be another token's. */
static bool holds_nothing(struct slot *slot)
{
    return atomic_load(&slot->pool) == NULL && policy_in_force() == NULL;
}

bool moves_none_for_thread(struct slot *slot)
{
    CK_SESSION_INFO info = {.slotID = slot->id}; /* of who writes nothing, nothing is believed */
    CK_SESSION_HANDLE session = session_on(slot);
    if (session == CK_INVALID_HANDLE)
        return true;
    CK_RV rv = thread_C_GetSessionInfo(session, &info);
    return is_still_on(slot, rv, &info);
}

void moves_slot_is_another(struct slot *slot)
{
    note_slot_answer(slot, CKR_TOKEN_NOT_RECOGNIZED);
    manners_forget(slot);
}

/* Where one is not what it was, others may not be either. */
static void all_slots_are_others(void)
{
    lock_acquire(&state->lock);
    unsigned count = state->slot_count;
    lock_release(&state->lock);
    for (unsigned i = 0; i < count; i++) {
        hidden_ban(&state->slots[i]);
        moves_slot_is_another(&state->slots[i]);
        hidden_allow(&state->slots[i]);
    }
}

void moves_note_opened(CK_SESSION_HANDLE handle, CK_SLOT_ID slot_id, unsigned flags,
                       unsigned closings)
{
    CK_SESSION_INFO info = {.slotID = slot_id};
    struct slot *slot = slot_find(slot_id);
    hidden_was_lost(handle);
    /* The session that had the handle is no more, and nobody closed it: who knows what else is not. */
    bool again = session_find(handle) != NULL;
    CK_SESSION_HANDLE older =
        slot != NULL && !holds_nothing(slot) ? session_on(slot) : CK_INVALID_HANDLE;
    if (again)
        all_slots_are_others();
    else if (older != CK_INVALID_HANDLE) {
        CK_RV rv = target.C_GetSessionInfo(older, &info);
        if (!is_still_on(slot, rv, &info))
            all_slots_are_others();
    }
    session_opened(handle, slot_id, flags, closings);
}

static void move(CK_SESSION_HANDLE handle, CK_SLOT_ID to)
{
    unsigned flags;
    bool last = false;
    unsigned closings = sessions_closings();
    struct slot *from = session_closed(handle, &flags, &last);
    if (from == NULL)
        return;
    if (last) {
        hidden_ban(from);
        slot_drop_pool(from, POOL_DROP_SESSIONS);
        hidden_allow(from);
    }
    moves_note_opened(handle, to, flags, closings);
    guard_began_unknown(handle);
}

void moves_note_answered(CK_SESSION_HANDLE handle, struct slot *slot, unsigned generation)
{
    CK_SESSION_INFO info = {.slotID = slot->id};
    struct session *session = session_find(handle);
    if (session == NULL || atomic_load(&session->generation) == generation)
        return;
    CK_RV rv = target.C_GetSessionInfo(handle, &info);
    if (is_still_on(slot, rv, &info))
        atomic_store(&session->generation, generation);
    else if (rv == CKR_OK)
        move(handle, info.slotID);
}
