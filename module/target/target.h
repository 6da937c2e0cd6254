/* target.h - the module that calls are forwarded to: its function lists and interfaces. */
#ifndef P11_PROXY_TARGET_H
#define P11_PROXY_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/message.h"
#include "cryptoki.h"
#include "functions.h"

/* A target may have several lists whose functions differ: number 0 is the one from C_GetFunctionList, the others
 * come from its interfaces. A caller of our list of a number reaches the target's list of that number. */
enum { TARGET_LISTS = 5 };

/*
 * Every function of every list, always filled: the target's own; a stub that answers CKR_FUNCTION_NOT_SUPPORTED
 * where that list has none; or, before a target is loaded, a stub that answers CKR_CRYPTOKI_NOT_INITIALIZED.
 */
extern struct p11_functions target_lists[TARGET_LISTS];

/* The list for calls that the module makes itself. */
static inline const struct p11_functions *target(void)
{
    return &target_lists[0];
}

/*
 * Loads the module at path (absolute, a regular file), if it is not the one that is loaded, and fills the lists. A
 * target that was loaded before stays loaded, because its code may be in use.
 * Returns true; or false with one sentence in message that says what is wrong with path, and nothing changed. Calls run
 * one at a time: the caller sees to it.
 */
bool target_load(const char *path, struct message *message);

/* Reads the lists again: a target may replace entries in its C_Initialize. */
void target_refresh(void);

/* When the module is unloaded, no thread calls, and the process goes on: closes the one that is loaded. */
void target_unload(void);

/* What is loaded. handle is NULL before. */
typedef CK_RV (*get_interface)(CK_UTF8CHAR_PTR, CK_VERSION_PTR, CK_INTERFACE_PTR_PTR, CK_FLAGS);
extern struct target_loaded {
    void *handle;
    CK_INTERFACE *interfaces; /* from its own C_GetInterfaceList; */
    size_t interfaces_count;  /* 0 if it has none */
    get_interface interface;  /* its own C_GetInterface, NULL if it has none */
    const struct p11_functions *lists[TARGET_LISTS]; /* its own */
} target_loaded;

/* The version that the target's list of that number claims; of number 0 never more than 2.40, because a list that
 * comes from C_GetFunctionList ends there. 2.40 if it claims none, or nothing was loaded. */
CK_VERSION target_list_version(unsigned number);

/* The number of the list at that address, made known if it is new; TARGET_LISTS if there is no number left. */
unsigned target_list_number(const void *list);

/* True for an interface of the standard, whose list this module can stand for. */
bool target_is_standard(const CK_INTERFACE *interface);

#endif
