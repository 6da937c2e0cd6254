/* script.h - the language in which a test tells the scripted target what to do.
 *
 * A script is statements, each behind a ';' or on a line of its own. A later one counts for more than an earlier one.
 *
 *   statement = SETTING                                   see settings.def: "slots 2", "reuse handles"
 *             | "interfaces" NAMES | "plain" VERSION | "without" FUNCTIONS
 *             | CALL [CONDITION...] ":" STEP ["," "then" STEP]...
 *   CALL      = C_GenerateRandom and the like | "any"
 *   CONDITION = "over" BYTES | "under" BYTES | "in" "slot" ID | "by" "filler" | "by" "callers"
 *             | "read-only" | "read-write" | "locking" | "unlocked"
 *   STEP      = EFFECT ["once" | "twice" | N "times"]     for ever if it says nothing
 *   EFFECT    = "ok" | "fail" CODE                        fails without doing anything
 *             | "write" BYTES | "write" "half"            of what was asked for, and says CKR_OK
 *             | "stuck" | "repeat"                        the same byte, or the same bytes in each call
 *             | "call" "back"                             to the test's function, and then on
 *             | "last" TIME ["and" TIME "a" "byte"]       with a unit: ns, us, ms, s
 *             | "hold" | "hold" "first"                   when it has done its work, or before; until released
 *
 * How long a call lasts, whether it is held and what it does are settled apart: the last statement about each that fits.
 * What cannot be read ends the program.
 */
#ifndef P11_PROXY_TEST_SCRIPT_H
#define P11_PROXY_TEST_SCRIPT_H

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

struct step {
    enum effect effect;
    unsigned long value;      /* code, bytes or nanoseconds */
    unsigned long for_a_byte; /* nanoseconds */
    unsigned long upto;       /* it is over after so many calls that met the statement */
};

enum { STEPS_MOST = 4, ANY_FUNCTION = FUNCTIONS };

struct statement {
    unsigned function;
    unsigned long over;
    unsigned long under;
    unsigned long slot;      /* NONE: any */
    int by_filler;           /* -1: anybody */
    int read_write, locking; /* -1: no matter */
    enum matter matter;
    unsigned number;
    unsigned step_count;
    struct step steps[STEPS_MOST];
};

struct script {
    unsigned end; /* of the text that it was made of */
#define SETTING(field, words, value) unsigned long field;
#include "settings.def"
    const char *interfaces;
    const char *plain;
    const char *without;
    unsigned statement_count;
    struct statement statements[STATEMENTS_MOST];
    char text[SCRIPT_BYTES];
};

extern struct target_shared *shared;

/* The script as it is now. Any thread; what it returns stays valid. */
const struct script *script_now(void);

struct call;

/* What the script says of a call, in each matter. The statements that decide are counted as met. */
struct course {
    struct step steps[MATTERS];
    unsigned hold_number; /* of the statement that holds */
};
struct course script_course(const struct script *script, const struct call *call);

#endif
