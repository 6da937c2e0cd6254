/* init_args.c - what the target is given as C_Initialize's argument. */
#include "target/init_args.h"

static bool has_callbacks(const CK_C_INITIALIZE_ARGS *args)
{
    return args->CreateMutex != NULL || args->DestroyMutex != NULL || args->LockMutex != NULL ||
           args->UnlockMutex != NULL;
}

/* Some callbacks without the others: the target is to refuse that. */
static bool has_some_callbacks_only(const CK_C_INITIALIZE_ARGS *args)
{
    return has_callbacks(args) && (args->CreateMutex == NULL || args->DestroyMutex == NULL ||
                                   args->LockMutex == NULL || args->UnlockMutex == NULL);
}

/* The caller's argument as it is; if there is a reserved string, a copy of the argument with that in pReserved. */
static void *with_reserved(struct own_args *own, const CK_C_INITIALIZE_ARGS *callers,
                           char *reserved)
{
    if (reserved == NULL)
        return (void *)callers;
    *own = (struct own_args){0};
    if (callers != NULL)
        own->args = *callers;
    own->args.pReserved = reserved;
    return &own->args;
}

void init_plan(struct init_plan *plan, void *callers, bool want_thread, char *reserved)
{
    const CK_C_INITIALIZE_ARGS *args = callers;
    CK_FLAGS flags = args != NULL ? args->flags : 0;
    bool os_locking = (flags & CKF_OS_LOCKING_OK) != 0;
    bool callbacks = args != NULL && has_callbacks(args);

    *plan = (struct init_plan){0};
    /* Callbacks alone: our thread would have to run the application's code, or race with it. */
    plan->thread_forbidden = (flags & CKF_LIBRARY_CANT_CREATE_OS_THREADS) != 0 ||
                             (callbacks && !os_locking) ||
                             (args != NULL && has_some_callbacks_only(args));
    plan->thread_permitted = want_thread && !plan->thread_forbidden;
    plan->args = with_reserved(&plan->own, args, reserved);

    /* Less than plain OS locking was asked for, and a thread of ours makes a second caller. */
    if (plan->thread_permitted && (!os_locking || callbacks)) {
        void *reserved_pointer = reserved != NULL ? reserved
                                 : args != NULL   ? args->pReserved
                                                  : NULL;
        plan->fallback = with_reserved(&plan->own_fallback, args, reserved);
        plan->may_fall_back = true;
        plan->own = (struct own_args){
            .args = {.flags = flags | CKF_OS_LOCKING_OK, .pReserved = reserved_pointer}};
        plan->args = &plan->own.args;
    }
}
