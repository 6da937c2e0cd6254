/* counters.h - what the proxy counts of itself, for p11-proxy stats to read; see statistics.h for the layout.
 *
 * Everything here may be called at any time by any thread, locks nothing, and does nothing where no counters are
 * kept: before C_Initialize, with x-statistics: off, in a forked child until its own C_Initialize.
 */
#ifndef P11_PROXY_COUNTERS_H
#define P11_PROXY_COUNTERS_H

#include "state/state.h"
#include "statistics.h"

/*
 * At the end of a C_Initialize that worked: makes the memfd and begins to count into it. flags: enum
 * statistics_flag. target: its path. No other thread is in counters_begin() or counters_end(). Keeps
 * errno. A system that refuses costs the counters and nothing else; a message at debug level says why.
 */
void counters_begin(uint64_t flags, const char *target);

/* At the end of a life: nothing is shown any more, and the descriptor is given back if it is still ours. */
void counters_end(void);

/* When we are unloaded, and nobody counts any more: gives back what they lay in. */
void counters_free(void);

/* NULL where none are kept. Valid as long as the process, though after counters_end() nobody reads it. */
static inline struct statistics *counters(void)
{
    return atomic_load_explicit(&state->counters, memory_order_acquire);
}

/* Those of a slot, NULL where none are kept. */
static inline struct statistics_slot *counters_of(const struct slot *slot)
{
    struct statistics *all = counters();
    return all != NULL && slot != NULL ? &all->slots[slot - state->slots] : NULL;
}

/* A slot is known from now on; its number in state->slots is its place. Expects state->lock held. */
void count_slot_locked(const struct slot *slot);

/* Its token said who it is: label as in CK_TOKEN_INFO, 32 bytes padded with blanks. */
void count_token(const struct slot *slot, const CK_UTF8CHAR label[32]);

/* A C_GenerateRandom for len_bytes came back from the target with rv. slot is NULL if not known. */
void count_call(const struct slot *slot, CK_ULONG len_bytes, CK_RV rv);

/* A C_GenerateRandom of the application that the pool did not serve is answered with rv. */
void count_draw(const struct slot *slot, CK_ULONG len_bytes, CK_RV rv);

/* What the health tests think of the slot's token changed. */
void count_suspicion(const struct slot *slot);

/* A call for asked_bytes was taken and lasted took_ns (negative: not timed), and what was learned of the slot's
 * token may have changed. Expects slot->manners_lock held. */
void count_time_locked(const struct slot *slot, size_t asked_bytes, int64_t took_ns);

/* A call that takes the mechanism was answered with CKR_OK. */
void count_mechanism_in(struct statistics *all, CK_MECHANISM_TYPE type);
static inline void count_mechanism(CK_MECHANISM_TYPE type)
{
    struct statistics *all = counters();
    if (all != NULL)
        count_mechanism_in(all, type);
}

/* What the policy refused (or would): report is number place of the reports of this life, REPORTS_MOST if it
 * found no place there. Expects state->reports.lock held. */
void count_refusal_locked(unsigned place, const struct report *report);

#endif
