/* key.h - what rules ask of a key: its type, its size, its curve; from templates, or from the token. */
#ifndef P11_PROXY_KEY_H
#define P11_PROXY_KEY_H

#include "cryptoki.h"
#include "policy/policy.h"

/*
 * What the token says of a key, read on the caller's session with two calls, and once: it is remembered until
 * slot_invalidate() says that keys may have changed. False if the token does not say what type of key it is: it will
 * then say itself what is wrong with the handle. Any thread, nothing is locked while the token is asked.
 */
bool key_find(struct key_info *key, CK_SESSION_HANDLE session, CK_OBJECT_HANDLE handle);

/*
 * The rule that denies a key that is made of one or two templates; NULL if none does. *code is then what the caller is
 * told. Every value of every attribute is judged, because tokens differ in which of two they take. Sets *unsure if no
 * template tells the size. Reads no attribute whose length is wrong.
 *   mechanism  whose rules count, NO_MECHANISM: none
 *   type       of the key, if the templates do not say it; NULL: not known
 */
const struct policy_rule *templates_denied(const struct policy *policy, uint64_t mechanism,
                                           const struct key_type *type,
                                           const CK_ATTRIBUTE *const templates[2],
                                           const CK_ULONG counts[2], bool *unsure, CK_RV *code);

/* Whether a template makes a key, and not a certificate or something else. */
bool template_is_key(const CK_ATTRIBUTE *template, CK_ULONG count);

/* Whether a template has anything that rules are about. */
bool template_tells_size(const CK_ATTRIBUTE *template, CK_ULONG count);

/* Once, after memory_map(). */
void key_cache_prepare(void);

#endif
