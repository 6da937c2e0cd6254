/* check_parts.h - what p11-proxy check looks at, one function a subject. */
#ifndef P11_PROXY_CHECK_PARTS_H
#define P11_PROXY_CHECK_PARTS_H

#include <stdbool.h>

#include "config/config.h"
#include "check/findings.h"
#include "policy/policy.h"
#include "token.h"

/* What is configured and where, and files that others may write. */
void check_settings(struct findings *findings, const struct config *config);

/* A file that somebody else than root and this user can write or replace, and what takes that right
 * away. what names it in the sentence. */
void check_writers(struct findings *findings, const char *about, const char *what,
                   const char *path);

/* The policy, and what of it has no effect. */
void check_policy(struct findings *findings, const struct config *config);

/* The target's file. False: it need not be loaded, since something about it is wrong already. */
bool check_target(struct findings *findings, const struct config *config, const char *module_path);

/* The target itself: interfaces, slots, tokens, and what random bytes take. Loads it in a child. */
void check_tokens(struct findings *findings, const struct config *config);

/* What the policy (may be NULL) refuses of the token's mechanisms although common programs need it. */
void check_needs(struct findings *findings, const struct policy *policy, CK_FUNCTION_LIST *list,
                 CK_SLOT_ID slot, const char *label);

/* The proxy before the target: whether an application would get it started. Likewise. */
void check_start(struct findings *findings, const char *module_path);

/* What the proxy, which has been started, learns of the tokens. Draws a moment from each, and waits for no login. */
void check_learned(struct findings *findings, CK_FUNCTION_LIST *list);

/* What protects the pool here, and what does not. */
void check_machine(struct findings *findings, const struct config *config);

/* Whether p11-kit knows the proxy, and the target beside it. config may be NULL. */
void check_p11_kit(struct findings *findings, const struct config *config, const char *module_path);

/* Whether the p11-kit that programs get looks in these places. Loads its library in a child. */
void check_p11_kit_paths(struct findings *findings, const struct config_places *places);

#endif
