/* check.h - what p11-proxy check looks at, one function for each subject. */
#ifndef P11_PROXY_CHECK_H
#define P11_PROXY_CHECK_H

#include <stdbool.h>

#include "check/report.h"
#include "config/config.h"
#include "policy/policy.h"
#include "token.h"

/* What the modules are loaded for. All is borrowed. */
struct checked {
    const struct config *config;
    const char *module_path; /* of the proxy, absolute; its last part may be a link */
};

/* What is configured and where, the log file, and files that others may write. */
void check_settings(const struct config *config);

/* A file that a user other than root and this one can write or replace, and the command that takes
 * that right away. what names it in the sentence. */
void check_writers(const char *about, const char *what, const char *path);

/* The policy, and what of it has no effect. */
void check_policy(const struct config *config);

/* The target's file. False: it need not be loaded, because something about it is wrong already. */
bool check_target(const struct checked *checked);

/* The target itself: interfaces, slots, tokens, random bytes. Loads it in a child. False: there is a problem. */
bool check_tokens(const struct checked *checked);

/* The proxy's file: whether it is there, and no link. */
bool check_proxy_file(const char *module_path);

/* The proxy before the target: whether it starts, and what it learns of the tokens. Likewise. */
void check_proxy(const char *module_path);

/* What protects the pool here, and what does not. */
void check_machine(const struct config *config);

/* Whether p11-kit knows the proxy and, if the target works, its tokens by another module. */
void check_p11_kit(const struct checked *checked, bool target_works);

#endif
