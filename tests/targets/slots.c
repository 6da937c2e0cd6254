/* slots.c - what the scripted target says of its slots and tokens. */
#include <string.h>
#include <time.h>

#include "call.h"

bool slot_find(CK_SLOT_ID id, const struct script *script, unsigned *token)
{
    unsigned long place = id - script->first_slot;
    if (id < script->first_slot || place >= script->slots)
        return false;
    *token = (unsigned)(place + script->first_token) % TOKENS_MOST;
    return id != script->empty_slot;
}

CK_SLOT_ID slot_of_token(const struct script *script, unsigned token)
{
    unsigned found;
    unsigned long place = (token + TOKENS_MOST - script->first_token) % TOKENS_MOST;
    return slot_find(script->first_slot + place, script, &found) ? script->first_slot + place
                                                                 : NONE;
}

/* What a call that names the slot is answered before anything else. */
static CK_RV slot_answer(const struct call *call)
{
    unsigned long place = call->slot_id - call->script->first_slot;
    if (call->slot_id < call->script->first_slot || place >= call->script->slots)
        return CKR_SLOT_ID_INVALID;
    return call->slot_id == call->script->empty_slot ? CKR_TOKEN_NOT_PRESENT : CKR_OK;
}

/* For a caller that asks how many there are, or has room. */
static CK_RV give_list(const CK_ULONG *all, CK_ULONG count, CK_ULONG *list, CK_ULONG *room)
{
    if (room == NULL)
        return CKR_ARGUMENTS_BAD;
    bool fits = *room >= count;
    *room = count;
    if (list != NULL && fits)
        memcpy(list, all, count * sizeof *all);
    return list == NULL || fits ? CKR_OK : CKR_BUFFER_TOO_SMALL;
}

static CK_RV list_slots(const struct script *script, bool with_token, CK_ULONG *list,
                        CK_ULONG *room)
{
    CK_ULONG slots[TOKENS_MOST];
    CK_ULONG count = 0;
    for (CK_ULONG i = 0; i < script->slots && i < TOKENS_MOST; i++)
        if (!with_token || script->first_slot + i != script->empty_slot)
            slots[count++] = script->first_slot + i;
    return give_list(slots, count, list, room);
}

static CK_RV tell_slot(const struct call *call, CK_SLOT_INFO *info)
{
    CK_RV rv = slot_answer(call);
    if (rv == CKR_SLOT_ID_INVALID || info == NULL)
        return rv == CKR_SLOT_ID_INVALID ? rv : CKR_ARGUMENTS_BAD;
    memset(info, ' ', sizeof *info);
    info->flags = CKF_REMOVABLE_DEVICE | CKF_HW_SLOT | (rv == CKR_OK ? CKF_TOKEN_PRESENT : 0);
    return CKR_OK;
}

static CK_RV tell_token(const struct call *call, CK_TOKEN_INFO *info)
{
    const struct script *script = call->script;
    CK_RV rv = slot_answer(call);
    if (rv != CKR_OK || info == NULL)
        return rv != CKR_OK ? rv : CKR_ARGUMENTS_BAD;
    memset(info, ' ', sizeof *info);
    memcpy(info->label, "scripted", strlen("scripted"));
    info->serialNumber[0] = (CK_UTF8CHAR)('0' + call->token);
    info->flags = CKF_LOGIN_REQUIRED | (script->uninitialised ? 0 : CKF_TOKEN_INITIALIZED) |
                  (script->no_generator ? 0 : CKF_RNG);
    info->ulMaxSessionCount = info->ulMaxRwSessionCount = script->sessions_most;
    info->ulSessionCount = session_count(call->token, /* read_write_only= */ false);
    info->ulRwSessionCount = session_count(call->token, /* read_write_only= */ true);
    if (script->untold_counts)
        info->ulSessionCount = info->ulRwSessionCount = CK_UNAVAILABLE_INFORMATION;
    return CKR_OK;
}

static const CK_MECHANISM_TYPE mechanisms[] = {CKM_RSA_PKCS, CKM_SHA256, CKM_MD5, CKM_AES_CBC};

/* As softoken does: what a mechanism can do depends on the list that is asked. */
static CK_RV tell_mechanism(const struct call *call, CK_MECHANISM_INFO *info)
{
    static const CK_FLAGS message_sign = 0x8;
    CK_RV rv = slot_answer(call);
    if (rv != CKR_OK || info == NULL)
        return rv != CKR_OK ? rv : CKR_ARGUMENTS_BAD;
    for (size_t i = 0; i < sizeof mechanisms / sizeof *mechanisms; i++)
        if (mechanisms[i] == call->arguments[1]) {
            *info = (CK_MECHANISM_INFO){
                128, 4096, CKF_SIGN | CKF_DIGEST | (call->list >= 300 ? message_sign : 0)};
            return CKR_OK;
        }
    return CKR_MECHANISM_INVALID;
}

/* Until something happens, or the end of this life. */
static CK_RV wait_for_event(const struct call *call, CK_SLOT_ID *slot)
{
    static const struct timespec a_moment = {.tv_nsec = 1000 * 1000};
    while (script_now()->event_slot == NONE && life_is_initialized()) {
        if ((call->arguments[0] & CKF_DONT_BLOCK) != 0)
            return CKR_NO_EVENT;
        nanosleep(&a_moment, NULL);
    }
    if (!life_is_initialized())
        return CKR_CRYPTOKI_NOT_INITIALIZED;
    if (slot == NULL)
        return CKR_ARGUMENTS_BAD;
    *slot = script_now()->event_slot;
    return CKR_OK;
}

bool slots_know(struct call *call, CK_RV *rv)
{
    const uintptr_t *with = call->arguments;
    switch (call->function) {
    case FUNCTION_C_GetSlotList:
        *rv = list_slots(call->script, with[0] != 0, (CK_ULONG *)with[1], (CK_ULONG *)with[2]);
        return true;
    case FUNCTION_C_GetSlotInfo:
        *rv = tell_slot(call, (CK_SLOT_INFO *)with[1]);
        return true;
    case FUNCTION_C_GetTokenInfo:
        *rv = tell_token(call, (CK_TOKEN_INFO *)with[1]);
        return true;
    case FUNCTION_C_GetMechanismInfo:
        *rv = tell_mechanism(call, (CK_MECHANISM_INFO *)with[2]);
        return true;
    case FUNCTION_C_GetMechanismList:
        *rv = slot_answer(call);
        if (*rv == CKR_OK)
            *rv = give_list(mechanisms, sizeof mechanisms / sizeof *mechanisms, (CK_ULONG *)with[1],
                            (CK_ULONG *)with[2]);
        return true;
    case FUNCTION_C_WaitForSlotEvent:
        *rv = wait_for_event(call, (CK_SLOT_ID *)with[1]);
        return true;
    case FUNCTION_C_OpenSession:
    case FUNCTION_C_CloseAllSessions:
    case FUNCTION_C_InitToken:
        *rv = slot_answer(call);
        return *rv != CKR_OK;
    default:
        return false;
    }
}
