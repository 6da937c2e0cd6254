/* stats_table.c - counters for people. */
#include "stats/stats.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "policy/mechanisms.h"
#include "tool.h"

enum { MECHANISM_BYTES = 64, LABEL_WIDTH = 10 };

static void begin_line(FILE *out, int indent, const char *label)
{
    fprintf(out, "%*s%-*s", indent, "", LABEL_WIDTH + 2 - indent, label);
}

static void put_text_line(FILE *out, const char *label, const char *text)
{
    begin_line(out, 2, label);
    put_plain(out, text);
    putc('\n', out);
}

static void put_modes(FILE *out, const struct statistics *counters)
{
    begin_line(out, 2, "pool");
    if (!stats_has(counters, STATISTICS_POOL))
        fputs("off\n", out);
    else
        fprintf(out, "filled %s%s\n",
                stats_has(counters, STATISTICS_THREAD) ? "by a background thread"
                                                       : "on the application's own calls",
                stats_has(counters, STATISTICS_MIX_KERNEL) ? "; mixed with the kernel's bytes"
                                                           : "");
    begin_line(out, 2, "policy");
    fputs(stats_policy_word(counters), out);
    uint64_t refused = statistic_read(&counters->refused);
    if (refused > 0) {
        fputs(stats_has(counters, STATISTICS_AUDIT) ? "; would refuse " : "; refused ", out);
        stats_put_number(out, refused);
        fputs(refused == 1 ? " call" : " calls", out);
    }
    putc('\n', out);
}

/* Red, and a line of its own. */
static void put_trust(FILE *out, const struct statistics_slot *slot, bool coloured)
{
    uint64_t suspect = statistic_read(&slot->suspect);

    if (suspect == STATISTICS_TRUSTED)
        return;
    fputs(coloured ? "    \033[1;31m" : "    ", out);
    fputs(suspect == STATISTICS_SUSPECT
              ? "SUSPECT: its last random bytes failed the health test"
              : "FAILED the health test twice in a row: no random bytes until C_Finalize",
          out);
    fputs(coloured ? "\033[0m\n" : "\n", out);
}

static void put_pool(FILE *out, const struct statistics_pool *pool)
{
    uint64_t capacity = statistic_read(&pool->capacity_bytes);

    begin_line(out, 4, "pool");
    if (capacity == 0) {
        fputs("none\n", out);
        return;
    }
    stats_put_number(out, statistics_held(pool));
    fputs(" bytes held, ", out);
    stats_put_number(out, statistic_read(&pool->level_bytes));
    fputs(" wanted, ", out);
    stats_put_number(out, capacity);
    fputs(" at most", out);
    if (statistic_read(&pool->locked) != 0)
        fputs("; locked", out);
    if (statistic_read(&pool->droppable) != 0)
        fputs(statistic_read(&pool->locked) != 0 ? ", droppable" : "; droppable", out);
    putc('\n', out);
}

static void put_draws_line(FILE *out, const char *label, const char *source, uint64_t draws,
                           double all)
{
    begin_line(out, 4, label);
    stats_put_right(out, draws);
    fprintf(out, "  %5.1f %%  %s", all > 0 ? 100 * (double)draws / all : 0, source);
}

static void put_draws(FILE *out, const struct stats_draws *draws)
{
    double all = (double)draws->pool + (double)draws->token + (double)draws->failed;

    put_draws_line(out, "draws", "from the pool", draws->pool, all);
    stats_put_right(out, draws->pool_bytes);
    fputs(" bytes\n", out);
    put_draws_line(out, "", "by the token ", draws->token, all);
    stats_put_right(out, draws->token_bytes);
    fputs(" bytes\n", out);
    put_draws_line(out, "", "failed\n", draws->failed, all);
}

