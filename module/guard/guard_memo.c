/* guard_memo.c - remembers the last permitted call of each thread. */
#include "guard/guard_memo.h"

#include "guard/guard_parameters.h"

__thread struct guard_memo guard_memo;
_Atomic uint64_t guard_epoch = 1;

void guard_remember(const struct policy *policy, uint64_t epoch, enum purpose purpose,
                    CK_SESSION_HANDLE session, const CK_MECHANISM *mechanism,
                    const struct key_use *use)
{
    CK_MECHANISM_TYPE type = mechanism->mechanism;
    const struct session *entry = session_find(session);
    /* With audit, what is permitted may have to be counted again. */
    if (purpose == OVER_AT_ONCE || use->result != NULL || entry == NULL ||
        mechanism_names_more(type) || policy_is_audit(policy))
        return;
    guard_memo = (struct guard_memo){.epoch = epoch,
                                     .policy = policy,
                                     .session = session,
                                     .mechanism = type,
                                     .key = use->used,
                                     .purpose = purpose,
                                     .entry = entry,
                                     .hiding = mechanism_signs_digest_info(type) ? purpose : 0};
}
