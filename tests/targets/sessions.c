/* sessions.c - the scripted target's sessions and logins.
 *
 * A session is one word, which calls read without a lock. What opens, closes and logs in takes the lock of its token,
 * as on any real one.
 */
#include <pthread.h>
#include <string.h>

#include "call.h"

enum { SESSIONS_MOST = 1024 * 1024 };

/* Of a session's word; 0 is closed. */
enum {
    BIT_OPEN = 1,
    BIT_READ_WRITE = 2,
    BIT_FILLER = 4,
    TOKEN_SHIFT = 4,
    OPERATION_SHIFT = 8,
    OPERATION_MASK = 0xff << OPERATION_SHIFT
};

static atomic_uint words[SESSIONS_MOST];
static atomic_ulong highest; /* handle given so far */

static struct token {
    pthread_mutex_t lock; /* guards sessions coming and going, and login */
    atomic_uint sessions;
    atomic_uint read_write;
    atomic_uint login;
} tokens[TOKENS_MOST] = {[0 ... TOKENS_MOST - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

/* Closed handles, the last one on top; filled only for "reuse handles". */
static pthread_mutex_t closed_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned closed[1024];
static unsigned closed_count;

void sessions_forget_locks(void)
{
    pthread_mutex_init(&closed_lock, NULL);
    for (unsigned i = 0; i < TOKENS_MOST; i++)
        pthread_mutex_init(&tokens[i].lock, NULL);
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
    pthread_mutex_lock(&closed_lock);
    closed_count = 0;
    pthread_mutex_unlock(&closed_lock);
}

static unsigned token_of(unsigned word)
{
    return word >> TOKEN_SHIFT & (TOKENS_MOST - 1);
}

bool session_find(CK_SESSION_HANDLE handle, struct session *found)
{
    unsigned word =
        handle < SESSIONS_MOST ? atomic_load_explicit(&words[handle], memory_order_acquire) : 0;
    if ((word & BIT_OPEN) == 0)
        return false;
    *found = (struct session){.read_write = (word & BIT_READ_WRITE) != 0,
                              .by_filler = (word & BIT_FILLER) != 0,
                              .token = token_of(word),
                              .operation = (word & OPERATION_MASK) >> OPERATION_SHIFT};
    return true;
}

bool session_change_operation(CK_SESSION_HANDLE handle, enum function from, enum function to)
{
    unsigned word = atomic_load(&words[handle]);
    while ((word & BIT_OPEN) != 0 && (word & OPERATION_MASK) >> OPERATION_SHIFT == from)
        if (atomic_compare_exchange_weak(&words[handle], &word,
                                         (word & ~(unsigned)OPERATION_MASK) |
                                             (unsigned)to << OPERATION_SHIFT))
            return true;
    return false;
}

unsigned session_count(unsigned token, bool read_write_only)
{
    return atomic_load(read_write_only ? &tokens[token].read_write : &tokens[token].sessions);
}

unsigned token_login(unsigned token)
{
    return atomic_load_explicit(&tokens[token].login, memory_order_acquire);
}

static void close_locked(CK_SESSION_HANDLE handle, bool reuse)
{
    unsigned word = atomic_exchange(&words[handle], 0);
    struct token *token = &tokens[token_of(word)];
    if ((word & BIT_OPEN) == 0)
        return;
    if ((word & BIT_READ_WRITE) != 0)
        atomic_fetch_sub(&token->read_write, 1);
    if (atomic_fetch_sub(&token->sessions, 1) == 1)
        atomic_store(&token->login, LOGIN_NONE);
    pthread_mutex_lock(&closed_lock);
    if (reuse && closed_count < sizeof closed / sizeof *closed)
        closed[closed_count++] = (unsigned)handle;
    pthread_mutex_unlock(&closed_lock);
}

static void close_all_locked(unsigned token, bool reuse)
{
    unsigned long upto = atomic_load(&highest);
    for (CK_SESSION_HANDLE i = 1; i <= upto && i < SESSIONS_MOST; i++)
        if ((atomic_load(&words[i]) & BIT_OPEN) != 0 && token_of(atomic_load(&words[i])) == token)
            close_locked(i, reuse);
}

void sessions_meet(const struct script *script)
{
    static atomic_uint met;
    if (atomic_load_explicit(&met, memory_order_relaxed) == script->end)
        return;
    atomic_store_explicit(&met, script->end, memory_order_relaxed);
    for (unsigned i = 0; i < TOKENS_MOST; i++)
        if (atomic_load(&tokens[i].sessions) != 0 && slot_of_token(script, i) == NONE) {
            pthread_mutex_lock(&tokens[i].lock);
            close_all_locked(i, script->reuse_handles != 0);
            pthread_mutex_unlock(&tokens[i].lock);
        }
}

static CK_SESSION_HANDLE new_handle(void)
{
    CK_SESSION_HANDLE handle = 0;
    pthread_mutex_lock(&closed_lock);
    if (closed_count != 0)
        handle = closed[--closed_count];
    pthread_mutex_unlock(&closed_lock);
    if (handle == 0)
        handle = atomic_fetch_add(&highest, 1) + 1;
    return handle < SESSIONS_MOST ? handle : CK_INVALID_HANDLE;
}

static CK_RV open_locked(const struct call *call, struct token *token, CK_SESSION_HANDLE *handle)
{
    const struct script *script = call->script;
    bool read_write = (call->arguments[1] & CKF_RW_SESSION) != 0;
    if (script->sessions_most != 0 && atomic_load(&token->sessions) >= script->sessions_most)
        return script->session_refusal;
    if (!read_write && atomic_load(&token->login) == LOGIN_SO)
        return CKR_SESSION_READ_WRITE_SO_EXISTS;
    CK_SESSION_HANDLE made = new_handle();
    if (made == CK_INVALID_HANDLE)
        return CKR_SESSION_COUNT;
    atomic_fetch_add(&token->sessions, 1);
    atomic_fetch_add(&token->read_write, read_write);
    atomic_store(&words[made], BIT_OPEN | (read_write ? BIT_READ_WRITE : 0) |
                                   (call->by_filler ? BIT_FILLER : 0) | call->token << TOKEN_SHIFT);
    *handle = made;
    return CKR_OK;
}

static CK_RV open_session(struct call *call)
{
    struct token *token = &tokens[call->token];
    CK_SESSION_HANDLE *handle = (CK_SESSION_HANDLE *)call->arguments[4];
    if (handle == NULL)
        return CKR_ARGUMENTS_BAD;
    if ((call->arguments[1] & CKF_SERIAL_SESSION) == 0)
        return CKR_SESSION_PARALLEL_NOT_SUPPORTED;
    pthread_mutex_lock(&token->lock);
    CK_RV rv = open_locked(call, token, handle);
    pthread_mutex_unlock(&token->lock);
    if (rv == CKR_OK)
        call->session = *handle;
    return rv;
}

static CK_STATE state_of(const struct session *session)
{
    unsigned login = token_login(session->token);
    if (login == LOGIN_SO)
        return CKS_RW_SO_FUNCTIONS;
    if (login == LOGIN_USER)
        return session->read_write ? CKS_RW_USER_FUNCTIONS : CKS_RO_USER_FUNCTIONS;
    return session->read_write ? CKS_RW_PUBLIC_SESSION : CKS_RO_PUBLIC_SESSION;
}

static CK_RV tell_session(const struct call *call, const struct session *session,
                          CK_SESSION_INFO *info)
{
    if (info == NULL)
        return CKR_ARGUMENTS_BAD;
    *info =
        (CK_SESSION_INFO){.slotID = call->slot_id,
                          .state = state_of(session),
                          .flags = CKF_SERIAL_SESSION | (session->read_write ? CKF_RW_SESSION : 0)};
    return CKR_OK;
}

static CK_RV log_in_locked(struct token *token, CK_USER_TYPE user, CK_ULONG pin_bytes)
{
    unsigned login = atomic_load(&token->login);
    if (pin_bytes < 4)
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

static CK_RV log_out_locked(struct token *token)
{
    return atomic_exchange(&token->login, LOGIN_NONE) == LOGIN_NONE ? CKR_USER_NOT_LOGGED_IN
                                                                    : CKR_OK;
}

/* What needs the token's lock. */
static CK_RV change_locked(const struct call *call, struct token *token)
{
    bool reuse = call->script->reuse_handles != 0;
    switch (call->function) {
    case FUNCTION_C_CloseSession:
        close_locked(call->session, reuse);
        return CKR_OK;
    case FUNCTION_C_CloseAllSessions:
        close_all_locked(call->token, reuse);
        return CKR_OK;
    case FUNCTION_C_InitToken:
        return atomic_load(&token->sessions) != 0 ? CKR_SESSION_EXISTS : CKR_OK;
    case FUNCTION_C_Logout:
        return log_out_locked(token);
    default: /* C_Login, C_LoginUser */
        return log_in_locked(token, call->arguments[1], call->arguments[3]);
    }
}

bool sessions_know(struct call *call, CK_RV *rv)
{
    struct session session;
    struct token *token = &tokens[call->token % TOKENS_MOST];
    if (strcmp(call->names[0], "hSession") == 0 && !session_find(call->session, &session)) {
        *rv = CKR_SESSION_HANDLE_INVALID;
        return true;
    }
    switch (call->function) {
    case FUNCTION_C_OpenSession:
        *rv = open_session(call);
        return true;
    case FUNCTION_C_GetSessionInfo:
        *rv = tell_session(call, &session, (CK_SESSION_INFO *)call->arguments[1]);
        return true;
    case FUNCTION_C_CloseSession:
    case FUNCTION_C_CloseAllSessions:
    case FUNCTION_C_InitToken:
    case FUNCTION_C_Login:
    case FUNCTION_C_LoginUser:
    case FUNCTION_C_Logout:
        pthread_mutex_lock(&token->lock);
        *rv = change_locked(call, token);
        pthread_mutex_unlock(&token->lock);
        return true;
    default:
        return false;
    }
}
