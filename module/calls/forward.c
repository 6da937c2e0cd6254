/* forward.c - every function that is handed on, made from functions.def. */
#include "calls/forward.h"

#include <string.h>

#include "state/counters.h"
#include "guard/guard_memo.h"
#include "guard/key_cache.h"
#include "state/settings.h"

/* When an operation with this output argument is over: it is over at once if there is none. */
#define ALWAYS ((void *)1)

/* The one way into the target: through its table, which has no empty entry. */
#define HAND_ON(name, ...) target.name(ARGS(__VA_ARGS__))

/* The formatter takes a macro's statements for one expression. */
/* clang-format off */
/* rv is what is known before the target is asked; unless it is CKR_OK, that is the answer. */
#define AROUND(name, before, after, ...)                                                           \
    CK_RV proxy_##name(PARAMS(__VA_ARGS__))                                                        \
    {                                                                                              \
        CK_RV rv = CKR_OK;                                                                         \
        hSession = session_for_target(hSession);                                                   \
        busy_begin(hSession);                                                                      \
        before                                                                                     \
        if (rv == CKR_OK)                                                                          \
            rv = HAND_ON(name, __VA_ARGS__);                                                       \
        busy_end();                                                                                \
        if (UNLIKELY(rv != CKR_OK))                                                                \
            note_answer(hSession, rv);                                                             \
        after                                                                                      \
        return rv;                                                                                 \
    }

#define FWD(name, ...)                                                                             \
    CK_RV proxy_##name(PARAMS(__VA_ARGS__))                                                        \
    {                                                                                              \
        CK_RV rv = HAND_ON(name, __VA_ARGS__);                                                     \
        if (UNLIKELY(rv == CKR_CRYPTOKI_NOT_INITIALIZED))                                          \
            note_finalized();                                                                      \
        return rv;                                                                                 \
    }

#define CALL(name, ...) AROUND(name, , , __VA_ARGS__)

/* The policy, where one is set: without, this is all that it costs. */
#define WITH_POLICY(does)                                                                          \
    const struct policy *policy = policy_in_force();                                               \
    if (UNLIKELY(policy != NULL)) {                                                                \
        does                                                                                       \
    }

#define KEYS(...) &(const struct key_use){__VA_ARGS__}
#define NO_KEY    KEYS(.used = CK_INVALID_HANDLE)

