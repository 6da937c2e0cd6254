/* check_needs.c - mechanisms that common programs cannot do without, and the policy refuses. */
#include "check/check_parts.h"

#include <stdlib.h>

#include "policy/mechanisms.h"
#include "token.h"

enum { MECHANISMS_MOST = 4096, NAME_BYTES = 64 };

/* What programs really ask a token for: the digest is made before, by themselves. */
static const struct need {
    CK_MECHANISM_TYPE mechanism;
    const char *use;
} needs[] = {
    {CKM_RSA_PKCS, "OpenSSH, GnuTLS, NSS and OpenSSL's engine sign with RSA keys"},
    {CKM_RSA_PKCS_PSS, "TLS 1.3 is signed with RSA keys"},
    {CKM_ECDSA, "OpenSSH, GnuTLS, NSS and OpenSSL's engine sign with EC keys"},
    {CKM_ECDH1_DERIVE, "keys are agreed on with EC keys"},
};

/* One that the token has at all: what it lacks, nobody misses. */
static bool has(CK_FUNCTION_LIST *list, CK_SLOT_ID slot, CK_MECHANISM_TYPE wanted)
{
    CK_MECHANISM_TYPE *types = calloc(MECHANISMS_MOST, sizeof *types);
    CK_ULONG count = MECHANISMS_MOST;
    bool found = false;
    if (types != NULL && list->C_GetMechanismList(slot, types, &count) == CKR_OK) {
        for (CK_ULONG i = 0; i < count && !found; i++)
            found = types[i] == wanted;
    }
    free(types);
    return found;
}

void check_needs(struct findings *findings, const struct policy *policy, CK_FUNCTION_LIST *list,
                 CK_SLOT_ID slot, const char *label)
{
    findings_at(findings, "in C_GetMechanismList");
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        const struct policy_rule *rule = policy_mechanism(policy, needs[i].mechanism);
        char name[NAME_BYTES];
        if (rule == NULL || !has(list, slot, needs[i].mechanism))
            continue;
        mechanism_name(needs[i].mechanism, name, sizeof name);
        found(findings, MARK_NOTE, "policy", "%s:%u: %s %s %s of token '%s', with which %s",
              rule->file, rule->line, rule->text,
              policy_is_audit(policy) ? "would refuse" : "refuses", name, label, needs[i].use);
        advise(findings, "if they are to go on, refuse a digest or small keys instead, such as "
                         "SHA1, RSA keySize < 2048 or EC keySize < 256");
    }
}
