/* table.c - counters for people: a line for what belongs together, a column for each unit. */
#include "stats/stats.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "tool.h"

enum {
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
    char digits[NUMBER_BYTES], *to = text;
    int count = snprintf(digits, sizeof digits, "%" PRIu64, value);
    for (int i = 0; i <= count; i++) {
        if (i > 0 && i < count && (count - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    return text;
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

static void put_label(FILE *out, const char *label)
{
    fprintf(out, "    %-*s", LABEL_WIDTH, label);
}

static double draws_of(const struct statistics_slot *slot)
{
    return (double)slot->pool.pool_draws + (double)slot->calls.token_draws +
           (double)slot->calls.failed_draws;
}

/* What stands behind the numbers of some lines. */
static void put_note(FILE *out, const char *name, const struct statistics_slot *slot)
{
    if (strcmp(name, "pool_draws") == 0) {
        /* Rounded down, because 100 % means all. */
        unsigned tenths = (unsigned)(1000 * (double)slot->pool.pool_draws / draws_of(slot));
        fprintf(out, "   %u.%u %% of all draws", tenths / 10, tenths % 10);
    }
    for (unsigned i = 0; strcmp(name, "dropped_bytes") == 0 && i < POOL_DROP_CAUSES; i++) {
        if (slot->pool.drops[i] != 0)
            fprintf(out, "   %s %" PRIu64, statistics_drop_words[i],
                    statistic_read(&slot->pool.drops[i]));
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
        put_label(out, row->line);
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
    put_label(out, "saved");
    if (stats_saved_ns(pool) == 0) {
        fputs("not known yet\n", out);
        return;
    }
    fputs("about ", out);
    put_duration(out, (double)stats_saved_ns(pool) / NS_PER_S);
    fputs(" of waiting; a call to the token takes ", out);
    put_duration(out, (double)statistics_call_ns(pool) / NS_PER_S);
    putc('\n', out);
}

static void put_slot(FILE *out, const struct shown_slot *shown)
{
    const struct statistics_slot *slot = shown->now, *before = shown->before;
    const struct statistics_pool *pool = &slot->pool;
    bool any = draws_of(slot) > 0, labelled = slot->token[0] != '\0';
    fprintf(out, "  slot %" PRIu64 "%s%s%s%s\n", statistic_read(&slot->id),
            labelled ? ", token '" : "", slot->token, labelled ? "'" : "", any ? "" : ": no draws");
    if (!any)
        return;
    if (pool->trust != STATISTICS_TRUSTED)
        fprintf(out, "    %s%s%s\n", wants_colour(out) ? "\033[1;31m" : "",
                pool->trust == STATISTICS_SUSPECT
                    ? "SUSPECT: its last random bytes failed the health test"
                    : "FAILED the health test twice in a row: no random bytes until C_Finalize",
                wants_colour(out) ? "\033[0m" : "");
    put_label(out, "");
    fprintf(out, "%*s", NUMBER_WIDTH, "calls");
    if (before != NULL)
        fprintf(out, "%*s", NUMBER_WIDTH, "calls/s");
    fprintf(out, "%*s\n", NUMBER_WIDTH, "bytes");
    put_lines(out, statistics_pool_rows, shown, pool, before != NULL ? &before->pool : NULL);
    put_lines(out, statistics_call_rows, shown, &slot->calls,
              before != NULL ? &before->calls : NULL);
    if (pool->pool_draws > 0)
        put_saved(out, pool);
}

static void put_refusals(FILE *out, const struct statistics *counters)
{
    char name[MECHANISM_BYTES];
    if (counters->refusal_count > 0)
        fprintf(out, "  %s\n",
                stats_has(counters, STATISTICS_AUDIT) ? "would be refused" : "refused");
    for (uint64_t i = 0; i < counters->refusal_count; i++) {
        const struct statistics_refusal *refusal = &counters->refusals[i];
        put_label(out, stats_mechanism(refusal->mechanism, name));
        put_number(out, true, refusal->times);
        fprintf(out, "   by '%s' in %s:%" PRIu64 "\n", refusal->rule, refusal->file,
                statistic_read(&refusal->line));
    }
}

static void put_uses(FILE *out, const char *name, uint64_t calls)
{
    put_label(out, name);
    put_number(out, true, calls);
    putc('\n', out);
}

static void put_mechanisms(FILE *out, const struct statistics *counters)
{
    const struct statistics_mechanism *mechanism = counters->mechanisms;
    char name[MECHANISM_BYTES];
    if (mechanism->type_plus_1 != 0)
        fputs("  mechanisms used\n", out);
    for (size_t i = 0; i < STATISTICS_MECHANISMS && mechanism[i].type_plus_1 != 0; i++)
        put_uses(out, stats_mechanism(mechanism[i].type_plus_1 - 1, name), mechanism[i].calls);
    if (counters->other_mechanism_calls != 0)
        put_uses(out, "others", counters->other_mechanism_calls);
}

static void put_head(FILE *out, const struct counted_proxy *proxy)
{
    const struct statistics *counters = proxy->counters;
    uint64_t now_s = (uint64_t)time(NULL), started_s = counters->started_seconds;
    bool pool = stats_has(counters, STATISTICS_POOL), coloured = wants_colour(out);
    char text[NUMBER_BYTES];
    fprintf(out, "%sprocess %ld (%s)%s, p11-proxy %s for ", coloured ? "\033[1m" : "",
            (long)proxy->pid, proxy->program, coloured ? "\033[0m" : "", counters->version);
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

/* Slots keep their places while a process counts. */
static struct shown_slot show_slot(const struct counted_proxy *proxy,
                                   const struct counted_proxy *before, uint64_t place)
{
    const struct statistics *was = before != NULL ? before->counters : NULL;
    struct shown_slot shown = {.now = &proxy->counters->slots[place]};
    if (was != NULL && place < was->slot_count && was->slots[place].id == shown.now->id) {
        shown.before = &was->slots[place];
        shown.passed_s = (double)(proxy->read_ns - before->read_ns + 1) / NS_PER_S;
    }
    return shown;
}

/* The same proxy as it was a while ago. */
static const struct counted_proxy *find(const struct counted_list *list,
                                        const struct counted_proxy *proxy)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct counted_proxy *other = &list->proxies[i];
        if (other->pid == proxy->pid &&
            strcmp(other->counters->module, proxy->counters->module) == 0)
            return other;
    }
    return NULL;
}

void stats_table(FILE *out, const struct counted_list *list, const struct counted_list *before)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct counted_proxy *proxy = &list->proxies[i], *was = find(before, proxy);
        const struct statistics *counters = proxy->counters;
        fputs(i > 0 ? "\n" : "", out);
        put_head(out, proxy);
        for (uint64_t place = 0; place < counters->slot_count; place++) {
            struct shown_slot shown = show_slot(proxy, was, place);
            put_slot(out, &shown);
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
