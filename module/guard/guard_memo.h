/* guard_memo.h - the last call that a thread was permitted, so that the same call again is known in a few loads.
 *
 * A program that signs signs with one key again and again. What a memo says holds as long as its epoch does:
 * every call that may change what a handle stands for begins another, and so does the end of a life and its
 * policy. The memo belongs to one thread, the epoch lies in ordinary memory: a forked child goes on as its
 * parent would have.
 */
#ifndef P11_PROXY_GUARD_MEMO_H
#define P11_PROXY_GUARD_MEMO_H

#include "guard/guard_calls.h"
#include "state/sessions.h"

struct guard_memo {
    uint64_t epoch; /* 0: nothing is known */
    const struct policy *policy;
    CK_SESSION_HANDLE session;
    CK_MECHANISM_TYPE mechanism;
    CK_OBJECT_HANDLE key;
    enum purpose purpose; /* never OVER_AT_ONCE */
    const struct session *entry;
    unsigned hiding; /* purpose if the operation's data may be a DigestInfo, else 0 */
};

extern __thread struct guard_memo guard_memo;
extern _Atomic uint64_t guard_epoch; /* starts at 1 */

static inline uint64_t guard_epoch_now(void)
{
    return atomic_load_explicit(&guard_epoch, memory_order_acquire);
}

/* What was permitted may stand for something else from now on. Any thread. */
static inline void guard_forget(void)
{
    atomic_fetch_add(&guard_epoch, 1);
}

/*
 * Remembers that the call is permitted, where no rule said anything and the answer depends on nothing else: it makes
 * no key, and its parameter names no algorithm. epoch: from before the first question.
 */
void guard_remember(const struct policy *policy, uint64_t epoch, enum purpose purpose,
                    CK_SESSION_HANDLE session, const CK_MECHANISM *mechanism,
                    const struct key_use *use);

/* Whether it is, and the session knows already whether the operation's data has to be looked at. */
static inline bool guard_is_known(const struct policy *policy, enum purpose purpose,
                                  CK_SESSION_HANDLE session, const CK_MECHANISM *mechanism,
                                  CK_OBJECT_HANDLE key)
{
    const struct guard_memo *memo = &guard_memo;
    return purpose != OVER_AT_ONCE && mechanism != NULL && memo->epoch == guard_epoch_now() &&
           memo->policy == policy && memo->session == session && memo->key == key &&
           memo->mechanism == mechanism->mechanism && memo->purpose == purpose &&
           atomic_load_explicit(&memo->entry->handle, memory_order_relaxed) == session &&
           (atomic_load_explicit(&memo->entry->hiding, memory_order_relaxed) & purpose) ==
               memo->hiding;
}

#endif
