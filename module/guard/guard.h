/* guard.h - the questions that the policy is asked around a call. None is asked where no policy is set. */
#ifndef P11_PROXY_GUARD_H
#define P11_PROXY_GUARD_H

#include "guard/purpose.h"
#include "policy/policy.h"

/* Whether guard_mechanism() must be asked. A NULL mechanism ends an operation and is not read. */
static inline bool guard_concerns(const struct policy *policy, enum purpose purpose,
                                  const CK_MECHANISM *mechanism)
{
    return mechanism != NULL &&
           ((purpose & TO_MAKE_KEYS) || policy_concerns(policy, mechanism->mechanism));
}

/*
 * Before the call: CKR_OK, or what the caller is told and the target never sees. Keys are read on the caller's session.
 * Sets *unsure if a key is made whose size no template tells: then guard_created_key() is to be asked after CKR_OK. Any
 * thread, no lock held, as all functions here.
 */
CK_RV guard_mechanism(const struct policy *policy, const char *function, enum purpose purpose,
                      CK_SESSION_HANDLE session, const CK_MECHANISM *mechanism,
                      const struct key_use *use, bool *unsure);

/* After CKR_OK. If a key is denied, all that the call made is destroyed again, its handles are taken back, and the
 * answer is no more CKR_OK. */
CK_RV guard_created_key(const struct policy *policy, const char *function,
                        CK_SESSION_HANDLE session, const CK_MECHANISM *mechanism,
                        const struct key_use *use);

/* Before a template makes an object without a mechanism, or changes one (object; CK_INVALID_HANDLE: none). */
CK_RV guard_template(const struct policy *policy, const char *function, CK_SESSION_HANDLE session,
                     CK_OBJECT_HANDLE object, const CK_ATTRIBUTE *template, CK_ULONG count);

/* Once, after memory_map(). */
void guard_prepare(void);

#endif
