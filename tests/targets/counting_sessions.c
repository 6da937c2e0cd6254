/* counting_sessions.c - the counting target's slots, sessions and logins, as strict as the standard. */
#include <string.h>

#include "counting.h"

static unsigned long slots_now(struct knobs *knobs)
{
    knobs_read(knobs);
    return knobs->slots < SLOTS_MOST ? knobs->slots : SLOTS_MOST;
}

bool token_in_slot(CK_SLOT_ID id, unsigned *token)
{
    struct knobs knobs;
    unsigned long count = slots_now(&knobs);
    *token = (unsigned)((id - knobs.slot_base + knobs.first_token) % SLOTS_MOST);
    return id >= knobs.slot_base && id - knobs.slot_base < count;
}

bool slot_of_token(unsigned token, CK_SLOT_ID *id)
{
    struct knobs knobs;
    unsigned long count = slots_now(&knobs);
    unsigned long place = (token + SLOTS_MOST - knobs.first_token % SLOTS_MOST) % SLOTS_MOST;
    *id = knobs.slot_base + place;
    return place < count;
}

struct one_session *session_of_locked(CK_SESSION_HANDLE handle)
{
    CK_SLOT_ID slot;
    bool open = handle > 0 && handle < SESSIONS_MOST && counting.sessions[handle].open;
    return open && slot_of_token(counting.sessions[handle].token, &slot)
               ? &counting.sessions[handle]
               : NULL;
}

CK_RV slot_answer(CK_SLOT_ID id, const struct knobs *knobs, unsigned *token)
{
    if (!token_in_slot(id, token))
        return CKR_SLOT_ID_INVALID;
    return id == knobs->bad_slot ? knobs->bad_code : CKR_OK;
}

static CK_RV counting_C_GetSlotList(CK_BBOOL tokenPresent, CK_SLOT_ID_PTR pSlotList,
                                    CK_ULONG_PTR pulCount)
{
    struct knobs knobs;
    CK_ULONG slots = slots_now(&knobs);
    CK_ULONG count = 0;
    CK_SLOT_ID ids[SLOTS_MOST];
    CK_RV rv = CKR_OK;
    for (CK_ULONG i = 0; i < slots; i++)
        if (!tokenPresent || knobs.slot_base + i != knobs.empty_slot)
            ids[count++] = knobs.slot_base + i;
    if (!counting_enter())
        return CKR_CRYPTOKI_NOT_INITIALIZED;
    counting_leave();
    if (pulCount == NULL)
        rv = CKR_ARGUMENTS_BAD;
    else if (pSlotList != NULL && *pulCount < count)
        rv = CKR_BUFFER_TOO_SMALL;
    if (rv == CKR_OK && pSlotList != NULL)
        memcpy(pSlotList, ids, count * sizeof *ids);
    if (pulCount != NULL)
        *pulCount = count;
    return call_log(pSlotList != NULL ? "C_GetSlotList" : "C_GetSlotList(NULL)", NO_NUMBER,
                    NO_NUMBER, NO_NUMBER, rv);
}

static CK_RV counting_C_GetTokenInfo(CK_SLOT_ID slotID, CK_TOKEN_INFO_PTR pInfo)
{
    struct knobs knobs;
    knobs_read(&knobs);
    CK_RV rv = CKR_CRYPTOKI_NOT_INITIALIZED;
    if (counting_enter()) {
        unsigned token;
        rv = slot_answer(slotID, &knobs, &token);
        if (rv == CKR_OK)
            rv = pInfo == NULL ? CKR_ARGUMENTS_BAD : knobs.token_code;
        if (rv == CKR_OK) {
            memset(pInfo, ' ', sizeof *pInfo);
            memcpy(pInfo->label, "counting", strlen("counting"));
            pInfo->flags =
                CKF_LOGIN_REQUIRED | CKF_TOKEN_INITIALIZED | (knobs.rng_flag ? CKF_RNG : 0);
            pInfo->ulMaxSessionCount = pInfo->ulMaxRwSessionCount = knobs.sessions_max;
            pInfo->ulSessionCount = counting.tokens[token].sessions;
            pInfo->ulRwSessionCount = counting.tokens[token].rw_sessions;
            if (!knobs.count_sessions)
                pInfo->ulSessionCount = pInfo->ulRwSessionCount = CK_UNAVAILABLE_INFORMATION;
            pInfo->serialNumber[0] = (CK_UTF8CHAR)('0' + token);
        }
        counting_leave();
    }
    return call_log("C_GetTokenInfo", NO_NUMBER, (long)slotID, NO_NUMBER, rv);
}

