/* sessions.c - "Session management functions" of the specification: opening, closing, and what logging in and out changes. */
#include "state/sessions.h"

#include "calls/own.h"
#include "random/fill_session.h"
#include "state/init_state.h"

/* What tokens say when they have no session left. */
static bool is_full(CK_RV rv)
{
    return rv == CKR_SESSION_COUNT || rv == CKR_DEVICE_MEMORY || rv == CKR_HOST_MEMORY ||
           rv == CKR_TOKEN_RESOURCE_EXCEEDED;
}

CK_RV own_C_OpenSession(CK_SLOT_ID slotID, CK_FLAGS flags, CK_VOID_PTR pApplication,
                        CK_NOTIFY Notify, CK_SESSION_HANDLE_PTR phSession,
                        const struct p11_functions *functions)
{
    if (is_recursive())
        return CKR_FUNCTION_FAILED;
    unsigned closings = sessions_closings();
    CK_RV rv = functions->C_OpenSession(slotID, flags, pApplication, Notify, phSession);
    if (is_full(rv) && fill_sessions_release_all())
        rv = functions->C_OpenSession(slotID, flags, pApplication, Notify, phSession);
    slot_note_code(slot_find(slotID), rv);
    if (rv == CKR_OK && phSession != NULL && init_is_initialized()) {
        fill_session_was_lost(*phSession);
        /* The calls of an asynchronous session may answer later, so none is answered here. */
        if ((flags & CKF_ASYNC_SESSION) == 0)
            session_opened(*phSession, slot_add(slotID), /* digest_info= */ 0, closings);
    }
    return rv;
}

/* After a close. The slot's last session takes the login with it. */
static void note_closed(struct slot *slot, bool last)
{
    bool logged_out = last && atomic_load(&slot->login) != NO_LOGIN;
    slot_invalidate(slot, logged_out ? SLOT_LAST_SESSION_CLOSED : SLOT_SESSION_CLOSED);
}

CK_RV own_C_CloseSession(CK_SESSION_HANDLE hSession, const struct p11_functions *functions)
{
    if (is_recursive())
        return CKR_FUNCTION_FAILED;
    bool last;
    unsigned closings = sessions_closings();
    hSession = fill_session_hide(hSession);
    /* The session is forgotten before it is closed: afterwards the token may give its handle to another thread. */
    struct slot *slot = session_closed(hSession, &last);
    if (last)
        fill_session_suspend(slot);
    CK_RV rv = functions->C_CloseSession(hSession);
    if (slot != NULL && !session_is_gone(rv))
        session_opened(hSession, slot, /* digest_info= */ ~0U, closings);
    else if (slot != NULL)
        note_closed(slot, last);
    if (last)
        fill_session_resume();
    slot_note_code(slot, rv);
    return rv;
}

CK_RV own_C_CloseAllSessions(CK_SLOT_ID slotID, const struct p11_functions *functions)
{
    if (is_recursive())
        return CKR_FUNCTION_FAILED;
    struct slot *slot = slot_find(slotID);
    if (slot == NULL)
        return functions->C_CloseAllSessions(slotID);
    fill_session_suspend(slot);
    CK_RV rv = functions->C_CloseAllSessions(slotID);
    sessions_forget(slot);
    note_closed(slot, /* last= */ true);
    fill_session_resume();
    slot_note_code(slot, rv);
    return rv;
}

CK_RV login_begin(CK_SESSION_HANDLE session, CK_USER_TYPE user_type)
{
    if (user_type != NO_USER && is_recursive())
        return CKR_FUNCTION_FAILED;
    if (user_type == CKU_SO)
        fill_session_suspend(session_slot(session));
    return CKR_OK;
}

void login_end(CK_SESSION_HANDLE session, CK_USER_TYPE user_type, CK_RV rv)
{
    /* Of a session that is not known: on all slots but one a user may still be logged in. */
    enum slot_event event = user_type == CKU_SO ? SLOT_SO_LOGGED_IN
                            : user_type == NO_USER && session_slot(session) != NULL
                                ? SLOT_LOGGED_OUT
                                : SLOT_LOGGED_IN;
    /* A context-specific login belongs to one operation and changes no login state. */
    if (rv == CKR_OK && user_type != CKU_CONTEXT_SPECIFIC)
        session_invalidate(session, event);
    if (user_type == CKU_SO && !is_recursive())
        fill_session_resume();
}
