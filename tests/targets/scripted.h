/* scripted.h - what the scripted target shares with the test that tells it what to do: a script and a log of calls.
 *
 * TARGET_SHARED names a file with a struct target_shared, which both map. So a test reads the log of a target that was
 * unloaded, and of forked children; and what it tells is heard in all of them. Without the variable the target
 * has such memory of its own. Its first script may be in TARGET_SCRIPT.
 */
#ifndef P11_PROXY_TEST_SCRIPTED_H
#define P11_PROXY_TEST_SCRIPTED_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cryptoki.h"
#include "functions.h"

enum {
    ARGUMENTS_MOST = 10,
    LOG_MOST = 64 * 1024,
    INITS_MOST = 16,
    SCRIPT_BYTES = 8 * 1024,
    STATEMENTS_MOST = 64,
    COMPLAINT_BYTES = 128,
    KEYRING_MECHANISMS = 2048,
    KEYRING_BYTES = 8192,
    KEYRING_MADE = 77 /* the handle of every key that is made */
};

/* The number of a function, as in functions.def. */
enum function {
#define P11_UPTO       302
#define ROW(name, ...) FUNCTION_##name,
#include "functions.def"
    FUNCTIONS
};

/* One call, as it was answered. */
struct target_call {
    enum function function;
    unsigned list; /* whose function it was: 240, 300 or 302 */
    CK_SESSION_HANDLE session;
    CK_ULONG bytes; /* asked for, or given as a seed */
    CK_RV rv;
    long tid;
    bool by_filler;
    atomic_bool is_written;
    uintptr_t arguments[ARGUMENTS_MOST];
};

/* What C_Initialize was given. */
struct target_init {
    void *pointer;
    CK_C_INITIALIZE_ARGS args; /* zero if the pointer is none to read at */
};

struct target_counts {
    atomic_uint good;
    atomic_uint failed;
};

/* Mechanisms and keys, which a test may change once the target is loaded. The target writes to it only if the script
 * says "keyring". */
struct keyring {
    CK_MECHANISM_TYPE mechanisms[KEYRING_MECHANISMS];
    CK_ULONG count;
    CK_ULONG grows;         /* by so many with each question for the number alone */
    CK_MECHANISM_INFO info; /* of every one */

    /* Every handle is a key like this. */
    CK_KEY_TYPE key_type;
    CK_ATTRIBUTE_TYPE attribute; /* beside CKA_KEY_TYPE it has this one */
    CK_BYTE value[KEYRING_BYTES];
    CK_ULONG value_bytes;

    CK_RV cancel_answer; /* of C_SessionCancel */

    /* "keyring" only, one thread at a time. */
    CK_BYTE data[KEYRING_BYTES]; /* that an operation was given by the last call */
    CK_ULONG data_bytes;
    CK_ULONG longest_bytes; /* of all calls */
    unsigned data_calls;
    unsigned calls; /* of what begins, makes or changes something */
    unsigned reads; /* of attributes */
    unsigned destroyed;
};

struct target_shared {
    /* It only grows while a target may read it; the upper bits of its end count how often it began anew. */
    char script[SCRIPT_BYTES];
    atomic_uint script_end;             /* modulo SCRIPT_BYTES */
    atomic_uint hits[STATEMENTS_MOST];  /* calls that met the statement of that number */
    atomic_uint released;               /* no statement before this one holds a call any more */
    atomic_uint held;                   /* calls that are being held */
    _Atomic(void (*)(void)) calls_back; /* for "call back" */

    atomic_ullong words;      /* made so far */
    atomic_uint finalize_met; /* calls that C_Finalize met in the target */
    atomic_uint complaints;
    char complaint[COMPLAINT_BYTES]; /* the first one */

    struct keyring keyring;
    struct target_counts counts[FUNCTIONS][2]; /* of callers, and of the filler */
    atomic_uint init_count;
    struct target_init inits[INITS_MOST];
    atomic_uint log_count; /* may be more than LOG_MOST */
    struct target_call log[LOG_MOST];
};

/* What targets share with this program that it loads from now on; NULL and errno if there is no memory. */
static inline struct target_shared *target_share(void)
{
    char path[32];
    int fd = memfd_create("target", 0);
    if (fd < 0 || ftruncate(fd, sizeof(struct target_shared)) != 0)
        return NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    setenv("TARGET_SHARED", path, 1);
    void *memory =
        mmap(NULL, sizeof(struct target_shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

#endif
