/* forward.c - every function of every list of ours, made from functions.def. */
#include "calls/own.h"
#include "guard/guard.h"
#include "random/fill_session.h"
#include "state/counters.h"
#include "state/in_call.h"
#include "state/sessions.h"
#include "state/settings.h"

struct call {
    struct in_call_place *place;
    CK_SESSION_HANDLE session;
    unsigned calls;
};

static inline struct call begin(CK_SESSION_HANDLE *session)
{
    *session = fill_session_hide(*session);
    struct in_call_place *place = in_call_place(*session);
    return (struct call){place, *session, in_call_begin(place, *session)};
}

static inline void end(const struct call *call, CK_RV rv)
{
    in_call_end(call->place, call->calls);
    if (__builtin_expect(rv != CKR_OK, 0))
        session_note_code(call->session, rv);
}

static void note_key_changed(CK_SESSION_HANDLE session)
{
    struct slot *slot = session_slot(session);
    if (slot != NULL)
        slot_invalidate(slot, SLOT_KEY_CHANGED);
    else
        slots_invalidate(SLOT_KEY_CHANGED);
}

/* clang-format off */
/*
 * forward_C_Sign() and so on: each kind of row as a function. Behind its own parameters each takes the target's list
 * that it forwards to. The target is called through its table only, which has no empty entry.
 */
#define FORWARDER(name, ...) \
    __attribute__((noinline)) static CK_RV forward_##name(PARAMS(__VA_ARGS__), const struct p11_functions *functions)

/* rv is what is known before the target is asked; unless it is CKR_OK, that is the answer. */
#define AROUND(name, before, after, ...)                                                           \
    FORWARDER(name, __VA_ARGS__)                                                                   \
    {                                                                                              \
        CK_RV rv = CKR_OK;                                                                         \
        struct call call = begin(&hSession);                                                       \
        before                                                                                     \
        if (rv == CKR_OK)                                                                          \
            rv = functions->name(ARGS(__VA_ARGS__));                                               \
        end(&call, rv);                                                                            \
        after                                                                                      \
        return rv;                                                                                 \
    }

/* The policy, where one is set: without, this is all that it costs. */
#define WITH_POLICY(does)                                                                          \
    const struct policy *policy = policy_in_force();                                               \
    if (__builtin_expect(policy != NULL, 0)) {                                                     \
        does                                                                                       \
    }

#define OWN(name, ...) /* written by hand: see own.h */

#define FWD(name, ...)                                                                             \
    FORWARDER(name, __VA_ARGS__)                                                                   \
    {                                                                                              \
        CK_RV rv = functions->name(ARGS(__VA_ARGS__));                                             \
        if (rv == CKR_CRYPTOKI_NOT_INITIALIZED)                                                    \
            slots_invalidate(SLOT_FINALIZED);                                                      \
        return rv;                                                                                 \
    }

#define CALL(name, ...) AROUND(name, , , __VA_ARGS__)

#define LOGIN(user_type, name, ...)                                                                \
    AROUND(name, struct login login = login_begin(hSession, user_type, &rv);,                      \
           login_end(&login, rv);, __VA_ARGS__)

#define KEYS(...) &(const struct key_use){__VA_ARGS__}
#define NO_KEY    KEYS(.used = CK_INVALID_HANDLE)

#define MECH(purpose, keys, name, ...)                                                             \
    AROUND(name,                                                                                   \
           bool unsure = false;                                                                    \
           WITH_POLICY(                                                                            \
               if (guard_concerns(policy, purpose, pMechanism))                                    \
                   rv = guard_mechanism(policy, #name, purpose, hSession, pMechanism, keys, &unsure);), \
           if (unsure && rv == CKR_OK)                                                             \
               rv = guard_created_key(policy, #name, hSession, pMechanism, keys);                  \
           if (rv == CKR_OK && pMechanism != NULL)                                                 \
               count_mechanism(pMechanism->mechanism);                                             \
           if (!((purpose) & ONE_CALL) && rv == CKR_OK) {                                          \
               struct session *session = session_find(hSession);                                   \
               if (policy != NULL)                                                                 \
                   guard_note_operation(session, purpose, pMechanism);                             \
               session_set_operating(session, pMechanism != NULL);                                 \
           }, __VA_ARGS__)

#define EDIT(object, template, count, name, ...)                                                   \
    AROUND(name,                                                                                   \
           WITH_POLICY(rv = guard_template(policy, #name, hSession, object, template, count);),    \
           note_key_changed(hSession);, __VA_ARGS__)

#define ALWAYS ((void *)1)
#define NEVER  NULL
#define IF_ENDED(output)                                                                           \
    if (rv != CKR_BUFFER_TOO_SMALL && (rv != CKR_OK || (output) != NULL))                          \
        session_set_operating(session_find(hSession), false);

#define STEP(output, name, ...) AROUND(name, , IF_ENDED(output), __VA_ARGS__)

#define DATA(purpose, data, data_bytes, output, name, ...)                                         \
    AROUND(name,                                                                                   \
           WITH_POLICY(rv = guard_digest_info(policy, functions, #name, purpose, hSession, data, data_bytes);), \
           IF_ENDED(output), __VA_ARGS__)

#define P11_UPTO 302
#include "functions.def"
/* clang-format on */

/* Each list of ours calls the target's list of the same number: what they hold may differ. */
#define LIST 0
#include "calls/list.def"
#define LIST 1
#include "calls/list.def"
#define LIST 2
#include "calls/list.def"
#define LIST 3
#include "calls/list.def"
#define LIST 4
#include "calls/list.def"

_Static_assert(TARGET_LISTS == 5, "one list.def for each");

static struct p11_functions *const own_lists[TARGET_LISTS] = {
    &list_0_functions, &list_1_functions, &list_2_functions, &list_3_functions, &list_4_functions};

struct p11_functions *own_list(unsigned number)
{
    if (number >= TARGET_LISTS)
        return NULL;
    own_lists[number]->version = target_list_version(number);
    return own_lists[number];
}

/* The tests proof-read the rows themselves. */
_Static_assert(offsetof(struct p11_functions, C_GetInterfaceList) == sizeof(CK_FUNCTION_LIST) &&
                   sizeof(CK_FUNCTION_LIST) == (FUNCTIONS_2_40 + 1) * sizeof(void *),
               "2.40 has 68 functions");
_Static_assert(offsetof(struct p11_functions, C_EncapsulateKey) ==
                   (FUNCTIONS_3_0 + 1) * sizeof(void *),
               "3.0 has 92 functions");
_Static_assert(sizeof(struct p11_functions) == (FUNCTIONS_3_2 + 1) * sizeof(void *),
               "3.2 has 104 functions");
