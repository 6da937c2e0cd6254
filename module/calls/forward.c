/* forward.c - every function of every list of ours, made from functions.def. */
#include "calls/own.h"
#include "guard/guard.h"
#include "random/fill_session.h"
#include "state/sessions.h"
#include "state/settings.h"

/* clang-format off */
/*
 * own_C_Sign() and so on: each row as a function. The target is called through its table only, which has no empty entry.
 * rv is what is known before the target is asked; unless it is CKR_OK, that is the answer.
 */
#define OWN(name, ...) /* written by hand */
#define FORWARD(kind, needs, name, ...)                                                            \
    __attribute__((noinline)) CK_RV own_##name(PARAMS(__VA_ARGS__), const struct p11_functions *functions) \
    {                                                                                              \
        static const char function[] __attribute__((unused)) = #name;                              \
        CK_RV rv = CKR_OK;                                                                         \
        hSession = fill_session_hide(hSession);                                                    \
        struct in_call_place *place = in_call_place(hSession);                                     \
        unsigned calls = in_call_begin(place, hSession);                                           \
        BEFORE_##kind needs                                                                        \
        if (rv == CKR_OK)                                                                          \
            rv = functions->name(ARGS(__VA_ARGS__));                                               \
        in_call_end(place, calls);                                                                 \
        if (__builtin_expect(rv != CKR_OK, 0))                                                     \
            session_note_code(hSession, rv);                                                       \
        AFTER_##kind needs                                                                         \
        return rv;                                                                                 \
    }

#define BEFORE_CALL()
#define AFTER_CALL()

#define BEFORE_SEED()
#define AFTER_SEED()                                                                               \
    if (rv == CKR_OK)                                                                              \
        session_invalidate(hSession, SLOT_SEEDED);

#define BEFORE_LOGIN(user_type) rv = login_begin(hSession, user_type);
#define AFTER_LOGIN(user_type)  login_end(hSession, user_type, rv);

/* The policy, where one is set: without, this is all that it costs. */
#define BEFORE_WITH_POLICY(does)                                                                   \
    const struct policy *policy = policy_in_force();                                               \
    if (__builtin_expect(policy != NULL, 0)) {                                                     \
        does                                                                                       \
    }
#define GUARDED(...)                                                                               \
    &(const struct guarded_call){.policy = policy, .function = function, .session = hSession, __VA_ARGS__}

#define BEFORE_MECH(flag, ...)                                                                     \
    bool unsure = false;                                                                           \
    BEFORE_WITH_POLICY(                                                                            \
        if (guard_concerns(policy, flag, pMechanism))                                              \
            rv = guard_mechanism(GUARDED(.purpose = flag, .mechanism = pMechanism, __VA_ARGS__), &unsure);)
#define AFTER_MECH(flag, ...)                                                                      \
    if (unsure && rv == CKR_OK)                                                                    \
        rv = guard_created_key(GUARDED(.purpose = flag, .mechanism = pMechanism, __VA_ARGS__));    \
    if (!((flag) & ONE_CALL) && rv == CKR_OK) {                                                    \
        struct session *session = session_find(hSession);                                          \
        if (policy != NULL)                                                                        \
            guard_note_operation(session, flag, pMechanism);                                       \
        session_set_operating(session, pMechanism != NULL);                                        \
    }

#define BEFORE_EDIT(object, template, count)                                                       \
    BEFORE_WITH_POLICY(rv = guard_template(GUARDED(.used = object, .templates = {template}, .counts = {count}));)
#define AFTER_EDIT(object, template, count) session_invalidate(hSession, SLOT_KEY_CHANGED);

#define ALWAYS ((void *)1)
#define NEVER  NULL
#define BEFORE_STEP(output)
#define AFTER_STEP(output)                                                                         \
    if (rv != CKR_BUFFER_TOO_SMALL && (rv != CKR_OK || (output) != NULL))                          \
        session_set_operating(session_find(hSession), false);

#define BEFORE_DATA(flag, bytes, count, output)                                                    \
    BEFORE_WITH_POLICY(rv = guard_digest_info(GUARDED(.purpose = flag, .data = bytes, .data_bytes = count), functions);)
#define AFTER_DATA(flag, bytes, count, output) AFTER_STEP(output)

#include "functions.def"

/* Each list of ours calls the target's list of the same number: what they hold may differ. */
#define IN_LIST(number, name, ...)                                                                 \
    static CK_RV list_##number##_##name(PARAMS(__VA_ARGS__))                                       \
    {                                                                                              \
        return own_##name(ARGS(__VA_ARGS__), &target_lists[number]);                               \
    }
#define ROW(name, ...)                                                                             \
    IN_LIST(0, name, __VA_ARGS__)                                                                  \
    IN_LIST(1, name, __VA_ARGS__)                                                                  \
    IN_LIST(2, name, __VA_ARGS__)                                                                  \
    IN_LIST(3, name, __VA_ARGS__)                                                                  \
    IN_LIST(4, name, __VA_ARGS__)
#include "functions.def"

/* Filled to the end: a caller that knows an older version reads the part that it knows. */
struct p11_functions own_lists[TARGET_LISTS] = {
#define ROW(name, ...)                                                                             \
    [0].name = list_0_##name, [1].name = list_1_##name, [2].name = list_2_##name,                  \
    [3].name = list_3_##name, [4].name = list_4_##name,
#include "functions.def"
};
/* clang-format on */

_Static_assert(TARGET_LISTS == 5, "one entry for each");
