/* table.c - counters for people: a line for what belongs together, a column for each unit. */
#include "stats/stats.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "policy/tables.h"
#include "tool.h"

enum {
    MECHANISM_BYTES = 64,
    NUMBER_BYTES = 32, /* 20 digits, commas and NUL */
    NUMBER_WIDTH = 15,
    LABEL_WIDTH = 20
};

/* A slot, and the same one as it was a while ago. */
struct shown_slot {
    const struct statistics_slot *now;
    const struct statistics_slot *before; /* NULL: there are no rates */
    double passed_s;
};

/* 1234567 as 1,234,567. */
static const char *number(char text[NUMBER_BYTES], uint64_t value)
{
    char *at = text + NUMBER_BYTES - 1;
    unsigned digits = 0;
    *at = '\0';
    do {
        if (digits > 0 && digits % 3 == 0)
            *--at = ',';
        *--at = (char)('0' + value % 10);
        value /= 10;
        digits++;
    } while (value > 0);
    return at;
}

/* A column. */
static void put_number(FILE *out, bool known, uint64_t value)
{
    char text[NUMBER_BYTES];
    fprintf(out, "%*s", NUMBER_WIDTH, known ? number(text, value) : "");
}

/* "12.3 ms", "2.1 h". */
static void put_duration(FILE *out, double seconds)
{
    static const struct {
        const char *word;
        double seconds;
    } units[] = {{"d", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}};
    size_t unit = 0;
    while (unit < sizeof units / sizeof units[0] - 1 && seconds < units[unit].seconds)
        unit++;
    fprintf(out, "%.1f %s", seconds / units[unit].seconds, units[unit].word);
}

static void put_label(FILE *out, int indent, const char *label)
{
    fprintf(out, "%*s%-*s", indent, "", LABEL_WIDTH + 4 - indent, label);
}

/* What stands behind the numbers of some lines. */
static void put_note(FILE *out, const char *name, const struct statistics_slot *slot)
{
    const char *before = "   ";
    if (strcmp(name, "pool_draws") == 0) {
        double draws = (double)slot->pool.pool_draws + (double)slot->calls.token_draws +
                       (double)slot->calls.failed_draws;
        /* Rounded down, because 100 % means all. */
        unsigned tenths = (unsigned)(1000 * (double)slot->pool.pool_draws / draws);
        fprintf(out, "   %u.%u %% of all draws", tenths / 10, tenths % 10);
    }
    for (unsigned i = 0; strcmp(name, "dropped_bytes") == 0 && i < STATISTICS_DROPS; i++) {
        if (slot->pool.drops[i] == 0)
            continue;
        fprintf(out, "%s%s %" PRIu64, before, statistics_drop_words[i],
                statistic_read(&slot->pool.drops[i]));
        before = ", ";
    }
}

static uint64_t value_of(const struct statistics_row *row, const void *counts)
{
    return row != NULL ? statistics_number(row, counts) : 0;
}

/* A line for a count, bytes, or both, unless all of it is 0. Rows of one line follow each other, the count
 * first. */
static void put_lines(FILE *out, const struct statistics_row *row, const struct shown_slot *slot,
                      const void *now, const void *before)
{
    for (; row->name != NULL; row++) {
        const struct statistics_row *first = row, *count = row->unit[0] == '\0' ? row : NULL;
        if (count != NULL && row[1].name != NULL && strcmp(row[1].line, row->line) == 0)
            row++;
        const struct statistics_row *bytes = row != count ? row : NULL;
        uint64_t counted = value_of(count, now), byte_count = value_of(bytes, now);
        if (row->line[0] == '\0' || (counted == 0 && byte_count == 0))
            continue;
        put_label(out, 4, row->line);
        put_number(out, count != NULL, counted);
        if (before != NULL) {
            uint64_t was = value_of(count, before), more = counted > was ? counted - was : 0;
            put_number(out, count != NULL, (uint64_t)((double)more / slot->passed_s + 0.5));
        }
        if (bytes != NULL)
            put_number(out, true, byte_count);
        put_note(out, first->name, slot->now);
        putc('\n', out);
    }
}

static void put_saved(FILE *out, const struct statistics_pool *pool)
{
    if (pool->pool_draws == 0)
        return;
    put_label(out, 4, "saved");
    if (stats_saved_ns(pool) == 0)
        fputs("not known yet\n", out);
    else {
        fputs("about ", out);
        put_duration(out, (double)stats_saved_ns(pool) / NS_PER_S);
        fputs(" of waiting; a call to the token takes ", out);
        put_duration(out, (double)stats_call_ns(pool) / NS_PER_S);
        putc('\n', out);
    }
}

static void put_slot(FILE *out, const struct shown_slot *shown, bool coloured)
{
    const struct statistics_slot *slot = shown->now;
    fprintf(out, "  slot %" PRIu64, statistic_read(&slot->id));
    if (slot->token[0] != '\0')
        fprintf(out, ", token '%s'", slot->token);
    if (slot->pool.pool_draws + slot->calls.token_draws + slot->calls.failed_draws == 0) {
        fputs(": no draws\n", out);
        return;
    }
    putc('\n', out);
    if (slot->pool.trust != STATISTICS_TRUSTED)
        fprintf(out, "    %s%s%s\n", coloured ? "\033[1;31m" : "",
                slot->pool.trust == STATISTICS_SUSPECT
                    ? "SUSPECT: its last random bytes failed the health test"
                    : "FAILED the health test twice in a row: no random bytes until C_Finalize",
                coloured ? "\033[0m" : "");
    put_label(out, 4, "");
    fprintf(out, "%*s", NUMBER_WIDTH, "calls");
    if (shown->before != NULL)
        fprintf(out, "%*s", NUMBER_WIDTH, "calls/s");
    fprintf(out, "%*s\n", NUMBER_WIDTH, "bytes");
    put_lines(out, statistics_pool_rows, shown, &slot->pool,
              shown->before != NULL ? &shown->before->pool : NULL);
    put_lines(out, statistics_call_rows, shown, &slot->calls,
              shown->before != NULL ? &shown->before->calls : NULL);
    if (slot->pool.capacity_bytes == 0) {
        put_label(out, 4, "pool");
        fputs("none\n", out);
        return;
    }
    put_saved(out, &slot->pool);
    if (slot->pool.locked != 0 || slot->pool.droppable != 0) {
        put_label(out, 4, "memory");
        fprintf(out, "%s%s%s\n", slot->pool.locked != 0 ? "locked" : "",
                slot->pool.locked != 0 && slot->pool.droppable != 0 ? ", " : "",
                slot->pool.droppable != 0 ? "droppable" : "");
    }
}

