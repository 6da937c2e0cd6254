/* forward.c - every function that is handed on, made from functions.def. */
#include "forward.h"

/* When an operation with this output argument is over: it is over at once if there is none. */
#define ALWAYS ((void *)1)

/* The one way into the target: through its table, which has no empty entry. */
#define HAND_ON(name, ...) target.name(ARGS(__VA_ARGS__))

#define AROUND(name, after, ...)                                                                   \
    CK_RV proxy_##name(PARAMS(__VA_ARGS__))                                                        \
    {                                                                                              \
        hSession = session_for_target(hSession);                                                   \
        busy_begin(hSession);                                                                      \
        CK_RV rv = HAND_ON(name, __VA_ARGS__);                                                     \
        busy_end();                                                                                \
        if (UNLIKELY(rv != CKR_OK))                                                                \
            note_answer(hSession, rv);                                                             \
        after                                                                                      \
        return rv;                                                                                 \
    }

#define FWD(name, ...)                                                                             \
    CK_RV proxy_##name(PARAMS(__VA_ARGS__))                                                        \
    {                                                                                              \
        return HAND_ON(name, __VA_ARGS__);                                                         \
    }

#define CALL(name, ...) AROUND(name, , __VA_ARGS__)

/* A NULL mechanism is the 3.0 way to end an operation. */
#define MECH(purpose, name, ...)                                                                   \
    AROUND(name, if (purpose && rv == CKR_OK) note_operation(hSession, pMechanism != NULL);,       \
           __VA_ARGS__)

#define ENDS(output, name, ...)                                                                    \
    AROUND(name, if (rv != CKR_BUFFER_TOO_SMALL && (rv != CKR_OK || (output) != NULL))             \
                     note_operation(hSession, false);, __VA_ARGS__)

#define OWN(name, ...)

/* Whether the purpose leaves an operation open on the session. */
enum {
    TO_GENERATE = 0,
    TO_GENERATE_PAIR = 0,
    TO_WRAP = 0,
    TO_UNWRAP = 0,
    TO_DERIVE = 0,
    TO_ENCAPSULATE = 0,
    TO_DECAPSULATE = 0,
    TO_WRAP_AUTHENTICATED = 0,
    TO_UNWRAP_AUTHENTICATED = 0,
    TO_ENCRYPT = 1,
    TO_DECRYPT = 1,
    TO_DIGEST = 1,
    TO_SIGN = 1,
    TO_SIGN_RECOVER = 1,
    TO_VERIFY = 1,
    TO_VERIFY_RECOVER = 1,
    TO_MESSAGE_ENCRYPT = 1,
    TO_MESSAGE_DECRYPT = 1,
    TO_MESSAGE_SIGN = 1,
    TO_MESSAGE_VERIFY = 1,
    TO_VERIFY_SIGNATURE = 1
};

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

void note_slot_answer(struct slot *slot, CK_RV rv)
{
    switch (rv) {
    case CKR_DEVICE_REMOVED:
    case CKR_TOKEN_NOT_PRESENT:
    case CKR_TOKEN_NOT_RECOGNIZED:
        /* All sessions may be gone with the token, and another token may have come. */
        atomic_fetch_add(&slot->generation, 1);
        atomic_store(&slot->pooling, POOLING_UNKNOWN);
        slot_drop_pool(slot, POOL_DROP_TOKEN);
        break;
    case CKR_DEVICE_ERROR:
        slot_drop_pool(slot, POOL_DROP_TOKEN);
        break;
    }
}

void note_answer(CK_SESSION_HANDLE handle, CK_RV rv)
{
    struct session *session = session_find(handle);
    if (session == NULL)
        return;
    switch (rv) {
    case CKR_SESSION_CLOSED:
    case CKR_SESSION_HANDLE_INVALID:
        /* Nothing is served for it until the token answers for it again. */
        atomic_store(&session->generation, 0);
        break;
    case CKR_CRYPTOKI_NOT_INITIALIZED:
        /* Another user of the target finalized it. */
        atomic_store(&session->generation, 0);
        state_drop_pools(POOL_DROP_FINALIZE);
        break;
    default:
        note_slot_answer(session->slot, rv);
    }
}

void note_operation(CK_SESSION_HANDLE handle, bool open)
{
    struct session *session = session_find(handle);
    if (session != NULL)
        session_operates(session, open);
}