static CK_RV may_open_locked(CK_SLOT_ID slot, CK_FLAGS flags, const struct knobs *knobs,
                             unsigned *token)
{
    bool rw = (flags & CKF_RW_SESSION) != 0;
    CK_RV rv = slot_answer(slot, knobs, token);
    if (rv != CKR_OK)
        return rv;
    if ((flags & CKF_SERIAL_SESSION) == 0)
        return CKR_SESSION_PARALLEL_NOT_SUPPORTED;
    if (knobs->sessions_max != 0 && counting.tokens[*token].sessions >= knobs->sessions_max)
        return knobs->sessions_refusal;
    if (!rw && counting.tokens[*token].login == SO)
        return CKR_SESSION_READ_WRITE_SO_EXISTS;
    return rw ? knobs->rw_refusal : knobs->ro_refusal;
}

static void close_locked(CK_SESSION_HANDLE handle);

/* Of tokens that are in no slot any more, so that their handles can be given to others. */
static void close_gone_locked(void)
{
    for (CK_SESSION_HANDLE h = 1; h <= counting.highest; h++)
        if (counting.sessions[h].open && session_of_locked(h) == NULL)
            close_locked(h);
}

static CK_SESSION_HANDLE new_handle_locked(const struct knobs *knobs)
{
    if (knobs->reuse_handles)
        close_gone_locked();
    if (knobs->reuse_handles && counting.last_closed != 0) {
        CK_SESSION_HANDLE handle = counting.last_closed;
        counting.last_closed = counting.sessions[handle].next_free;
        return handle;
    }
    return counting.highest + 1 < SESSIONS_MOST ? ++counting.highest : CK_INVALID_HANDLE;
}

static CK_RV counting_C_OpenSession(CK_SLOT_ID slotID, CK_FLAGS flags, CK_VOID_PTR pApplication,
                                    CK_NOTIFY Notify, CK_SESSION_HANDLE_PTR phSession)
{
    struct knobs knobs;
    CK_SESSION_HANDLE handle = CK_INVALID_HANDLE;
    (void)pApplication;
    (void)Notify;
    knobs_read(&knobs);
    CK_RV rv = CKR_CRYPTOKI_NOT_INITIALIZED;
    if (counting_enter()) {
        unsigned token = 0;
        rv = phSession == NULL ? CKR_ARGUMENTS_BAD : may_open_locked(slotID, flags, &knobs, &token);
        if (rv == CKR_OK && (handle = new_handle_locked(&knobs)) == CK_INVALID_HANDLE)
            rv = CKR_SESSION_COUNT;
        if (rv == CKR_OK) {
            bool rw = (flags & CKF_RW_SESSION) != 0;
            counting.sessions[handle] =
                (struct one_session){.open = 1, .token = (uint8_t)token, .rw = rw};
            counting.tokens[token].sessions++;
            counting.tokens[token].rw_sessions += rw;
            *phSession = handle;
        }
        counting_leave();
    }
    call_log((flags & CKF_RW_SESSION) != 0 ? "C_OpenSession(RW)" : "C_OpenSession",
             handle != CK_INVALID_HANDLE ? (long)handle : NO_NUMBER, (long)slotID, NO_NUMBER, rv);
    if (knobs.open_gate)
        gate_pass();
    return rv;
}

