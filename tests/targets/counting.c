/* counting.c - a target whose random bytes can be told apart, and that misbehaves on demand: life and list.
 *
 * Strict where the standard is: a child has to initialise anew, an SO cannot log in beside a
 * read-only session, C_InitToken wants no session, the last close logs out. knobs.def says what
 * else it can be told.
 */
#include "counting.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

struct counting counting = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pid_t owner;

__attribute__((constructor)) static void remember_owner(void)
{
    owner = getpid();
}

/* In a child the locks may be held by threads that it does not have, and a strict token is not initialised. */
static void notice_fork(void)
{
    struct knobs knobs;
    if (owner == getpid())
        return;
    pthread_mutex_init(&counting.lock, NULL);
    knobs_after_fork();
    gate_after_fork();
    random_after_fork();
    owner = getpid();
    knobs_read(&knobs);
    if (!knobs.lax_fork)
        counting.initialized = false;
}

bool counting_enter(void)
{
    notice_fork();
    pthread_mutex_lock(&counting.lock);
    if (counting.initialized)
        return true;
    pthread_mutex_unlock(&counting.lock);
    return false;
}

void counting_leave(void)
{
    pthread_mutex_unlock(&counting.lock);
}

static void forget_everything_locked(void)
{
    memset(counting.sessions, 0, (counting.highest + 1) * sizeof *counting.sessions);
    memset(counting.tokens, 0, sizeof counting.tokens);
    counting.highest = counting.last_closed = 0;
    counting.random_calls = 0;
}

static CK_RV check_arguments(const CK_C_INITIALIZE_ARGS *args, const struct knobs *knobs)
{
    if (args == NULL)
        return knobs->needs_locking ? CKR_CANT_LOCK : CKR_OK;
    int callbacks = (args->CreateMutex != NULL) + (args->DestroyMutex != NULL) +
                    (args->LockMutex != NULL) + (args->UnlockMutex != NULL);
    if (callbacks % 4 != 0 || args->pReserved != NULL)
        return CKR_ARGUMENTS_BAD;
    bool os_locking = (args->flags & CKF_OS_LOCKING_OK) != 0;
    if (knobs->cannot_lock && os_locking)
        return CKR_CANT_LOCK;
    return knobs->needs_locking && !os_locking ? CKR_CANT_LOCK : CKR_OK;
}

static CK_RV initialize(CK_VOID_PTR pInitArgs)
{
    struct knobs knobs;
    notice_fork();
    knobs_read(&knobs);
    CK_RV rv = check_arguments(pInitArgs, &knobs);
    if (rv == CKR_OK)
        rv = knobs.init_code;
    struct timespec delay = {(time_t)(knobs.init_ms / 1000),
                             (long)(knobs.init_ms % 1000) * 1000000};
    nanosleep(&delay, NULL);
    if (rv == CKR_OK && counting_enter()) {
        rv = CKR_CRYPTOKI_ALREADY_INITIALIZED;
        counting_leave();
    } else if (rv == CKR_OK) {
        pthread_mutex_lock(&counting.lock);
        forget_everything_locked();
        counting.initialized = true;
        pthread_mutex_unlock(&counting.lock);
    }
    return rv;
}

static CK_RV counting_C_Initialize(CK_VOID_PTR pInitArgs)
{
    const CK_C_INITIALIZE_ARGS *args = pInitArgs;
    CK_RV rv = initialize(pInitArgs);
    return call_log("C_Initialize", NO_NUMBER, NO_NUMBER,
                    args != NULL ? (long)args->flags : NO_NUMBER, rv);
}

static CK_RV counting_C_Finalize(CK_VOID_PTR pReserved)
{
    struct knobs knobs;
    CK_RV rv = CKR_CRYPTOKI_NOT_INITIALIZED;
    knobs_read(&knobs);
    random_life_changes(/* finalizing= */ true);
    struct timespec delay = {(time_t)(knobs.finalize_ms / 1000),
                             (long)(knobs.finalize_ms % 1000) * 1000000};
    nanosleep(&delay, NULL);
    if (counting_enter()) {
        rv = pReserved != NULL ? CKR_ARGUMENTS_BAD : knobs.finalize_code;
        if (rv == CKR_OK) {
            forget_everything_locked();
            counting.initialized = false;
        }
        counting_leave();
    }
    random_life_changes(/* finalizing= */ false);
    return call_log("C_Finalize", NO_NUMBER, NO_NUMBER, NO_NUMBER, rv);
}

static CK_RV counting_C_GetInfo(CK_INFO_PTR pInfo)
{
    if (!counting_enter())
        return CKR_CRYPTOKI_NOT_INITIALIZED;
    counting_leave();
    if (pInfo == NULL)
        return CKR_ARGUMENTS_BAD;
    memset(pInfo, ' ', sizeof *pInfo);
    pInfo->cryptokiVersion = (CK_VERSION){2, 40};
    pInfo->flags = 0;
    return call_log("C_GetInfo", NO_NUMBER, NO_NUMBER, NO_NUMBER, CKR_OK);
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define P11_UPTO 240
#define ROW(name, ...)                                                                             \
    static CK_RV missing_##name(PARAMS(__VA_ARGS__))                                               \
    {                                                                                              \
        return CKR_FUNCTION_NOT_SUPPORTED;                                                         \
    }
#include "functions.def"

EXPORT CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR ppFunctionList)
{
    static struct p11_functions list = {
#define P11_UPTO       240
#define ROW(name, ...) .name = missing_##name,
#include "functions.def"
    };
    struct knobs knobs;
    if (ppFunctionList == NULL)
        return CKR_ARGUMENTS_BAD;
    knobs_read(&knobs);
    if (knobs.null_members)
        memset(&list, 0, sizeof list);
    list.version = (CK_VERSION){2, 40};
    list.C_Initialize = counting_C_Initialize;
    list.C_Finalize = counting_C_Finalize;
    list.C_GetInfo = counting_C_GetInfo;
    list.C_GetFunctionList = C_GetFunctionList;
    list.C_WaitForSlotEvent = counting_C_WaitForSlotEvent;
    counting_add_sessions(&list);
    counting_add_slots(&list);
    counting_add_random(&list);
    *ppFunctionList = (CK_FUNCTION_LIST_PTR)&list;
    return CKR_OK;
}
