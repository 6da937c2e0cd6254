/* init_args.h - what the target is given as C_Initialize's argument. */
#ifndef P11_PROXY_INIT_ARGS_H
#define P11_PROXY_INIT_ARGS_H

#include <stdbool.h>

#include "cryptoki.h"

/* The standard's struct, and a NULL behind it: NSS's own has one member more, and reads it. */
struct own_args {
    CK_C_INITIALIZE_ARGS args;
    void *behind;
};

struct init_plan {
    void *args;         /* for the target: the caller's own pointer, or one of the structs below */
    bool may_fall_back; /* on any error ask again with fallback, and make no thread */
    void *fallback;     /* as args, without what a thread needs */
    bool thread_permitted; /* a thread of ours may call the target afterwards */
    struct own_args with_locking, with_reserved;
};

/*
 * Decides by what the caller passed (PKCS#11, "C_Initialize"), whether we would like to have a thread,
 * and a string that the target is configured to get as pReserved (or NULL: the caller's goes through,
 * unread). Reads the standard's struct only, never behind it. plan must stay where it is while in use.
 */
void init_plan(struct init_plan *plan, void *callers, bool want_thread, char *reserved);

#endif