static void put_refusals(FILE *out, const struct statistics *counters)
{
    char name[MECHANISM_BYTES];
    if (counters->refusal_count > 0)
        fprintf(out, "  %s\n",
                stats_has(counters, STATISTICS_AUDIT) ? "would be refused" : "refused");
    for (uint64_t i = 0; i < counters->refusal_count; i++) {
        const struct statistics_refusal *refusal = &counters->refusals[i];
        bool any = refusal->mechanism != STATISTICS_NO_MECHANISM;
        put_label(out, 4, any ? mechanism_name(refusal->mechanism, name, sizeof name) : "a key");
        put_number(out, true, refusal->times);
        fprintf(out, "   by '%s' in %s:%" PRIu64 "\n", refusal->rule, refusal->file,
                statistic_read(&refusal->line));
    }
}

static void put_mechanisms(FILE *out, const struct statistics *counters)
{
    char name[MECHANISM_BYTES];
    for (size_t i = 0; i < STATISTICS_MECHANISMS && counters->mechanisms[i].type_plus_1 != 0; i++) {
        if (i == 0)
            fputs("  mechanisms used\n", out);
        put_label(out, 4,
                  mechanism_name(counters->mechanisms[i].type_plus_1 - 1, name, sizeof name));
        put_number(out, true, counters->mechanisms[i].calls);
        putc('\n', out);
    }
    if (counters->other_mechanism_calls == 0)
        return;
    put_label(out, 4, "others");
    put_number(out, true, counters->other_mechanism_calls);
    putc('\n', out);
}

static void put_head(FILE *out, const struct counted_proxy *proxy, bool coloured)
{
    const struct statistics *counters = proxy->counters;
    uint64_t now_s = (uint64_t)time(NULL), started_s = counters->started_seconds;
    bool pool = stats_has(counters, STATISTICS_POOL);
    char text[NUMBER_BYTES];
    fprintf(out, "%sprocess %ld%s%s%s%s, p11-proxy %s for ", coloured ? "\033[1m" : "",
            (long)proxy->pid, proxy->program[0] != '\0' ? " (" : "", proxy->program,
            proxy->program[0] != '\0' ? ")" : "", coloured ? "\033[0m" : "", counters->version);
    put_duration(out, now_s > started_s ? (double)(now_s - started_s) : 1);
    fprintf(out, "\n  module    %s\n  target    %s\n  pool      %s%s\n  policy    %s",
            counters->module, counters->target,
            !pool                                    ? "off"
            : stats_has(counters, STATISTICS_THREAD) ? "filled by a background thread"
                                                     : "filled on the application's own calls",
            pool && stats_has(counters, STATISTICS_MIX_KERNEL) ? "; mixed with the kernel's bytes"
                                                               : "",
            stats_policy_word(counters));
    if (counters->refused > 0)
        fprintf(out, "; %s %s call%s",
                stats_has(counters, STATISTICS_AUDIT) ? "would refuse" : "refused",
                number(text, counters->refused), counters->refused == 1 ? "" : "s");
    putc('\n', out);
}

/* The same slot of the same proxy as it was a while ago. */
static struct shown_slot show_slot(const struct counted_proxy *proxy,
                                   const struct statistics_slot *slot,
                                   const struct counted_list *before)
{
    struct shown_slot shown = {.now = slot};
    for (size_t i = 0; before != NULL && i < before->count; i++) {
        const struct counted_proxy *was = &before->proxies[i];
        if (was->pid != proxy->pid || was->device != proxy->device || was->inode != proxy->inode)
            continue;
        shown.passed_s = (double)(proxy->read_ns - was->read_ns) / NS_PER_S;
        for (uint64_t s = 0; s < was->counters->slot_count && shown.passed_s > 0; s++) {
            if (was->counters->slots[s].id == slot->id)
                shown.before = &was->counters->slots[s];
        }
    }
    return shown;
}

void stats_table(FILE *out, const struct counted_list *list, const struct counted_list *before,
                 bool coloured)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct statistics *counters = list->proxies[i].counters;
        if (i > 0)
            putc('\n', out);
        put_head(out, &list->proxies[i], coloured);
        for (uint64_t s = 0; s < counters->slot_count; s++) {
            struct shown_slot shown = show_slot(&list->proxies[i], &counters->slots[s], before);
            put_slot(out, &shown, coloured);
        }
        if (counters->unknown.token_draws + counters->unknown.failed_draws > 0) {
            struct shown_slot shown = {.now = NULL};
            fputs("  sessions of unknown slots\n", out);
            put_lines(out, statistics_call_rows, &shown, &counters->unknown, NULL);
        }
        put_refusals(out, counters);
        put_mechanisms(out, counters);
    }
}
