/* life.c - the scripted target's beginning and end: C_Initialize, C_Finalize, forks, and calls that meet them. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "call.h"

enum allowed { ANY_THREADS, NO_THREAD_OF_YOURS, ONE_CALL_AT_A_TIME };

static atomic_bool initialized;
static _Atomic enum allowed allowed;
static atomic_int owner;

/* Calls under way; those that wait for an event are none. */
static atomic_uint inside;
static atomic_uint random_inside;

static bool is_counted(const struct call *call)
{
    return call->function != FUNCTION_C_WaitForSlotEvent;
}

/* A test may pass a pointer that is none. */
static const CK_C_INITIALIZE_ARGS *args_at(void *pointer)
{
    return (uintptr_t)pointer > sizeof(CK_C_INITIALIZE_ARGS) ? pointer : NULL;
}

static unsigned callbacks_in(const CK_C_INITIALIZE_ARGS *args)
{
    return (args->CreateMutex != NULL) + (args->DestroyMutex != NULL) + (args->LockMutex != NULL) +
           (args->UnlockMutex != NULL);
}

static void remember(void *pointer)
{
    unsigned place = atomic_fetch_add(&shared->init_count, 1);
    if (place >= INITS_MOST)
        return;
    shared->inits[place].pointer = pointer;
    if (args_at(pointer) != NULL)
        shared->inits[place].args = *args_at(pointer);
}

/* A caller may well end a life beside its own calls, and is then on its own. */
void life_call_begins(const struct call *call)
{
    if (!is_counted(call))
        return;
    unsigned others = atomic_fetch_add(&inside, 1);
    if (call->function == FUNCTION_C_GenerateRandom)
        atomic_fetch_add(&random_inside, 1);
    if (call->function == FUNCTION_C_Initialize)
        remember((void *)call->arguments[0]);
    if (call->function == FUNCTION_C_Finalize && others != 0)
        atomic_fetch_add(&shared->finalize_met, 1);
    enum allowed now = atomic_load(&allowed);
    if (now != ANY_THREADS && call->by_filler)
        complain("a thread that the application did not allow", call);
    if (now == ONE_CALL_AT_A_TIME && others != 0)
        complain("a call beside another, without locks", call);
}

void life_call_ends(const struct call *call)
{
    if (!is_counted(call))
        return;
    atomic_fetch_sub(&inside, 1);
    if (call->function == FUNCTION_C_GenerateRandom)
        atomic_fetch_sub(&random_inside, 1);
}

/* As with a module whose static objects are destroyed while its functions run. */
void life_is_unloaded(void)
{
    enum { MET_THE_END = 99 };
    if (script_now()->strict_exit && atomic_load(&random_inside) != 0)
        _exit(MET_THE_END);
}

__attribute__((constructor)) static void remember_owner(void)
{
    atomic_store(&owner, getpid());
}

/* In a child, locks may be held by threads that it does not have; and a strict token wants to be initialised anew. */
void life_after_fork(void)
{
    int self = getpid();
    if (atomic_load_explicit(&owner, memory_order_relaxed) == self)
        return;
    atomic_store(&inside, 0);
    atomic_store(&random_inside, 0);
    sessions_forget_locks();
    if (!script_now()->lax_fork)
        atomic_store(&initialized, false);
    atomic_store(&owner, self);
}

bool life_is_initialized(void)
{
    return atomic_load(&initialized);
}

static CK_RV begin(void *pointer)
{
    const CK_C_INITIALIZE_ARGS *args = args_at(pointer);
    if (args != NULL && callbacks_in(args) % 4 != 0)
        return CKR_ARGUMENTS_BAD;
    if (atomic_exchange(&initialized, true))
        return CKR_CRYPTOKI_ALREADY_INITIALIZED;
    sessions_forget();
    bool locks =
        args != NULL && ((args->flags & CKF_OS_LOCKING_OK) != 0 || callbacks_in(args) == 4);
    bool no_threads = args == NULL || (args->flags & CKF_LIBRARY_CANT_CREATE_OS_THREADS) != 0;
    atomic_store(&allowed, !locks       ? ONE_CALL_AT_A_TIME
                           : no_threads ? NO_THREAD_OF_YOURS
                                        : ANY_THREADS);
    if (script_now()->changing_list)
        lists_change();
    return CKR_OK;
}

static CK_RV end(const void *reserved)
{
    if (reserved != NULL)
        return CKR_ARGUMENTS_BAD;
    if (!atomic_exchange(&initialized, false))
        return CKR_CRYPTOKI_NOT_INITIALIZED;
    atomic_store(&allowed, ANY_THREADS);
    sessions_forget();
    return CKR_OK;
}

static CK_RV tell_info(unsigned list, CK_INFO *info)
{
    if (!life_is_initialized())
        return CKR_CRYPTOKI_NOT_INITIALIZED;
    if (info == NULL)
        return CKR_ARGUMENTS_BAD;
    memset(info, ' ', sizeof *info);
    info->cryptokiVersion =
        list == 240 ? (CK_VERSION){2, 40} : (CK_VERSION){3, (CK_BYTE)(list % 100)};
    info->flags = 0;
    return CKR_OK;
}

bool life_knows(struct call *call, CK_RV *rv)
{
    void *first = (void *)call->arguments[0];
    switch (call->function) {
    case FUNCTION_C_Initialize:
        *rv = begin(first);
        return true;
    case FUNCTION_C_Finalize:
        *rv = end(first);
        return true;
    case FUNCTION_C_GetInfo:
        *rv = tell_info(call->list, first);
        return true;
    default:
        return false;
    }
}
