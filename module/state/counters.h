/* counters.h - what the module counts of itself, for p11-proxy stats to read; see statistics.h for the layout.
 *
 * What counts may be called at any time by any thread. Where no counters are shown it counts all the same, into memory
 * that no program reads: before C_Initialize, with x-statistics: off, in a forked child until its own C_Initialize.
 */
#ifndef P11_PROXY_COUNTERS_H
#define P11_PROXY_COUNTERS_H

#include "policy/policy.h"
#include "state/slots.h"
#include "statistics.h"

/* At the end of a C_Initialize that worked: every refusal is a first one again, and if the counters are to be shown, the
 * memfd is made and they go into it. flags: enum statistics_flag. target: its path. Keeps errno. A system that refuses
 * costs the counters and nothing else; a message at debug level says why. One thread at a time. */
void counters_begin(bool shown, uint64_t flags, const char *target);

/* At the end of C_Finalize: nothing is shown any more, and the descriptor is given back if it is still ours. */
void counters_end(void);

/* Where the slot counts. slot is NULL if it is not known. */
struct statistics_slot *counters_of(const struct slot *slot);

/* Records the label of the slot's token: 32 bytes padded with blanks, as in CK_TOKEN_INFO. */
void count_token(const struct slot *slot, const CK_UTF8CHAR label[32]);

/* A rule of the policy refused a mechanism (or would have). True if it is the rule's first refusal of that mechanism since
 * C_Initialize, counters or not; false for those after STATISTICS_REFUSALS others, which only the sum counts. */
bool count_refusal(uint64_t mechanism, const struct policy_rule *rule);

/* When the module is unloaded, and no thread counts any more. */
void counters_free(void);

#endif
