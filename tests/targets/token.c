/* token.c - the scripted target's slots and tokens, their sessions and logins.
 *
 * A session is one word, which calls read without a lock. What opens, closes and logs in takes a lock, as on any real
 * token.
 */
#include <string.h>
#include <time.h>

#include "base/lock.h"
#include "target.h"

enum { SESSIONS_MOST = 1024 * 1024 };

/* Of a session's word; 0 is closed. The flags of its open operations are between these, as CKF_SIGN. */
enum { BIT_OPEN = 1, BIT_READ_WRITE = 1 << 16, BIT_FILLER = 1 << 17, SLOT_SHIFT = 20 };

static atomic_uint words[SESSIONS_MOST];
static atomic_ulong highest; /* handle given so far */

/* Guards sessions coming and going, and logins. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct token {
    atomic_uint sessions;
    atomic_uint read_write;
    atomic_uint login;
} tokens[TOKENS_MOST]; /* by slot */

/* Closed handles, the last one on top; filled only for "reuse handles". */
static unsigned closed[1024];
static unsigned closed_count;

void sessions_forget_lock(void)
{
    pthread_mutex_init(&lock, NULL);
}

void sessions_forget(void)
{
    unsigned long upto = atomic_exchange(&highest, 0);
    for (unsigned long i = 0; i <= upto && i < SESSIONS_MOST; i++)
        atomic_store_explicit(&words[i], 0, memory_order_relaxed);
    for (unsigned i = 0; i < TOKENS_MOST; i++) {
        atomic_store(&tokens[i].sessions, 0);
        atomic_store(&tokens[i].read_write, 0);
        atomic_store(&tokens[i].login, LOGIN_NONE);
    }
    closed_count = 0;
}

static unsigned word_of(CK_SESSION_HANDLE session)
{
    return session < SESSIONS_MOST ? atomic_load_explicit(&words[session], memory_order_acquire)
                                   : 0;
}

CK_FLAGS session_operations(CK_SESSION_HANDLE session, CK_FLAGS end, CK_FLAGS begin)
{
    unsigned word = atomic_load(&words[session]);
    unsigned made;
    do
        made = (word & ~((unsigned)end & OPERATIONS)) | ((unsigned)begin & OPERATIONS);
    while ((word & BIT_OPEN) != 0 && !atomic_compare_exchange_weak(&words[session], &word, made));
    return made & OPERATIONS;
}

unsigned token_login(CK_SLOT_ID slot_id)
{
    return atomic_load_explicit(&tokens[slot_id].login, memory_order_acquire);
}

static void close_one(CK_SESSION_HANDLE session, const struct script *script)
{
    unsigned word = atomic_exchange(&words[session], 0);
    struct token *token = &tokens[word >> SLOT_SHIFT];
    if ((word & BIT_OPEN) == 0)
        return;
    if ((word & BIT_READ_WRITE) != 0)
        atomic_fetch_sub(&token->read_write, 1);
    if (atomic_fetch_sub(&token->sessions, 1) == 1)
        atomic_store(&token->login, LOGIN_NONE);
    if (script->reuse_handles && closed_count < sizeof closed / sizeof *closed)
        closed[closed_count++] = (unsigned)session;
}

CK_RV work_C_CloseSession(struct call *call)
{
    HOLD(&lock);
    close_one(call->seen.session, call->script);
    return CKR_OK;
}

static void close_all(CK_SLOT_ID slot_id, const struct script *script)
{
    unsigned long upto = atomic_load(&highest);
    for (CK_SESSION_HANDLE i = 1; i <= upto && i < SESSIONS_MOST; i++)
        if ((word_of(i) & BIT_OPEN) != 0 && word_of(i) >> SLOT_SHIFT == slot_id)
            close_one(i, script);
}

CK_RV work_C_CloseAllSessions(struct call *call)
{
    HOLD(&lock);
    close_all(call->slot_id, call->script);
    return CKR_OK;
}

/* Once for each change of the script: a token may have been pulled out. */
static void meet_script(const struct script *script)
{
    static atomic_uint met;
    if (atomic_load_explicit(&met, memory_order_relaxed) == script->end)
        return;
    atomic_store_explicit(&met, script->end, memory_order_relaxed);
    if (script->empty_slot == NONE)
        return;
    HOLD(&lock);
    close_all(script->empty_slot, script);
}

