/* target.h - the module that we forward to. */
#ifndef P11_PROXY_TARGET_H
#define P11_PROXY_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "cryptoki.h"
#include "functions.h"

/*
 * Every function, always filled: the target's own; a stub that answers CKR_FUNCTION_NOT_SUPPORTED
 * where the target has none; or, before a target is loaded, stubs that answer
 * CKR_CRYPTOKI_NOT_INITIALIZED. Changes only in target_load().
 */
extern struct p11_functions target;

/*
 * Loads the module at path (absolute), if it is not the one loaded, and fills the table. The one
 * before stays loaded: its code may be in use.
 * Returns true; or false with one sentence in message (message_bytes long) that says what is wrong
 * with path, the table unchanged. Calls run one at a time: the caller sees to it.
 */
bool target_load(const char *path, char *message, size_t message_bytes);

/* When we are unloaded: closes all that were loaded, or lets them be. Nobody calls, and the table is not
 * used again. */
void target_unload(bool close);

/* True once a target is loaded. */
bool target_is_loaded(void);

/* True if the one that is loaded was loaded by that path. NULL is fine. */
bool target_is_loaded_from(const char *path);

/* The target's own list from C_GetFunctionList, which says the version we must claim; NULL before
 * target_load(). Read no more of it than 2.40 has, whatever it claims. */
const CK_FUNCTION_LIST *target_plain_list(void);

/* The target's own C_GetInterfaceList and C_GetInterface, NULL where it has none of its own. */
CK_RV (*target_interface_list(void))(CK_INTERFACE_PTR, CK_ULONG_PTR);
CK_RV (*target_interface(void))(CK_UTF8CHAR_PTR, CK_VERSION_PTR, CK_INTERFACE_PTR_PTR, CK_FLAGS);

/* Every entry answers CKR_FUNCTION_NOT_SUPPORTED. */
extern const struct p11_functions not_in_target;

#endif
