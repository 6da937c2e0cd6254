/* keyring.h - what the keyring target has, what it answers, and what it saw. */
#ifndef P11_PROXY_TEST_KEYRING_H
#define P11_PROXY_TEST_KEYRING_H

#include "cryptoki.h"

enum { KEYRING_MECHANISMS = 2048, KEYRING_BYTES = 8192, KEYRING_OUTPUT = 16, KEYRING_MADE = 77 };

/* Exported as "keyring". One thread at a time. */
struct keyring {
    CK_MECHANISM_TYPE mechanisms[KEYRING_MECHANISMS];
    CK_ULONG count;
    CK_ULONG grows;         /* by so many with each question for the number alone */
    CK_MECHANISM_INFO info; /* of every one */

    /* Every handle is a key like this, an RSA key of 2048 bits unless told otherwise. */
    CK_KEY_TYPE key_type;
    CK_BBOOL key_on_token;
    CK_ATTRIBUTE_TYPE attribute; /* beside CKA_KEY_TYPE and CKA_TOKEN it has this one */
    CK_BYTE value[KEYRING_BYTES];
    CK_ULONG value_bytes;
    unsigned reads; /* calls of C_GetAttributeValue */

    /* Operations on data. What they have for output is KEYRING_OUTPUT bytes of 0x5a. */
    CK_BYTE data[KEYRING_BYTES]; /* of the last call */
    CK_ULONG data_bytes;
    CK_ULONG longest_bytes; /* of all calls */
    unsigned data_calls;

    /* C_SessionCancel. */
    CK_RV cancel_answer;
    CK_FLAGS cancelled;

    CK_RV close_answer;
    CK_ULONG sessions; /* opened so far: the next handle is 100 more */

    unsigned calls; /* of what begins, makes or changes something */
    unsigned destroyed;
};

#endif
