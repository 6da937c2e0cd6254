/* init_args.c - what the target is given as C_Initialize's argument. */
#include "target/init_args.h"

void init_plan(struct init_plan *plan, void *callers, bool want_thread, char *reserved)
{
    static const CK_C_INITIALIZE_ARGS none;
    const CK_C_INITIALIZE_ARGS *args = callers != NULL ? callers : &none;
    bool os_locking = (args->flags & CKF_OS_LOCKING_OK) != 0;
    int callbacks = (args->CreateMutex != NULL) + (args->DestroyMutex != NULL) +
                    (args->LockMutex != NULL) + (args->UnlockMutex != NULL);

    *plan = (struct init_plan){.args = callers};
    if (reserved != NULL) {
        plan->with_reserved.args = *args;
        plan->with_reserved.args.pReserved = reserved;
        plan->args = &plan->with_reserved;
    }
    /* Callbacks alone: a thread of ours would have to run the application's code, or race with it. Some callbacks
     * without the others: the target is to refuse that. */
    plan->thread_permitted = want_thread && !(args->flags & CKF_LIBRARY_CANT_CREATE_OS_THREADS) &&
                             (callbacks == 0 || (callbacks == 4 && os_locking));

    /* Less than plain OS locking was asked for, and a thread of ours makes a second caller. */
    plan->may_fall_back = plan->thread_permitted && (!os_locking || callbacks != 0);
    if (plan->may_fall_back) {
        plan->fallback = plan->args;
        plan->with_locking.args.flags = args->flags | CKF_OS_LOCKING_OK;
        plan->with_locking.args.pReserved = reserved != NULL ? reserved : args->pReserved;
        plan->args = &plan->with_locking;
    }
}