/* The same slot of the same proxy as it was a while ago. */
static const struct statistics_slot *slot_before(const struct stats_list *before,
                                                 const struct stats_proxy *proxy, uint64_t id,
                                                 int64_t *passed_ns)
{
    for (size_t i = 0; before != NULL && i < before->count; i++) {
        const struct stats_proxy *was = &before->proxies[i];
        if (was->pid != proxy->pid || was->device != proxy->device || was->inode != proxy->inode)
            continue;
        *passed_ns = proxy->read_ns - was->read_ns;
        for (uint64_t s = 0; s < statistic_read(&was->counters->slot_count); s++) {
            if (statistic_read(&was->counters->slots[s].id) == id)
                return &was->counters->slots[s];
        }
    }
    return NULL;
}

static uint64_t rate(uint64_t now, uint64_t was, int64_t passed_ns)
{
    double each_s =
        now > was && passed_ns > 0 ? (double)(now - was) * (double)NS_PER_S / (double)passed_ns : 0;

    return each_s < (double)INT64_MAX ? (uint64_t)(each_s + 0.5) : INT64_MAX;
}

static void put_rates(FILE *out, const struct stats_list *before, const struct stats_proxy *proxy,
                      const struct statistics_slot *slot, const struct stats_draws *draws)
{
    int64_t passed_ns = 0;
    const struct statistics_slot *was =
        slot_before(before, proxy, statistic_read(&slot->id), &passed_ns);

    if (was == NULL)
        return;
    struct stats_draws then = stats_draws(was);
    begin_line(out, 4, "rate");
    stats_put_right(out, rate(draws->pool, then.pool, passed_ns));
    fputs(" draws/s from the pool, ", out);
    stats_put_number(out, rate(draws->token, then.token, passed_ns));
    fputs(" by the token\n", out);
}

static void put_saved(FILE *out, const struct statistics_slot *slot)
{
    uint64_t saved_ns = stats_saved_ns(slot);

    begin_line(out, 4, "saved");
    if (saved_ns == 0)
        fputs("not known yet\n", out);
    else {
        stats_put_duration(out, saved_ns);
        fputs(" of waiting\n", out);
    }
}

static void put_drops(FILE *out, const struct statistics_pool *pool)
{
    const char *before = ": ";

    begin_line(out, 4, "dropped");
    stats_put_right(out, statistic_read(&pool->dropped_bytes));
    fputs(" bytes", out);
    for (unsigned cause = 0; cause < STATISTICS_DROPS; cause++) {
        uint64_t times = statistic_read(&pool->drops[cause]);
        if (statistics_drop_word(cause) == NULL || times == 0)
            continue;
        fprintf(out, "%s%s ", before, statistics_drop_word(cause));
        stats_put_number(out, times);
        before = ", ";
    }
    putc('\n', out);
}

static void put_refills(FILE *out, const struct statistics_pool *pool)
{
    uint64_t fills = statistic_read(&pool->fills);

    begin_line(out, 4, "refills");
    stats_put_right(out, fills);
    if (fills > 0) {
        fputs(" of ", out);
        stats_put_number(out, statistic_read(&pool->filled_bytes) / fills);
        fputs(" bytes on average", out);
    }
    fputs("\n", out);
    begin_line(out, 4, "missed");
    stats_put_right(out, statistic_read(&pool->missed));
    fputs(statistic_read(&pool->missed) == 1 ? " draw\n" : " draws\n", out);
    begin_line(out, 4, "expired");
    stats_put_right(out, statistic_read(&pool->expired_bytes));
    fputs(" bytes\n", out);
    put_drops(out, pool);
    begin_line(out, 4, "alarms");
    stats_put_right(out, statistic_read(&pool->alarms));
    fputs("\n", out);
}

static void put_slot(FILE *out, const struct stats_proxy *proxy, const struct statistics_slot *slot,
                     const struct stats_list *before, bool coloured)
{
    struct stats_draws draws = stats_draws(slot);

    fprintf(out, "  slot %" PRIu64, statistic_read(&slot->id));
    if (slot->token[0] != '\0') {
        fputs(", token '", out);
        put_plain(out, slot->token);
        putc('\'', out);
    }
    if (draws.pool + draws.token + draws.failed == 0 &&
        statistic_read(&slot->suspect) == STATISTICS_TRUSTED &&
        statistic_read(&slot->pool.capacity_bytes) == 0) {
        fputs(": no draws\n", out);
        return;
    }
    putc('\n', out);
    put_trust(out, slot, coloured);
    put_draws(out, &draws);
    put_rates(out, before, proxy, slot, &draws);
    put_pool(out, &slot->pool);
    if (statistic_read(&slot->pool.capacity_bytes) == 0)
        return;
    put_saved(out, slot);
    put_refills(out, &slot->pool);
}

