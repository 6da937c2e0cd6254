/* session_calls.c - opening and closing sessions. */
#include "calls/forward.h"
#include "guard/guard_calls.h"
#include "guard/key_cache.h"
#include "random/moves.h"
#include "random/prefetch.h"
#include "random/uncancelled.h"

/* What tokens say when they have no session left. */
static bool is_full(CK_RV rv)
{
    return rv == CKR_SESSION_COUNT || rv == CKR_DEVICE_MEMORY || rv == CKR_HOST_MEMORY ||
           rv == CKR_TOKEN_RESOURCE_EXCEEDED;
}

CK_RV proxy_C_OpenSession(CK_SLOT_ID slotID, CK_FLAGS flags, CK_VOID_PTR pApplication,
                          CK_NOTIFY Notify, CK_SESSION_HANDLE_PTR phSession)
{
    UNCANCELLED;
    hidden_close_inherited();
    unsigned closings = sessions_closings();
    CK_RV rv = target.C_OpenSession(slotID, flags, pApplication, Notify, phSession);
    if (is_full(rv) && hidden_give_way())
        rv = target.C_OpenSession(slotID, flags, pApplication, Notify, phSession);
    note_answer_of_slot(slotID, rv);
    if (rv == CKR_OK && phSession != NULL && atomic_load(&state->life) == LIFE_UP)
        moves_note_opened(*phSession, slotID,
                          (flags & CKF_ASYNC_SESSION) != 0 ? SESSION_IS_ASYNC : 0, closings);
    return rv;
}

/* The slot has no session of the application any more: the token logs out, and takes with it what the pool
 * was fetched under. Expects ours closed. */
static void last_session_closed(struct slot *slot)
{
    slot_drop_pool(slot, POOL_DROP_SESSIONS);
    lock_acquire(&state->lock);
    slot->so_logged_in = false;
    lock_release(&state->lock);
}

CK_RV proxy_C_CloseSession(CK_SESSION_HANDLE hSession)
{
    UNCANCELLED;
    unsigned flags;
    bool last = false;
    unsigned closings = sessions_closings();
    hSession = session_for_target(hSession);
    /* Forgotten before it is closed: afterwards the token may give the handle to somebody else. */
    struct slot *slot = session_closed(hSession, &flags, &last);
    hidden_close_inherited();
    if (last)
        hidden_ban(slot);
    struct key_change change = key_change_begin();
    CK_RV rv = target.C_CloseSession(hSession);
    key_change_end(change, slot, last ? EVERY_KEY : KEYS_OF_SESSIONS);
    if (slot != NULL && !session_is_gone(rv)) {
        session_opened(hSession, slot->id, flags, closings);
        guard_began_unknown(hSession);
    } else if (last)
        last_session_closed(slot);
    if (last)
        hidden_allow(slot);
    if (slot != NULL)
        note_slot_answer(slot, rv);
    return rv;
}

CK_RV proxy_C_CloseAllSessions(CK_SLOT_ID slotID)
{
    UNCANCELLED;
    struct slot *slot = slot_find(slotID);
    hidden_close_inherited();
    if (slot == NULL)
        return target.C_CloseAllSessions(slotID);
    hidden_ban(slot);
    sessions_close_begin(slot);
    struct key_change change = key_change_begin();
    CK_RV rv = target.C_CloseAllSessions(slotID);
    sessions_close_end();
    key_change_end(change, slot, EVERY_KEY);
    last_session_closed(slot);
    hidden_allow(slot);
    note_slot_answer(slot, rv);
    return rv;
}
