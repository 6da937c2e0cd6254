/* check_learned.c - what the proxy learns of each token while it is drawn from for a moment. */
#include "check/check_parts.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "stats/stats.h"

enum { SLOTS_MOST = 64, DRAW_BYTES = 32, DRAWS_MOST = 100 * 1000 };

/* Long enough for a token of 20 ms to be asked for a few sizes. */
static const int64_t DRAW_NS = 300 * NS_PER_MS;

/* Without a login: a token that wants one is learned by those who log in. */
static void draw_for_a_moment(struct findings *findings, CK_FUNCTION_LIST *list, CK_SLOT_ID slot)
{
    CK_SESSION_HANDLE session;
    CK_BYTE bytes[DRAW_BYTES];
    CK_RV rv = list->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &session);
    int64_t until_ns = clock_exact_ns() + DRAW_NS;
    if (rv != CKR_OK)
        return;
    findings_at(findings, "in the proxy's C_GenerateRandom");
    for (unsigned i = 0; i < DRAWS_MOST && rv == CKR_OK && clock_exact_ns() < until_ns; i++)
        rv = list->C_GenerateRandom(session, bytes, sizeof bytes);
    explicit_bzero(bytes, sizeof bytes);
    findings_at(findings, "in the proxy's C_CloseSession");
    list->C_CloseSession(session);
}

static void find_learned(struct findings *findings, const struct statistics_slot *slot)
{
    uint64_t most_bytes = slot->pool.capacity_bytes / 2;
    if (slot->pool.trust != STATISTICS_TRUSTED) {
        found(findings, MARK_PROBLEM, "token",
              "token '%s': its random generator fails the health test, so C_GenerateRandom %s",
              slot->token, slot->pool.trust == STATISTICS_LATCHED ? "fails" : "may fail soon");
        advise(findings, "do not use its random bytes, nor keys that it generates; ask its maker");
    } else if (slot->pool.fills > 0)
        found(findings, MARK_OK, "token",
              "the pool asks token '%s' for %zu bytes in a call%s; 32 bytes alone cost %.3f ms",
              slot->token, (size_t)slot->pool.chunk_bytes,
              slot->pool.chunk_bytes >= most_bytes ? ""
                                              : ", since more was refused, was slow or not needed",
              (double)statistics_call_ns(&slot->pool, DRAW_BYTES) / NS_PER_MS);
}

void check_learned(struct findings *findings, CK_FUNCTION_LIST *list)
{
    CK_SLOT_ID slots[SLOTS_MOST] = {0};
    CK_ULONG count = SLOTS_MOST;
    struct stats_list own;
    pid_t pid = getpid();
    findings_at(findings, "in the proxy's C_GetSlotList");
    if (list->C_GetSlotList(CK_TRUE, slots, &count) != CKR_OK)
        return;
    for (CK_ULONG i = 0; i < count; i++)
        draw_for_a_moment(findings, list, slots[i]);
    stats_find(&own, &pid, 1, /* complaints= */ NULL);
    for (size_t i = 0; i < own.count; i++)
        for (size_t slot = 0; slot < own.proxies[i].counters->slot_count; slot++)
            find_learned(findings, &own.proxies[i].counters->slots[slot]);
    stats_list_free(&own);
}