static void close_locked(CK_SESSION_HANDLE handle)
{
    struct one_session *session = &counting.sessions[handle];
    struct one_slot *slot = &counting.tokens[session->token];
    slot->sessions--;
    slot->rw_sessions -= session->rw;
    if (slot->sessions == 0)
        slot->login = NOBODY;
    *session = (struct one_session){.next_free = (uint32_t)counting.last_closed};
    counting.last_closed = handle;
}

static CK_RV counting_C_CloseSession(CK_SESSION_HANDLE hSession)
{
    struct knobs knobs;
    knobs_read(&knobs);
    CK_RV rv = CKR_CRYPTOKI_NOT_INITIALIZED;
    if (counting_enter()) {
        rv = session_of_locked(hSession) != NULL ? knobs.close_code : CKR_SESSION_HANDLE_INVALID;
        if (rv == CKR_OK)
            close_locked(hSession);
        counting_leave();
    }
    return call_log("C_CloseSession", (long)hSession, NO_NUMBER, NO_NUMBER, rv);
}

static CK_RV counting_C_CloseAllSessions(CK_SLOT_ID slotID)
{
    CK_RV rv = CKR_CRYPTOKI_NOT_INITIALIZED;
    if (counting_enter()) {
        unsigned token;
        rv = token_in_slot(slotID, &token) ? CKR_OK : CKR_SLOT_ID_INVALID;
        for (CK_SESSION_HANDLE h = 1; rv == CKR_OK && h <= counting.highest; h++)
            if (counting.sessions[h].open && counting.sessions[h].token == token)
                close_locked(h);
        counting_leave();
    }
    return call_log("C_CloseAllSessions", NO_NUMBER, (long)slotID, NO_NUMBER, rv);
}

static CK_STATE state_of(const struct one_session *session, unsigned login)
{
    if (login == SO)
        return CKS_RW_SO_FUNCTIONS;
    if (login == USER)
        return session->rw ? CKS_RW_USER_FUNCTIONS : CKS_RO_USER_FUNCTIONS;
    return session->rw ? CKS_RW_PUBLIC_SESSION : CKS_RO_PUBLIC_SESSION;
}

static CK_RV counting_C_GetSessionInfo(CK_SESSION_HANDLE hSession, CK_SESSION_INFO_PTR pInfo)
{
    struct knobs knobs;
    knobs_read(&knobs);
    CK_RV rv = CKR_CRYPTOKI_NOT_INITIALIZED;
    if (counting_enter()) {
        const struct one_session *session = session_of_locked(hSession);
        rv = session != NULL ? knobs.call_code : CKR_SESSION_HANDLE_INVALID;
        CK_SLOT_ID slot;
        if (rv == CKR_OK && slot_of_token(session->token, &slot))
            *pInfo =
                (CK_SESSION_INFO){.slotID = slot,
                                  .state = state_of(session, counting.tokens[session->token].login),
                                  .flags = CKF_SERIAL_SESSION | (session->rw ? CKF_RW_SESSION : 0)};
        counting_leave();
    }
    return call_log("C_GetSessionInfo", (long)hSession, NO_NUMBER, NO_NUMBER, rv);
}

static CK_RV login_locked(struct one_slot *slot, CK_USER_TYPE user)
{
    if (user == CKU_CONTEXT_SPECIFIC)
        return slot->login == NOBODY ? CKR_OPERATION_NOT_INITIALIZED : CKR_OK;
    if (user != CKU_SO && user != CKU_USER)
        return CKR_USER_TYPE_INVALID;
    if (slot->login != NOBODY)
        return CKR_USER_ALREADY_LOGGED_IN;
    if (user == CKU_SO && slot->rw_sessions != slot->sessions)
        return CKR_SESSION_READ_ONLY_EXISTS;
    slot->login = user == CKU_SO ? SO : USER;
    return CKR_OK;
}

