/* recording.h - what the recording target saw of the last call, and what it shall answer; and how its functions
 * are told of a call. */
#ifndef P11_PROXY_TEST_RECORDING_H
#define P11_PROXY_TEST_RECORDING_H

#include <stdint.h>

#include "cryptoki.h"

enum { ARGUMENTS_MOST = 10 };

/* Exported as "recording". One thread at a time. */
struct recording {
    const char *function; /* that was called last, NULL if none was */
    unsigned calls;       /* since the test set it to 0 */
    unsigned count;       /* of arguments */
    uintptr_t arguments[ARGUMENTS_MOST];
    CK_RV answer;
};

enum kind { /* of an argument, by its type */
            KIND_NUMBER,
            KIND_BYTES,
            KIND_NUMBERS,
            KIND_MECHANISM,
            KIND_ATTRIBUTES,
            KIND_ANYTHING, /* CK_VOID_PTR */
            KIND_OTHER     /* another pointer */
};

struct call {
    const char *function;
    unsigned count;
    const uintptr_t *arguments;
    const char *const *names;
    const enum kind *kinds;
};

/* What every function does, but those that lead to lists. In answering.c. */
CK_RV recording_answer(const struct call *call);

#endif
