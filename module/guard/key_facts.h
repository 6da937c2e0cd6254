/* key_facts.h - what rules ask of a key: its type, its size, its curve; from a template or from the token. */
#ifndef P11_PROXY_KEY_FACTS_H
#define P11_PROXY_KEY_FACTS_H

#include "cryptoki.h"
#include "policy/policy.h"

/* All that a rule can ask. No secret, and small enough to remember. */
struct key_facts {
    struct key_info info;
    bool on_token;
};

/*
 * Reads a key's facts on the caller's session, with two calls to the target. False if the token does not
 * say what type of key it is: it will then say itself what is wrong with the handle. Nothing is locked.
 */
bool key_facts_read(struct key_facts *facts, CK_SESSION_HANDLE session, CK_OBJECT_HANDLE key);

/* Adds to *facts what a template says; reads nothing whose length is wrong. NULL says nothing. */
void key_facts_add(struct key_facts *facts, const CK_ATTRIBUTE *template, CK_ULONG count);

/* Nothing is known, but the type of key that a mechanism generates (NO_MECHANISM: none). */
struct key_facts key_facts_of(uint64_t generating_mechanism);

/* Whether a template makes a key, and not a certificate or something else. */
bool template_is_key(const CK_ATTRIBUTE *template, CK_ULONG count);

/*
 * The rule that denies such a key to the mechanism (NO_MECHANISM: to any), NULL if none does.
 * *code is then what the caller is told.
 */
const struct policy_rule *key_facts_denied(const struct policy *policy, uint64_t mechanism,
                                           const struct key_facts *facts, CK_RV *code);

/* Whether rules could say more of this key if more were known. */
bool key_facts_are_enough(const struct key_facts *facts);

#endif
