/* token.h - loads a PKCS#11 module and talks to it, as a small application would. */
#ifndef P11_PROXY_TOKEN_H
#define P11_PROXY_TOKEN_H

#include <p11-kit/pkcs11.h>
#include <stdbool.h>

#include "base/message.h"

#ifndef CKF_INTERFACE_FORK_SAFE /* p11-kit before 0.25 ends at PKCS#11 2.40 */
typedef struct CK_INTERFACE {
    CK_UTF8CHAR *pInterfaceName;
    CK_VOID_PTR pFunctionList;
    CK_FLAGS flags;
} CK_INTERFACE;
#endif

typedef CK_RV token_get_list(CK_FUNCTION_LIST **list);
typedef CK_RV token_get_interfaces(CK_INTERFACE *interfaces, CK_ULONG *count);

struct token_module {
    CK_FUNCTION_LIST *list;
    token_get_interfaces *interfaces; /* NULL: it has none */
};

/* Loads the module at path, for good. 0, or -EINVAL with a message that says why not. */
int token_load(struct token_module *module, const char *path, struct message *message);

/* Whether a module is in use in this process, by whatever has loaded and initialised it. */
bool token_is_started(const char *path);

/*
 * Initialises it, for threads if it can, with reserved (may be NULL) in pReserved. *locks is
 * whether it can. The answer is C_Initialize's.
 */
CK_RV token_start(const struct token_module *module, const char *reserved, bool *locks);

/* The number and p11-kit's words for it. Valid until the next call. */
const char *token_code(CK_RV rv);

/* Copies one of PKCS#11's texts, padded with blanks, as a string of at most bytes + 1 bytes that can be shown. */
void token_text(char *out, const CK_UTF8CHAR *text, size_t bytes);

/*
 * Runs work(context) in a child process, because that is where foreign modules are loaded; what they print goes
 * to stderr. Returns 0 if it returned, else its wait status, or -1 if it exited with 0 or there can be no child.
 */
typedef void child_work(void *context);
int in_child(child_work *work, void *context);

#endif
