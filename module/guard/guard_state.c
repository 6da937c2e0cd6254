/* guard_state.c - C_GetOperationState and C_SetOperationState. */
#include "guard/guard_state.h"

#include <string.h>

#include "calls/forward.h"
#include "guard/guard_calls.h"
#include "base/log.h"
#include "state/settings.h"

/* Tells states apart; it is no secret, and whoever forges one could as well load the target himself. */
static uint64_t print_of(const CK_BYTE *bytes, CK_ULONG len_bytes)
{
    uint64_t print = 0xcbf29ce484222325ULL;
    for (CK_ULONG i = 0; i < len_bytes; i++)
        print = (print ^ bytes[i]) * 0x100000001b3ULL;
    return print != 0 ? print : 1;
}

static void remember(uint64_t print)
{
    struct operation_states *known = &state->operation_states;
    lock_acquire(&known->lock);
    known->prints[known->next++ % OPERATION_STATES] = print;
    lock_release(&known->lock);
}

static bool is_known(uint64_t print)
{
    struct operation_states *known = &state->operation_states;
    bool found = false;
    lock_acquire(&known->lock);
    for (unsigned i = 0; i < OPERATION_STATES && !found; i++)
        found = known->prints[i] == print;
    lock_release(&known->lock);
    return found;
}

/* Also true, with a message, where the policy only audits. */
static bool is_from_here(const struct policy *policy, const CK_BYTE *bytes, CK_ULONG len_bytes)
{
    bool audit = policy_is_audit(policy);
    if (is_known(print_of(bytes, len_bytes)))
        return true;
    log_write(audit ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
              "%s an operation in C_SetOperationState that was not saved here since C_Initialize",
              audit ? "would refuse" : "refuses");
    return audit;
}

void operation_states_forget(void)
{
    struct operation_states *known = &state->operation_states;
    lock_acquire(&known->lock);
    memset(known->prints, 0, sizeof known->prints);
    lock_release(&known->lock);
}

CK_RV proxy_C_GetOperationState(CK_SESSION_HANDLE hSession, CK_BYTE_PTR pOperationState,
                                CK_ULONG_PTR pulOperationStateLen)
{
    hSession = session_for_target(hSession);
    busy_begin(hSession);
    CK_RV rv = target.C_GetOperationState(hSession, pOperationState, pulOperationStateLen);
    busy_end();
    if (rv != CKR_OK)
        note_answer(hSession, rv);
    else if (policy_in_force() != NULL && pOperationState != NULL && pulOperationStateLen != NULL)
        remember(print_of(pOperationState, *pulOperationStateLen));
    return rv;
}

CK_RV proxy_C_SetOperationState(CK_SESSION_HANDLE hSession, CK_BYTE_PTR pOperationState,
                                CK_ULONG ulOperationStateLen, CK_OBJECT_HANDLE hEncryptionKey,
                                CK_OBJECT_HANDLE hAuthenticationKey)
{
    hSession = session_for_target(hSession);
    const struct policy *policy = policy_in_force();
    if (policy != NULL && pOperationState != NULL &&
        !is_from_here(policy, pOperationState, ulOperationStateLen))
        return CKR_SAVED_STATE_INVALID;
    busy_begin(hSession);
    CK_RV rv = CKR_OK;
    if (policy != NULL)
        rv = guard_keys_of_state(policy, hSession, hEncryptionKey, hAuthenticationKey);
    if (rv == CKR_OK)
        rv = target.C_SetOperationState(hSession, pOperationState, ulOperationStateLen,
                                        hEncryptionKey, hAuthenticationKey);
    busy_end();
    if (rv != CKR_OK)
        note_answer(hSession, rv);
    else if (policy != NULL)
        guard_began_unknown(hSession);
    if (rv == CKR_OK)
        note_operation(hSession, true);
    return rv;
}
