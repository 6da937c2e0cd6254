/* internal.h - what the files of guard/ ask each other. Any thread, nothing is locked while the token is asked. */
#ifndef P11_PROXY_GUARD_INTERNAL_H
#define P11_PROXY_GUARD_INTERNAL_H

#include "guard/guard.h"

/*
 * The answer to a call whose mechanism a rule denies: code, or CKR_OK if there is no rule or the policy only
 * audits. Counts it, and logs the first of each mechanism and rule. mechanism: NO_MECHANISM on import.
 */
CK_RV guard_refuse(const struct policy *policy, const char *function, uint64_t mechanism,
                   const struct policy_rule *rule, CK_RV code);

/*
 * The rule that denies something that the mechanism's parameter names, such as the hash of RSA-PSS; NULL if none does.
 * Of the parameter it reads no more than ulParameterLen bytes, at any alignment. What is missing, too short, or of a
 * mechanism that is in no table names nothing: that is for the token to judge. Structures that the parameter points to
 * are read as the token would read them.
 */
const struct policy_rule *parameters_denied(const struct policy *policy, enum mechanism_use use,
                                            const CK_MECHANISM *mechanism);

/* The rule that denies the digest in a DigestInfo, which may have the padding of PKCS #1 v1.5 before it; NULL if none
 * does, or if data is something else or NULL. */
const struct policy_rule *digest_info_denied(const struct policy *policy, const CK_BYTE *data,
                                             CK_ULONG data_bytes);

struct known_key {
    const struct slot *slot; /* NULL: none, or nothing is to be remembered */
    CK_OBJECT_HANDLE handle;
    bool on_token;
    unsigned version; /* the slot's keys_version; of a session object session_keys_version */
    struct key_info info;
    uint64_t permitted_mechanism;   /* this one */
    enum purpose permitted_purpose; /* for that; 0: none */
};

/*
 * What the token says of a key, read on the caller's session with two calls, and once: it is remembered until
 * slot_invalidate() says that keys may have changed. False if the token does not say what type of key it is: it will
 * then say itself what is wrong with the handle.
 */
bool key_find(struct known_key *key, CK_SESSION_HANDLE session, CK_OBJECT_HANDLE handle);

/* Remembers that the policy permits the key to a mechanism for a purpose, and whether it does so now. The latter spares
 * a program that signs again and again with one key all other questions. */
void key_note_permitted(const struct known_key *key, uint64_t mechanism, enum purpose purpose);
bool key_is_permitted(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE handle, uint64_t mechanism,
                      enum purpose purpose);

/*
 * The rule that denies a key that is made of use's templates; NULL if none does. *code is then what the caller is
 * told. Every value of every attribute is judged, because tokens differ in which of two they take. Sets *unsure if no
 * template tells the size. Reads no attribute whose length is wrong.
 *   mechanism  whose rules count, NO_MECHANISM: none
 *   type       of the key, if the templates do not say it; NULL: not known
 */
const struct policy_rule *templates_denied(const struct policy *policy, uint64_t mechanism,
                                           const struct key_type *type, const struct key_use *use,
                                           bool *unsure, CK_RV *code);

/* Whether a template has anything that rules are about. */
bool template_tells_size(const CK_ATTRIBUTE *template, CK_ULONG count);

#endif
