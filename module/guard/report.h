/* report.h - tells the administrator what the policy refuses, or would refuse: once each, with a count. */
#ifndef P11_PROXY_REPORT_H
#define P11_PROXY_REPORT_H

#include "cryptoki.h"
#include "policy/policy.h"

/*
 * The answer to a call whose mechanism a rule denies: code, or CKR_OK if there is no rule or the policy only
 * audits. Counts it, and logs the first of each mechanism and rule. mechanism: NO_MECHANISM on import.
 * Any thread, no lock held.
 */
CK_RV guard_refuse(const struct policy *policy, const char *function, uint64_t mechanism,
                   const struct policy_rule *rule, CK_RV code);

/* At the end of C_Finalize: logs how often each was, and begins anew. */
void guard_reports_end(void);

/* Once, after memory_map(). */
void guard_reports_prepare(void);

#endif
