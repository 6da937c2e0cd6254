/* recording.h - what the recording target saw of the last call, and what it shall answer. */
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

#endif
