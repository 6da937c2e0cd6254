/* own.h - what the module does for each function: those that are written by hand, the OWN rows of functions.def, and
 * those that forward.c makes.
 *
 * Each takes, behind its own parameters, the target's list of the same number as the list of ours that the application
 * called through. They answer with the target's codes wherever the target is asked.
 */
#ifndef P11_PROXY_OWN_H
#define P11_PROXY_OWN_H

#include "state/slots.h"
#include "target/target.h"

#define ROW(name, ...) CK_RV own_##name(PARAMS(__VA_ARGS__), const struct p11_functions *functions);
#include "functions.def"

/* True if the target called this module from inside a call for random bytes, or on the filler's thread. Such a call
 * must not wait for calls or the filler to end, because it is made by one of them. */
bool is_recursive(void);

/*
 * Around C_Login and its like of that type of user, and C_Logout, of NO_USER. The SO cannot log in while there is a
 * read-only session, and the filler's is one, so that is suspended meanwhile. If login_begin() does not return CKR_OK,
 * that is the answer. login_end() makes invalid what was fetched in another login state, on all slots if the session is
 * not known.
 */
#define NO_USER ((CK_USER_TYPE)-1)
CK_RV login_begin(CK_SESSION_HANDLE session, CK_USER_TYPE user_type);
void login_end(CK_SESSION_HANDLE session, CK_USER_TYPE user_type, CK_RV rv);

/* Reads the configuration and loads the target if that was not done, so that the lists and interfaces can be told
 * before C_Initialize. Logs nothing if it fails, because C_Initialize will. False if the module has no memory. Any
 * thread. */
bool module_prepare(void);

/* Our lists, whose versions interfaces.c sets. */
extern struct p11_functions own_lists[TARGET_LISTS];

#endif