void token_find_subject(struct call *call)
{
    meet_script(call->script);
    call->slot_id = NONE;
    if (strcmp(call->subject, "slotID") == 0)
        call->slot_id = call->seen.arguments[0];
    if (strcmp(call->subject, "hSession") != 0)
        return;
    call->seen.session = call->seen.arguments[0];
    unsigned word = word_of(call->seen.session);
    if ((word & BIT_OPEN) == 0)
        return;
    call->slot_id = word >> SLOT_SHIFT;
    if (call->seen.by_filler != ((word & BIT_FILLER) != 0) &&
        call->seen.function != FUNCTION_C_CloseSession)
        complain("a session is used by another thread", call);
}

/* What a call is answered before anything else. */
CK_RV token_check_subject(const struct call *call)
{
    if (strcmp(call->subject, "hSession") == 0)
        return call->slot_id == NONE ? CKR_SESSION_HANDLE_INVALID : CKR_OK;
    if (strcmp(call->subject, "slotID") != 0)
        return CKR_OK;
    if (call->slot_id >= call->script->slots)
        return CKR_SLOT_ID_INVALID;
    return call->slot_id == call->script->empty_slot &&
                   call->seen.function != FUNCTION_C_GetSlotInfo
               ? CKR_TOKEN_NOT_PRESENT
               : CKR_OK;
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

CK_RV work_C_GetSlotList(struct call *call)
{
    const uintptr_t *with = call->seen.arguments;
    CK_ULONG slots[TOKENS_MOST];
    CK_ULONG count = 0;
    for (CK_ULONG i = 0; i < call->script->slots && i < TOKENS_MOST; i++)
        if (with[0] == CK_FALSE || i != call->script->empty_slot)
            slots[count++] = i;
    return give_list(slots, count, (CK_ULONG *)with[1], (CK_ULONG *)with[2]);
}

CK_RV work_C_GetSlotInfo(struct call *call)
{
    CK_SLOT_INFO *info = (CK_SLOT_INFO *)call->seen.arguments[1];
    if (info == NULL)
        return CKR_ARGUMENTS_BAD;
    memset(info, ' ', sizeof *info);
    info->flags = CKF_REMOVABLE_DEVICE | CKF_HW_SLOT |
                  (call->slot_id != call->script->empty_slot ? CKF_TOKEN_PRESENT : 0);
    return CKR_OK;
}

CK_RV work_C_GetTokenInfo(struct call *call)
{
    const struct script *script = call->script;
    struct token *token = &tokens[call->slot_id];
    CK_TOKEN_INFO *info = (CK_TOKEN_INFO *)call->seen.arguments[1];
    if (info == NULL)
        return CKR_ARGUMENTS_BAD;
    memset(info, ' ', sizeof *info);
    memcpy(info->label, "scripted", strlen("scripted"));
    info->serialNumber[0] = (CK_UTF8CHAR)('0' + script->first_token + call->slot_id);
    info->flags = CKF_LOGIN_REQUIRED | (script->uninitialised ? 0 : CKF_TOKEN_INITIALIZED) |
                  (script->no_generator ? 0 : CKF_RNG);
    info->ulMaxSessionCount = info->ulMaxRwSessionCount = script->sessions_most;
    info->ulSessionCount = atomic_load(&token->sessions);
    info->ulRwSessionCount = atomic_load(&token->read_write);
    if (script->untold_counts)
        info->ulSessionCount = info->ulRwSessionCount = CK_UNAVAILABLE_INFORMATION;
    return CKR_OK;
}

CK_RV work_C_GetMechanismList(struct call *call)
{
    struct keyring *keyring = &shared->keyring;
    CK_ULONG *list = (CK_ULONG *)call->seen.arguments[1];
    CK_RV rv =
        give_list(keyring->mechanisms, keyring->count, list, (CK_ULONG *)call->seen.arguments[2]);
    if (list == NULL && keyring->grows != 0)
        keyring->count += keyring->grows;
    return rv;
}

/* As softoken does: what a mechanism can do depends on the list that is asked. */
CK_RV work_C_GetMechanismInfo(struct call *call)
{
    const struct keyring *keyring = &shared->keyring;
    CK_MECHANISM_INFO *info = (CK_MECHANISM_INFO *)call->seen.arguments[2];
    if (info == NULL)
        return CKR_ARGUMENTS_BAD;
    bool is_known = call->script->keyring != 0;
    for (CK_ULONG i = 0; !is_known && i < keyring->count; i++)
        is_known = keyring->mechanisms[i] == call->seen.arguments[1];
    if (!is_known)
        return CKR_MECHANISM_INVALID;
    *info = keyring->info;
    info->flags |= call->seen.list >= 300 ? CKF_MESSAGE_SIGN : 0;
    return CKR_OK;
}

/* Until something happens, or the end of this life. */
CK_RV work_C_WaitForSlotEvent(struct call *call)
{
    static const struct timespec a_moment = {.tv_nsec = 1000 * 1000};
    CK_SLOT_ID *slot = (CK_SLOT_ID *)call->seen.arguments[1];
    while (script_now()->event_slot == NONE && life_is_initialized()) {
        if ((call->seen.arguments[0] & CKF_DONT_BLOCK) != 0)
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

CK_RV work_C_InitToken(struct call *call)
{
    HOLD(&lock);
    bool is_used = atomic_load(&tokens[call->slot_id].sessions) != 0;
    return is_used && !call->script->keyring ? CKR_SESSION_EXISTS : CKR_OK;
}

CK_RV work_C_OpenSession(struct call *call)
{
    HOLD(&lock);
    const struct script *script = call->script;
    struct token *token = &tokens[call->slot_id];
    CK_FLAGS flags = call->seen.arguments[1];
    CK_SESSION_HANDLE *session = (CK_SESSION_HANDLE *)call->seen.arguments[4];
    bool read_write = (flags & CKF_RW_SESSION) != 0;
    if (session == NULL)
        return CKR_ARGUMENTS_BAD;
    if ((flags & CKF_SERIAL_SESSION) == 0)
        return CKR_SESSION_PARALLEL_NOT_SUPPORTED;
    if (script->sessions_most != 0 && atomic_load(&token->sessions) >= script->sessions_most)
        return script->session_refusal;
    if (!read_write && atomic_load(&token->login) == LOGIN_SO)
        return CKR_SESSION_READ_WRITE_SO_EXISTS;
    CK_SESSION_HANDLE made =
        closed_count != 0 ? closed[--closed_count] : atomic_fetch_add(&highest, 1) + 1;
    if (made >= SESSIONS_MOST)
        return CKR_SESSION_COUNT;
    atomic_fetch_add(&token->sessions, 1);
    atomic_fetch_add(&token->read_write, read_write);
    atomic_store(&words[made], BIT_OPEN | (read_write ? BIT_READ_WRITE : 0U) |
                                   (call->seen.by_filler ? BIT_FILLER : 0U) |
                                   (unsigned)call->slot_id << SLOT_SHIFT);
    *session = call->seen.session = made;
    return CKR_OK;
}

CK_RV work_C_GetSessionInfo(struct call *call)
{
    static const CK_STATE states[][2] = {
        [LOGIN_NONE] = {CKS_RO_PUBLIC_SESSION, CKS_RW_PUBLIC_SESSION},
        [LOGIN_USER] = {CKS_RO_USER_FUNCTIONS, CKS_RW_USER_FUNCTIONS},
        [LOGIN_SO] = {CKS_RW_SO_FUNCTIONS, CKS_RW_SO_FUNCTIONS}};
    CK_SESSION_INFO *info = (CK_SESSION_INFO *)call->seen.arguments[1];
    bool read_write = (word_of(call->seen.session) & BIT_READ_WRITE) != 0;
    if (info == NULL)
        return CKR_ARGUMENTS_BAD;
    *info = (CK_SESSION_INFO){.slotID = call->slot_id,
                              .state = states[token_login(call->slot_id)][read_write],
                              .flags = CKF_SERIAL_SESSION | (read_write ? CKF_RW_SESSION : 0)};
    return CKR_OK;
}

CK_RV work_C_Login(struct call *call)
{
    HOLD(&lock);
    struct token *token = &tokens[call->slot_id];
    CK_USER_TYPE user = call->seen.arguments[1];
    unsigned login = atomic_load(&token->login);
    if (call->seen.arguments[2] != 0 && call->seen.arguments[3] < 4)
        return CKR_PIN_INCORRECT;
    if (user == CKU_CONTEXT_SPECIFIC)
        return login == LOGIN_NONE ? CKR_OPERATION_NOT_INITIALIZED : CKR_OK;
    if (user != CKU_SO && user != CKU_USER)
        return CKR_USER_TYPE_INVALID;
    if (login != LOGIN_NONE)
        return CKR_USER_ALREADY_LOGGED_IN;
    if (user == CKU_SO && atomic_load(&token->read_write) != atomic_load(&token->sessions))
        return CKR_SESSION_READ_ONLY_EXISTS;
    atomic_store(&token->login, user == CKU_SO ? LOGIN_SO : LOGIN_USER);
    return CKR_OK;
}

CK_RV work_C_LoginUser(struct call *call)
{
    return work_C_Login(call);
}

CK_RV work_C_Logout(struct call *call)
{
    HOLD(&lock);
    unsigned login = atomic_exchange(&tokens[call->slot_id].login, LOGIN_NONE);
    return login == LOGIN_NONE ? CKR_USER_NOT_LOGGED_IN : CKR_OK;
}