static CK_RV counting_C_Login(CK_SESSION_HANDLE hSession, CK_USER_TYPE userType,
                              CK_UTF8CHAR_PTR pPin, CK_ULONG ulPinLen)
{
    (void)pPin;
    CK_RV rv = CKR_CRYPTOKI_NOT_INITIALIZED;
    if (counting_enter()) {
        const struct one_session *session = session_of_locked(hSession);
        if (session == NULL)
            rv = CKR_SESSION_HANDLE_INVALID;
        else
            rv = ulPinLen < 4 ? CKR_PIN_INCORRECT
                              : login_locked(&counting.tokens[session->token], userType);
        counting_leave();
    }
    return call_log("C_Login", (long)hSession, NO_NUMBER, NO_NUMBER, rv);
}

static CK_RV counting_C_Logout(CK_SESSION_HANDLE hSession)
{
    CK_RV rv = CKR_CRYPTOKI_NOT_INITIALIZED;
    if (counting_enter()) {
        const struct one_session *session = session_of_locked(hSession);
        rv = session == NULL                                   ? CKR_SESSION_HANDLE_INVALID
             : counting.tokens[session->token].login == NOBODY ? CKR_USER_NOT_LOGGED_IN
                                                               : CKR_OK;
        if (rv == CKR_OK)
            counting.tokens[session->token].login = NOBODY;
        counting_leave();
    }
    return call_log("C_Logout", (long)hSession, NO_NUMBER, NO_NUMBER, rv);
}

static CK_RV counting_C_InitToken(CK_SLOT_ID slotID, CK_UTF8CHAR_PTR pPin, CK_ULONG ulPinLen,
                                  CK_UTF8CHAR_PTR pLabel)
{
    (void)pPin;
    (void)ulPinLen;
    (void)pLabel;
    CK_RV rv = CKR_CRYPTOKI_NOT_INITIALIZED;
    if (counting_enter()) {
        unsigned token;
        rv = !token_in_slot(slotID, &token)         ? CKR_SLOT_ID_INVALID
             : counting.tokens[token].sessions != 0 ? CKR_SESSION_EXISTS
                                                    : CKR_OK;
        counting_leave();
    }
    return call_log("C_InitToken", NO_NUMBER, (long)slotID, NO_NUMBER, rv);
}

/* An operation that lasts until it is finished, and digests nothing. */
static CK_RV operate(const char *function, CK_SESSION_HANDLE handle, bool begin)
{
    CK_RV rv = CKR_CRYPTOKI_NOT_INITIALIZED;
    if (counting_enter()) {
        struct one_session *session = session_of_locked(handle);
        if (session == NULL)
            rv = CKR_SESSION_HANDLE_INVALID;
        else if (session->operating == begin)
            rv = begin ? CKR_OPERATION_ACTIVE : CKR_OPERATION_NOT_INITIALIZED;
        else {
            session->operating = begin;
            rv = CKR_OK;
        }
        counting_leave();
    }
    return call_log(function, (long)handle, NO_NUMBER, NO_NUMBER, rv);
}

static CK_RV counting_C_DigestInit(CK_SESSION_HANDLE hSession, CK_MECHANISM_PTR pMechanism)
{
    (void)pMechanism;
    return operate("C_DigestInit", hSession, true);
}

static CK_RV counting_C_DigestFinal(CK_SESSION_HANDLE hSession, CK_BYTE_PTR pDigest,
                                    CK_ULONG_PTR pulDigestLen)
{
    (void)pDigest;
    *pulDigestLen = 0;
    return operate("C_DigestFinal", hSession, false);
}

void counting_add_sessions(struct p11_functions *list)
{
    list->C_GetSlotList = counting_C_GetSlotList;
    list->C_GetTokenInfo = counting_C_GetTokenInfo;
    list->C_OpenSession = counting_C_OpenSession;
    list->C_CloseSession = counting_C_CloseSession;
    list->C_CloseAllSessions = counting_C_CloseAllSessions;
    list->C_GetSessionInfo = counting_C_GetSessionInfo;
    list->C_Login = counting_C_Login;
    list->C_Logout = counting_C_Logout;
    list->C_InitToken = counting_C_InitToken;
    list->C_DigestInit = counting_C_DigestInit;
    list->C_DigestFinal = counting_C_DigestFinal;
}
