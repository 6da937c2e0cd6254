/* login_calls.c - who is logged in, and making tokens anew: what was fetched before is not served after. */
#include "calls/forward.h"
#include "guard/key_cache.h"
#include "random/manners.h"
#include "random/prefetch.h"
#include "random/uncancelled.h"

static void logged_in_or_out(struct slot *slot, bool so)
{
    lock_acquire(&state->lock);
    slot->so_logged_in = so;
    lock_release(&state->lock);
    manners_hope(slot);
    slot_drop_pool(slot, POOL_DROP_LOGIN);
}

/* An SO cannot log in while there is a read-only session, and ours is one. */
static struct slot *before_login(CK_SESSION_HANDLE handle, CK_USER_TYPE user_type)
{
    struct slot *slot = session_slot(handle);
    hidden_close_inherited();
    if (user_type == CKU_SO)
        hidden_ban(slot);
    busy_begin(handle);
    return slot;
}

static CK_RV after_login(CK_SESSION_HANDLE handle, CK_USER_TYPE user_type, struct slot *slot,
                         CK_RV rv)
{
    busy_end();
    /* A context-specific login belongs to one operation and changes nobody's state. */
    if (slot != NULL && rv == CKR_OK && user_type != CKU_CONTEXT_SPECIFIC)
        logged_in_or_out(slot, user_type == CKU_SO);
    if (rv != CKR_OK)
        note_answer(handle, rv);
    if (user_type == CKU_SO)
        hidden_allow(slot);
    return rv;
}

CK_RV proxy_C_Login(CK_SESSION_HANDLE hSession, CK_USER_TYPE userType, CK_UTF8CHAR_PTR pPin,
                    CK_ULONG ulPinLen)
{
    UNCANCELLED;
    hSession = session_for_target(hSession);
    struct slot *slot = before_login(hSession, userType);
    struct key_change change = key_change_begin();
    CK_RV rv = target.C_Login(hSession, userType, pPin, ulPinLen);
    key_change_end(change, slot, EVERY_KEY);
    return after_login(hSession, userType, slot, rv);
}

CK_RV proxy_C_LoginUser(CK_SESSION_HANDLE hSession, CK_USER_TYPE userType, CK_UTF8CHAR_PTR pPin,
                        CK_ULONG ulPinLen, CK_UTF8CHAR_PTR pUsername, CK_ULONG ulUsernameLen)
{
    UNCANCELLED;
    hSession = session_for_target(hSession);
    struct slot *slot = before_login(hSession, userType);
    struct key_change change = key_change_begin();
    CK_RV rv = target.C_LoginUser(hSession, userType, pPin, ulPinLen, pUsername, ulUsernameLen);
    key_change_end(change, slot, EVERY_KEY);
    return after_login(hSession, userType, slot, rv);
}

CK_RV proxy_C_Logout(CK_SESSION_HANDLE hSession)
{
    UNCANCELLED;
    hSession = session_for_target(hSession);
    struct slot *slot = session_slot(hSession);
    busy_begin(hSession);
    struct key_change change = key_change_begin();
    CK_RV rv = target.C_Logout(hSession);
    key_change_end(change, slot, EVERY_KEY);
    busy_end();
    if (slot != NULL && rv == CKR_OK)
        logged_in_or_out(slot, /* so= */ false);
    if (rv != CKR_OK)
        note_answer(hSession, rv);
    return rv;
}

CK_RV proxy_C_InitToken(CK_SLOT_ID slotID, CK_UTF8CHAR_PTR pPin, CK_ULONG ulPinLen,
                        CK_UTF8CHAR_PTR pLabel)
{
    UNCANCELLED;
    struct slot *slot = slot_find(slotID);
    hidden_close_inherited();
    hidden_ban(slot);
    struct key_change change = key_change_begin();
    CK_RV rv = target.C_InitToken(slotID, pPin, ulPinLen, pLabel);
    key_change_end(change, slot, EVERY_KEY);
    if (slot != NULL && rv == CKR_OK) {
        slot_drop_pool(slot, POOL_DROP_TOKEN);
        manners_forget(slot);
        atomic_store(&slot->pooling, POOLING_UNKNOWN);
    }
    if (slot != NULL && rv != CKR_OK)
        note_slot_answer(slot, rv);
    hidden_allow(slot);
    return rv;
}
