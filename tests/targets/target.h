/* target.h - the scripted target's script, and a call on its way through it.
 *
 * A script is statements, each behind a ';' or on a line of its own. A later one counts for more than an earlier one.
 *
 *   statement = SETTING                                   see settings.def: "slots 2", "reuse handles"
 *             | "interfaces" NAMES                        what it offers, the default first: versions, "vendor",
 *                                                         "null-list", "null-name"; an "f" behind a version is
 *                                                         CKF_INTERFACE_FORK_SAFE. "2.40" if nothing is said
 *             | "plain" VERSION                           what C_GetFunctionList's list claims to be
 *             | "without" FUNCTIONS                       NULL in all lists; "all": each but C_GetFunctionList
 *             | CALL [CONDITION...] ":" EFFECT ["once" | "twice" | N "times"]
 *   CALL      = C_GenerateRandom and the like | "any"
 *   CONDITION = "over" BYTES | "under" BYTES | "in slot" ID | "by filler" | "by callers" | "read-only" | "locking"
 *   EFFECT    = "ok" | "fail" CODE                        fails without doing anything
 *             | "write" BYTES | "write half"              of what was asked for, and says CKR_OK
 *             | "stuck" | "repeat"                        the same byte, or the same bytes in each call
 *             | "call back"                               to the test's function, and then on
 *             | "last" TIME ["and" TIME "a byte"]         with a unit: ns, us, ms, s
 *             | "hold" | "hold first"                     when it has done its work, or before; until released
 *
 * How long a call lasts, whether it is held and what it does are settled apart: the last statement about each that fits
 * and is not over. What cannot be read ends the program.
 */
#ifndef P11_PROXY_TEST_TARGET_H
#define P11_PROXY_TEST_TARGET_H

#include "scripted.h"

#define NONE ULONG_MAX

enum effect {
    DOES_ITS_WORK,
    FAILS,
    WRITES_SOME,
    WRITES_HALF,
    IS_STUCK,
    REPEATS,
    CALLS_BACK,
    LASTS,
    HOLDS,
    HOLDS_FIRST
};

/* What is settled apart. */
enum matter { MATTER_WORK, MATTER_TIME, MATTER_HOLD, MATTERS };

enum { ANY_FUNCTION = FUNCTIONS };

struct statement {
    unsigned function;
    unsigned long over, under, slot; /* NONE: any */
    unsigned long by_filler, by_callers, read_only, locking;
    enum matter matter;
    enum effect effect;
    unsigned long value;      /* code, bytes or nanoseconds */
    unsigned long for_a_byte; /* nanoseconds */
    unsigned long times;
};

struct script {
    unsigned end; /* of the text that it was made of */
#define SETTING(field, words, value) unsigned long field;
#include "settings.def"
    const char *interfaces, *plain, *without;
    unsigned statement_count;
    struct statement statements[STATEMENTS_MOST];
    char text[SCRIPT_BYTES];
};

/* What a function has to do with operations and keys, by its row in functions.def. */
enum part { NO_PART, BEGINS, CHANGES, TAKES };
#define ALWAYS ((const CK_BYTE *)1) /* its row has no output, */
#define NEVER  ((const CK_BYTE *)2) /* and does not end the operation */

/* The purposes that leave an operation open: CKF_ENCRYPT to CKF_VERIFY_RECOVER, and those of messages. */
enum { OPERATIONS = 0x7f1e };

struct call {
    struct target_call seen;
    const char *subject; /* the first parameter's name */
    enum part part;
    CK_FLAGS purpose; /* 0: any */
    const CK_MECHANISM *mechanism;
    const CK_BYTE *output;
    struct { /* as functions.def names them */
        CK_OBJECT_HANDLE used;
        const CK_ATTRIBUTE *templates[2];
        CK_ULONG counts[2];
        CK_OBJECT_HANDLE *results[2];
        const CK_BYTE *data;
        CK_ULONG data_bytes;
    } with;

    /* Found out on the way. */
    const struct script *script;
    CK_SLOT_ID slot_id;                      /* NONE: none is named, or no session is */
    const struct statement *course[MATTERS]; /* NULL: nothing is said */
};

extern struct target_shared *shared;

/* Script: as it is now. Any thread; what it returns stays valid. The course: what it says of a call, in each matter. The
 * statements that decide are counted as met. */
const char *function_name(enum function function);
const struct script *script_now(void);
void script_settle(struct call *call);

/* What each function of the three lists does. */
CK_RV target_call(struct call *call);

/* Something that no module in front of this target may do. Noted once, for the test to find. */
void complain(const char *what, const struct call *call);

/* Life. Each call begins and ends; no other function needs to be called in a child of a fork. */
void life_call_begins(const struct call *call);
void life_call_ends(const struct call *call);
bool life_is_initialized(void);
void life_after_fork(void);
void life_is_unloaded(void);

/* Tokens, their sessions and logins. Any thread. */
enum { TOKENS_MOST = 16, LOGIN_NONE = 0, LOGIN_USER = 1, LOGIN_SO = 2 };
void token_find_subject(struct call *call); /* as far as it is known before the call */
CK_RV token_check_subject(const struct call *call);
unsigned token_login(CK_SLOT_ID slot_id);
/* The purposes that are open in a session, which must be one, after these ended and those began. */
CK_FLAGS session_operations(CK_SESSION_HANDLE session, CK_FLAGS end, CK_FLAGS begin);
void sessions_forget(void);
void sessions_forget_lock(void);

/* The lists: entries in them are exchanged. */
void lists_change(void);

/* Work: what a function does, work_C_Login() and so on, most of it in token.c and work.c; NULL if that is nothing. */
typedef CK_RV work_fn(struct call *call);
#define P11_UPTO       302
#define ROW(name, ...) work_fn work_##name __attribute__((weak));
#include "functions.def"
/* Of what begins an operation or makes a key, and of what goes on. */
work_fn begin_operation, continue_operation;

#endif