/* A NULL mechanism is the 3.0 way to end an operation. */
#define MECH(purpose, keys, name, ...)                                                             \
    AROUND(name,                                                                                   \
           bool known = false;                                                                     \
           WITH_POLICY(                                                                            \
               known = guard_is_known(policy, purpose, hSession, pMechanism, (keys)->used);        \
               if (!known)                                                                         \
                   rv = guard_call(policy, #name, purpose, hSession, pMechanism, keys);),          \
           if (UNLIKELY(policy != NULL) && !known && rv == CKR_OK) {                               \
               rv = guard_made(policy, #name, hSession, pMechanism, keys);                         \
               guard_began(purpose, hSession, pMechanism);                                         \
           }                                                                                       \
           if (rv == CKR_OK && pMechanism != NULL)                                                 \
               count_mechanism(pMechanism->mechanism);                                             \
           if ((purpose) != OVER_AT_ONCE && rv == CKR_OK)                                          \
               note_operation(hSession, pMechanism != NULL);, __VA_ARGS__)

#define MAKE(template, count, name, ...)                                                           \
    AROUND(name, WITH_POLICY(rv = guard_import(policy, #name, template, count);), , __VA_ARGS__)

#define EDIT(object, name, ...)                                                                    \
    AROUND(name, const struct key_change change = key_change_begin();,                             \
           key_change_end(change, session_slot(hSession), object);, __VA_ARGS__)

#define IF_ENDED(output)                                                                           \
    if (rv != CKR_BUFFER_TOO_SMALL && (rv != CKR_OK || (output) != NULL))                          \
        note_operation(hSession, false);

#define ENDS(output, name, ...) AROUND(name, , IF_ENDED(output), __VA_ARGS__)

#define PART(purpose, data, data_bytes, name, ...)                                                 \
    AROUND(name, WITH_POLICY(rv = guard_data(policy, #name, purpose, hSession, data, data_bytes);), , \
           __VA_ARGS__)

/* A refused operation has to end at the target too. A buffer that is too small ends none, nor does a
 * question for the length. */
#define DATA(purpose, data, data_bytes, output, name, ...)                                         \
    AROUND(name,                                                                                   \
           CK_RV refusal = CKR_OK;                                                                 \
           WITH_POLICY(                                                                            \
               if ((output) != NULL)                                                               \
                   refusal = guard_data(policy, #name, purpose, hSession, data, data_bytes);       \
               if (refusal != CKR_OK) {                                                            \
                   data = (CK_BYTE_PTR)too_much;                                                   \
                   data_bytes = TOO_MUCH_BYTES;                                                    \
               }),                                                                                 \
           if (refusal != CKR_OK && refusal_stands(rv))                                            \
               rv = refusal;                                                                       \
           IF_ENDED(output), __VA_ARGS__)

/* Its data is known afterwards only, and then taken back. */
#define GIVE(purpose, output, output_bytes, name, ...)                                             \
    AROUND(name, ,                                                                                 \
           IF_ENDED(output)                                                                        \
           WITH_POLICY(                                                                            \
               if (rv == CKR_OK && output_bytes != NULL)                                           \
                   rv = guard_data(policy, #name, purpose, hSession, output, *output_bytes);       \
               if (rv == CKR_DATA_INVALID && (output) != NULL)                                     \
                   explicit_bzero(output, *output_bytes);), __VA_ARGS__)

/* clang-format on */

#define OWN(name, ...)

/* Whether the target's answer to too much data is about the data. Else it is what the caller must know. */
static bool refusal_stands(CK_RV rv)
{
    switch (rv) {
    case CKR_BUFFER_TOO_SMALL:
    case CKR_OPERATION_NOT_INITIALIZED:
    case CKR_USER_NOT_LOGGED_IN:
    case CKR_SESSION_HANDLE_INVALID:
    case CKR_SESSION_CLOSED:
    case CKR_DEVICE_REMOVED:
    case CKR_CRYPTOKI_NOT_INITIALIZED:
        return false;
    default:
        return true;
    }
}

#define P11_UPTO 302
#include "functions.def"

CK_SESSION_HANDLE session_for_target(CK_SESSION_HANDLE handle)
{
    bool hidden = false;
    if (LIKELY(!handle_may_be_hidden(handle)) || handle == CK_INVALID_HANDLE)
        return handle;
    lock_acquire(&state->lock);
    for (unsigned i = 0; i < state->slot_count && !hidden; i++)
        hidden = state->slots[i].hidden == handle;
    lock_release(&state->lock);
    return hidden ? CK_INVALID_HANDLE : handle;
}

void note_finalized(void)
{
    lock_acquire(&state->lock);
    for (unsigned i = 0; i < state->slot_count; i++)
        atomic_fetch_add(&state->slots[i].generation, 1);
    lock_release(&state->lock);
    guard_forget();
    state_drop_pools(POOL_DROP_FINALIZE);
}

void note_slot_answer(struct slot *slot, CK_RV rv)
{
    switch (rv) {
    case CKR_CRYPTOKI_NOT_INITIALIZED:
        note_finalized();
        break;
    case CKR_DEVICE_REMOVED:
    case CKR_TOKEN_NOT_PRESENT:
    case CKR_TOKEN_NOT_RECOGNIZED:
    case CKR_SLOT_ID_INVALID:
        /* All sessions may be gone with the token, and another token may have come. */
        atomic_fetch_add(&slot->generation, 1);
        guard_forget();
        atomic_store(&slot->pooling, POOLING_UNKNOWN);
        slot_drop_pool(slot, POOL_DROP_TOKEN);
        break;
    case CKR_DEVICE_ERROR:
    case CKR_FIPS_SELF_TEST_FAILED:
        slot_drop_pool(slot, POOL_DROP_TOKEN);
        break;
    }
}

void note_answer_of_slot(CK_SLOT_ID id, CK_RV rv)
{
    if (LIKELY(rv == CKR_OK))
        return;
    if (rv == CKR_CRYPTOKI_NOT_INITIALIZED) {
        note_finalized();
        return;
    }
    struct slot *slot = slot_find(id);
    if (slot != NULL)
        note_slot_answer(slot, rv);
}

void note_answer(CK_SESSION_HANDLE handle, CK_RV rv)
{
    struct session *session = session_find(handle);
    struct slot *slot = session != NULL ? session->slot : NULL;
    if (slot == NULL)
        return;
    switch (rv) {
    case CKR_SESSION_CLOSED:
    case CKR_SESSION_HANDLE_INVALID:
        /* Nothing is served for it until the token answers for it again. */
        atomic_store(&session->generation, 0);
        break;
    default:
        note_slot_answer(slot, rv);
    }
}

void note_operation(CK_SESSION_HANDLE handle, bool open)
{
    struct session *session = session_find(handle);
    if (session != NULL)
        session_operates(session, open);
}
