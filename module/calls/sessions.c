/* sessions.c - "Session management functions" of the specification: opening, closing, logging in and out. */
#include "state/sessions.h"

#include "calls/own.h"
#include "random/fill_session.h"
#include "state/counters.h"
#include "state/in_call.h"
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
    slots_note_code(slotID, rv);
    if (rv == CKR_OK && phSession != NULL && init_is_initialized()) {
        fill_session_was_lost(*phSession);
        session_opened(*phSession, slotID, (flags & CKF_ASYNC_SESSION) != 0, closings);
    }
    return rv;
}

/* After a close. The slot's last session takes the login with it. */
static void note_closed(struct slot *slot, bool last)
{
    bool logged_out = last && atomic_load(&slot->logged_in);
    slot_invalidate(slot, logged_out ? SLOT_LAST_SESSION_CLOSED : SLOT_SESSION_CLOSED);
    if (logged_out)
        count_pool(slot);
}

CK_RV own_C_CloseSession(CK_SESSION_HANDLE hSession, const struct p11_functions *functions)
{
    if (is_recursive())
        return CKR_FUNCTION_FAILED;
    struct session was;
    bool last;
    unsigned closings = sessions_closings();
    hSession = fill_session_hide(hSession);
    /* The session is forgotten before it is closed: afterwards the token may give its handle to another thread. */
    struct slot *slot = session_closed(hSession, &was, &last);
    if (last)
        fill_session_suspend(slot);
    CK_RV rv = functions->C_CloseSession(hSession);
    if (slot != NULL && !session_is_gone(rv))
        session_reopened(hSession, &was, closings);
    else if (slot != NULL)
        note_closed(slot, last);
    if (last)
        fill_session_resume(slot);
    /* The application had it open, so the token was removed or reset. */
    if (slot != NULL && (rv == CKR_SESSION_HANDLE_INVALID || rv == CKR_SESSION_CLOSED))
        slot_invalidate(slot, SLOT_TOKEN_GONE);
    else if (slot != NULL)
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
    sessions_close_begin(slot);
    CK_RV rv = functions->C_CloseAllSessions(slotID);
    sessions_close_end();
    note_closed(slot, /* last= */ true);
    fill_session_resume(slot);
    slot_note_code(slot, rv);
    return rv;
}

/* Makes invalid what was fetched in another login state. If the session is not known, on all slots; a logout then
 * counts as SLOT_LOGGED_IN, because on all slots but one a user may still be logged in. */
static void note_login(struct slot *slot, enum slot_event event)
{
    if (slot == NULL)
        slots_invalidate(event == SLOT_LOGGED_OUT ? SLOT_LOGGED_IN : event);
    else {
        slot_invalidate(slot, event);
        count_pool(slot);
    }
}

struct login {
    struct slot *slot;
    struct in_call_place *place;
    unsigned calls;
    bool is_so;
};

/* The SO cannot log in while there is a read-only session, and the filler's is one. */
static struct login login_begin(CK_SESSION_HANDLE session, CK_USER_TYPE user_type)
{
    struct login login = {session_slot(session), in_call_place(session), 0, user_type == CKU_SO};
    if (login.is_so)
        fill_session_suspend(login.slot);
    login.calls = in_call_begin(login.place, session);
    return login;
}

static CK_RV login_end(const struct login *login, CK_SESSION_HANDLE session, CK_USER_TYPE user_type,
                       CK_RV rv)
{
    in_call_end(login->place, login->calls);
    /* A context-specific login belongs to one operation and changes no login state. */
    if (rv == CKR_OK && user_type != CKU_CONTEXT_SPECIFIC)
        note_login(login->slot, login->is_so ? SLOT_SO_LOGGED_IN : SLOT_LOGGED_IN);
    if (rv != CKR_OK)
        session_note_code(session, rv);
    if (login->is_so)
        fill_session_resume(login->slot);
    return rv;
}

CK_RV own_C_Login(CK_SESSION_HANDLE hSession, CK_USER_TYPE userType, CK_UTF8CHAR_PTR pPin,
                  CK_ULONG ulPinLen, const struct p11_functions *functions)
{
    if (is_recursive())
        return CKR_FUNCTION_FAILED;
    hSession = fill_session_hide(hSession);
    struct login login = login_begin(hSession, userType);
    CK_RV rv = functions->C_Login(hSession, userType, pPin, ulPinLen);
    return login_end(&login, hSession, userType, rv);
}

CK_RV own_C_LoginUser(CK_SESSION_HANDLE hSession, CK_USER_TYPE userType, CK_UTF8CHAR_PTR pPin,
                      CK_ULONG ulPinLen, CK_UTF8CHAR_PTR pUsername, CK_ULONG ulUsernameLen,
                      const struct p11_functions *functions)
{
    if (is_recursive())
        return CKR_FUNCTION_FAILED;
    hSession = fill_session_hide(hSession);
    struct login login = login_begin(hSession, userType);
    CK_RV rv = functions->C_LoginUser(hSession, userType, pPin, ulPinLen, pUsername, ulUsernameLen);
    return login_end(&login, hSession, userType, rv);
}

CK_RV own_C_Logout(CK_SESSION_HANDLE hSession, const struct p11_functions *functions)
{
    hSession = fill_session_hide(hSession);
    struct slot *slot = session_slot(hSession);
    struct in_call_place *place = in_call_place(hSession);
    unsigned calls = in_call_begin(place, hSession);
    CK_RV rv = functions->C_Logout(hSession);
    in_call_end(place, calls);
    if (rv == CKR_OK)
        note_login(slot, SLOT_LOGGED_OUT);
    else
        session_note_code(hSession, rv);
    return rv;
}
