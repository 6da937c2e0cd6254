/* forward.c - every function of every list of ours, made from functions.def. */
#include <string.h>

#include "calls/own.h"
#include "guard/digest_info.h"
#include "guard/guard.h"
#include "random/fill_session.h"
#include "state/counters.h"
#include "state/in_call.h"
#include "state/sessions.h"
#include "state/settings.h"

/* When an operation with this output argument is over: at once if there is none. */
#define ALWAYS ((void *)1)

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

#include "calls/forwarders.def"

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

/* The distribution's header proof-reads the first 68 rows: their types and their order. */
#define P11_UPTO 240
#define ROW(name, ...)                                                                             \
    _Static_assert(__builtin_types_compatible_p(__typeof__(((struct p11_functions *)0)->name),     \
                                                __typeof__(((CK_FUNCTION_LIST *)0)->name)),        \
                   "p11-kit's header has other parameters for " #name);                            \
    _Static_assert(offsetof(struct p11_functions, name) == offsetof(CK_FUNCTION_LIST, name),       \
                   "p11-kit's header has another place for " #name);
#include "functions.def"

_Static_assert(offsetof(struct p11_functions, C_GetInterfaceList) == sizeof(CK_FUNCTION_LIST) &&
                   sizeof(CK_FUNCTION_LIST) == (FUNCTIONS_2_40 + 1) * sizeof(void *),
               "2.40 has 68 functions");
_Static_assert(offsetof(struct p11_functions, C_EncapsulateKey) ==
                   (FUNCTIONS_3_0 + 1) * sizeof(void *),
               "3.0 has 92 functions");
_Static_assert(sizeof(struct p11_functions) == (FUNCTIONS_3_2 + 1) * sizeof(void *),
               "3.2 has 104 functions");
