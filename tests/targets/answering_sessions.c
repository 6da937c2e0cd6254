/* answering_sessions.c - what of the answering target is as it is anywhere: life, slots, sessions, random. */
#include <pthread.h>
#include <string.h>

#include "answering.h"
#include "words.h"

enum { SESSIONS_MOST = 4096, SLOTS = 2 };

static const CK_SLOT_ID slots[SLOTS] = {0x11, 0x22};
static const CK_MECHANISM_TYPE mechanisms[] = {CKM_RSA_PKCS, CKM_SHA256, CKM_AES_CBC};

struct one_session {
    CK_SLOT_ID slot; /* 0: not open */
    CK_FLAGS flags;
    unsigned long calls;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialized;
static struct one_session sessions[SESSIONS_MOST];
static unsigned long highest;
static struct word next_word;

static bool is_slot(CK_SLOT_ID id)
{
    return id == slots[0] || id == slots[1];
}

static struct one_session *session_of(CK_SESSION_HANDLE handle)
{
    return handle <= highest && sessions[handle].slot != 0 ? &sessions[handle] : NULL;
}

unsigned long answering_count(CK_SESSION_HANDLE session)
{
    pthread_mutex_lock(&lock);
    const struct one_session *found = session_of(session);
    unsigned long count = found != NULL ? found->calls : 0;
    pthread_mutex_unlock(&lock);
    return count;
}

static CK_RV begin(void)
{
    if (initialized)
        return CKR_CRYPTOKI_ALREADY_INITIALIZED;
    memset(sessions, 0, sizeof sessions);
    highest = 0;
    initialized = true;
    return CKR_OK;
}

static CK_RV end(const void *reserved)
{
    if (reserved != NULL)
        return CKR_ARGUMENTS_BAD;
    initialized = false;
    return CKR_OK;
}

/* The slots or the mechanisms, to whoever asks how many or has room. */
static CK_RV list_of(const CK_ULONG *all, CK_ULONG count, CK_ULONG *list, CK_ULONG *room)
{
    if (room == NULL)
        return CKR_ARGUMENTS_BAD;
    bool fits = *room >= count;
    *room = count;
    if (list != NULL && fits)
        memcpy(list, all, count * sizeof *all);
    return list == NULL || fits ? CKR_OK : CKR_BUFFER_TOO_SMALL;
}

static CK_RV tell_token(CK_SLOT_ID slot, CK_TOKEN_INFO *info)
{
    if (info == NULL)
        return CKR_ARGUMENTS_BAD;
    memset(info, ' ', sizeof *info);
    info->flags = CKF_RNG | CKF_TOKEN_INITIALIZED;
    info->ulMaxSessionCount = info->ulMaxRwSessionCount = SESSIONS_MOST - 1;
    info->ulSessionCount = info->ulRwSessionCount = 0;
    for (unsigned long i = 1; i <= highest; i++)
        if (sessions[i].slot == slot) {
            info->ulSessionCount++;
            info->ulRwSessionCount += (sessions[i].flags & CKF_RW_SESSION) != 0;
        }
    return CKR_OK;
}

static CK_RV open_session(CK_SLOT_ID slot, CK_FLAGS flags, CK_SESSION_HANDLE *handle)
{
    if (handle == NULL)
        return CKR_ARGUMENTS_BAD;
    if ((flags & CKF_SERIAL_SESSION) == 0)
        return CKR_SESSION_PARALLEL_NOT_SUPPORTED;
    if (highest + 1 == SESSIONS_MOST)
        return CKR_SESSION_COUNT;
    sessions[++highest] = (struct one_session){.slot = slot, .flags = flags};
    *handle = highest;
    return CKR_OK;
}

static CK_RV tell_session(const struct one_session *session, CK_SESSION_INFO *info)
{
    if (info == NULL)
        return CKR_ARGUMENTS_BAD;
    *info = (CK_SESSION_INFO){.slotID = session->slot, .flags = session->flags};
    return CKR_OK;
}

static CK_RV close_all(CK_SLOT_ID slot)
{
    for (unsigned long i = 1; i <= highest; i++)
        if (sessions[i].slot == slot)
            sessions[i].slot = 0;
    return CKR_OK;
}

static CK_RV make_random(uint8_t *bytes, CK_ULONG len_bytes)
{
    uint64_t word = 0;
    if (bytes == NULL && len_bytes != 0)
        return CKR_ARGUMENTS_BAD;
    for (CK_ULONG i = 0; i < len_bytes; i++, word >>= 8) {
        if (i % WORD_BYTES == 0) {
            next_word.counter++;
            word = word_make(&next_word);
        }
        bytes[i] = (uint8_t)word;
    }
    return CKR_OK;
}

static bool is(const struct call *call, const char *function)
{
    return strcmp(call->function, function) == 0;
}

/* With a slot as their first argument. */
static bool knows_slot_call_locked(const struct call *call, CK_RV *rv)
{
    const uintptr_t *with = call->arguments;
    if (strcmp(call->names[0], "slotID") != 0)
        return false;
    if (!is_slot(with[0]))
        *rv = CKR_SLOT_ID_INVALID;
    else if (is(call, "C_GetTokenInfo"))
        *rv = tell_token(with[0], (CK_TOKEN_INFO *)with[1]);
    else if (is(call, "C_GetMechanismList"))
        *rv = list_of(mechanisms, sizeof mechanisms / sizeof *mechanisms, (CK_ULONG *)with[1],
                      (CK_ULONG *)with[2]);
    else if (is(call, "C_OpenSession"))
        *rv = open_session(with[0], with[1], (CK_SESSION_HANDLE *)with[4]);
    else if (is(call, "C_CloseAllSessions"))
        *rv = close_all(with[0]);
    else
        return false;
    return true;
}

/* With a session as their first argument. */
static bool knows_session_call_locked(const struct call *call, CK_RV *rv)
{
    const uintptr_t *with = call->arguments;
    if (strcmp(call->names[0], "hSession") != 0)
        return false;
    struct one_session *session = session_of(with[0]);
    *rv = CKR_OK;
    if (session == NULL)
        *rv = CKR_SESSION_HANDLE_INVALID;
    else if (is(call, "C_CloseSession"))
        session->slot = 0;
    else if (is(call, "C_GetSessionInfo"))
        *rv = tell_session(session, (CK_SESSION_INFO *)with[1]);
    else if (is(call, "C_GenerateRandom"))
        *rv = make_random((uint8_t *)with[1], with[2]);
    else {
        session->calls++;
        return false;
    }
    return true;
}

static bool knows_locked(const struct call *call, CK_RV *rv)
{
    const uintptr_t *with = call->arguments;
    if (is(call, "C_Initialize"))
        *rv = begin();
    else if (!initialized)
        *rv = CKR_CRYPTOKI_NOT_INITIALIZED;
    else if (is(call, "C_Finalize"))
        *rv = end((const void *)with[0]);
    else if (is(call, "C_GetInfo")) {
        *rv = with[0] != 0 ? CKR_OK : CKR_ARGUMENTS_BAD;
        if (with[0] != 0)
            memset((void *)with[0], 'i', sizeof(CK_INFO));
    } else if (is(call, "C_GetSlotList"))
        *rv = list_of(slots, SLOTS, (CK_ULONG *)with[1], (CK_ULONG *)with[2]);
    else
        return knows_slot_call_locked(call, rv) || knows_session_call_locked(call, rv);
    return true;
}

bool answering_knows(const struct call *call, CK_RV *rv)
{
    pthread_mutex_lock(&lock);
    bool knows = knows_locked(call, rv);
    pthread_mutex_unlock(&lock);
    return knows;
}