static void put_elsewhere(FILE *out, const struct statistics_calls *calls)
{
    uint64_t draws = statistic_read(&calls->token_draws);
    uint64_t failed = statistic_read(&calls->failed_draws);

    if (draws == 0 && failed == 0)
        return;
    fputs("  sessions of unknown slots\n", out);
    begin_line(out, 4, "draws");
    stats_put_right(out, draws);
    fputs(" by the token, ", out);
    stats_put_number(out, failed);
    fputs(" failed\n", out);
}

static void put_refusals(FILE *out, const struct statistics *counters)
{
    uint64_t count = statistic_read(&counters->refusal_count);
    char name[MECHANISM_BYTES];

    if (count > 0)
        fprintf(out, "  %s\n",
                stats_has(counters, STATISTICS_AUDIT) ? "would be refused" : "refused");
    for (uint64_t i = 0; i < count; i++) {
        const struct statistics_refusal *refusal = &counters->refusals[i];
        uint64_t mechanism = statistic_read(&refusal->mechanism);
        begin_line(out, 4, "");
        stats_put_right(out, statistic_read(&refusal->times));
        fprintf(out, "  %s, by '",
                mechanism == STATISTICS_NO_MECHANISM
                    ? "a key"
                    : mechanism_name(mechanism, name, sizeof name));
        put_plain(out, refusal->rule);
        fputs("'\n", out);
        begin_line(out, 4, "");
        fprintf(out, "%*s  ", STATS_NUMBER_WIDTH, "");
        put_plain(out, refusal->file);
        fprintf(out, ":%" PRIu64 "\n", statistic_read(&refusal->line));
    }
}

static void put_mechanisms(FILE *out, const struct statistics *counters)
{
    uint64_t lost = statistic_read(&counters->mechanisms_lost);
    char name[MECHANISM_BYTES];

    for (size_t i = 0; i < STATISTICS_MECHANISMS; i++) {
        uint64_t type_plus_1 = statistic_read(&counters->mechanisms[i].type_plus_1);
        if (type_plus_1 == 0)
            break;
        if (i == 0)
            fputs("  mechanisms used\n", out);
        begin_line(out, 4, "");
        stats_put_right(out, statistic_read(&counters->mechanisms[i].calls));
        fprintf(out, "  %s\n", mechanism_name(type_plus_1 - 1, name, sizeof name));
    }
    if (lost == 0)
        return;
    begin_line(out, 4, "");
    stats_put_right(out, lost);
    fputs("  others\n", out);
}

static void put_proxy(FILE *out, const struct stats_proxy *proxy, const struct stats_list *before,
                      bool coloured)
{
    const struct statistics *counters = proxy->counters;

    fprintf(out, "%sprocess %ld", coloured ? "\033[1m" : "", (long)proxy->pid);
    if (proxy->program[0] != '\0') {
        fputs(" (", out);
        put_plain(out, proxy->program);
        putc(')', out);
    }
    fprintf(out, "%s, p11-proxy ", coloured ? "\033[0m" : "");
    put_plain(out, counters->version);
    fputs(" for ", out);
    stats_put_age(out, statistic_read(&counters->started_s));
    putc('\n', out);
    put_text_line(out, "module", counters->module);
    put_text_line(out, "target", counters->target);
    put_modes(out, counters);
    for (uint64_t i = 0; i < statistic_read(&counters->slot_count); i++)
        put_slot(out, proxy, &counters->slots[i], before, coloured);
    put_elsewhere(out, &counters->elsewhere);
    put_refusals(out, counters);
    put_mechanisms(out, counters);
}

void stats_table(FILE *out, const struct stats_list *list, const struct stats_list *before,
                 bool coloured)
{
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            putc('\n', out);
        put_proxy(out, &list->proxies[i], before, coloured);
    }
}
