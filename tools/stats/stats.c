/* stats.c - p11-proxy stats: live counters of the processes that use the proxy; the table is for people. */
#include "stats/stats.h"
#include "tool.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "policy/tables.h"

#define DRAW_ANEW "\033[H\033[2J" /* at the top of an empty screen */

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_METRICS };

static struct {
    const char *format;
    bool watches;
    unsigned long period_s;
} stats = {.format = "table", .period_s = 1};

enum { NUMBER_WIDTH = 15, LABEL_WIDTH = 20 };

static void put_number(uint64_t value)
{
    printf("%*" PRIu64, NUMBER_WIDTH, value);
}

static void put_label(const char *label)
{
    printf("    %-*s", LABEL_WIDTH, label);
}

static double draws_of(const struct statistics_slot *slot)
{
    return (double)slot->pool_draws + (double)slot->token_draws + (double)slot->failed_draws;
}

/* What stands behind the numbers of some lines. */
static void put_note(const char *name, const struct statistics_slot *slot)
{
    if (strcmp(name, "pool_draws") == 0) {
        /* Rounded down, because 100 % means all. */
        unsigned tenths = (unsigned)(1000 * (double)slot->pool_draws / draws_of(slot));
        printf("   %u.%u %% of all draws", tenths / 10, tenths % 10);
    }
    for (unsigned i = 0; strcmp(name, "dropped_bytes") == 0 && i < POOL_DROP_CAUSES; i++) {
        if (slot->pool.drops[i] != 0)
            printf("   %s %" PRIu64, statistics_drop_words[i], slot->pool.drops[i]);
    }
}

/* A line for a count, bytes, or both, unless all of it is 0. Rows of one line follow each other, the count
 * first. */
static void put_lines(const struct statistics_slot *slot)
{
    for (const struct statistics_row *row = statistics_slot_rows; row->name != NULL; row++) {
        const struct statistics_row *first = row;
        bool has_count = row->unit[0] == '\0';
        if (has_count && row[1].name != NULL && strcmp(row[1].line, row->line) == 0)
            row++;
        bool has_bytes = row->unit[0] != '\0';
        uint64_t count = statistics_number(first, slot), bytes = statistics_number(row, slot);
        if (row->line[0] == '\0' || (count == 0 && bytes == 0))
            continue;
        put_label(row->line);
        if (has_count)
            put_number(count);
        else
            printf("%*s", NUMBER_WIDTH, "");
        if (has_bytes)
            put_number(bytes);
        put_note(first->name, slot);
        putchar('\n');
    }
}

static void put_slot(const struct statistics_slot *slot)
{
    bool any = draws_of(slot) > 0, labelled = slot->token[0] != '\0';
    printf("  slot %" PRIu64 "%s%s%s%s\n", slot->id, labelled ? ", token '" : "", slot->token,
           labelled ? "'" : "", any ? "" : ": no draws");
    if (!any)
        return;
    if (slot->trust != HEALTH_OK)
        printf("    %s\n",
               slot->trust == HEALTH_SUSPECT
                   ? "SUSPECT: its last random bytes failed the health test"
                   : "FAILED the health test twice in a row: no random bytes until C_Finalize");
    put_label("");
    printf("%*s%*s\n", NUMBER_WIDTH, "calls", NUMBER_WIDTH, "bytes");
    put_lines(slot);
}

static const char *refused_word(const struct statistics *counters)
{
    return (counters->flags & STATISTICS_AUDIT) != 0 ? "that would be refused" : "refused";
}

static void put_refusals(const struct statistics *counters)
{
    char name[64];
    if (counters->refusal_count > 0)
        printf("  %s\n", refused_word(counters));
    for (uint64_t i = 0; i < counters->refusal_count; i++) {
        const struct statistics_refusal *refusal = &counters->refusals[i];
        bool any = refusal->mechanism != NO_MECHANISM;
        put_label(any ? mechanism_name(refusal->mechanism, name, sizeof name) : "key");
        put_number(refusal->times);
        printf("   by '%s' in %s:%" PRIu64 "\n", refusal->rule, refusal->file, refusal->line);
    }
}

static void put_proxy(const struct counted_proxy *proxy)
{
    const struct statistics *counters = &proxy->counters;
    uint64_t now_s = (uint64_t)time(NULL), started_s = counters->started_seconds;
    uint64_t minutes = now_s > started_s ? (now_s - started_s) / 60 : 0;
    bool pool = (counters->flags & STATISTICS_POOL);
    printf("process %ld (%s), p11-proxy %s for %" PRIu64 ":%02u h\n", (long)proxy->pid,
           proxy->program, counters->version, minutes / 60, (unsigned)(minutes % 60));
    printf("  module    %s\n  target    %s\n  pool      %s%s\n  policy    %s", counters->module,
           counters->target,
           !pool                                   ? "off"
           : (counters->flags & STATISTICS_THREAD) ? "filled by a background thread"
                                                   : "filled on the application's own calls",
           pool && (counters->flags & STATISTICS_MIX_KERNEL) ? "; mixed with the kernel's bytes"
                                                             : "",
           stats_policy_word(counters));
    if (counters->refused > 0)
        printf("; calls %s: %" PRIu64, refused_word(counters), counters->refused);
    putchar('\n');
    for (uint64_t i = 0; i < counters->slot_count; i++)
        put_slot(&counters->slots[i]);
    put_refusals(counters);
}

static void put_table(const struct counted_list *list)
{
    for (const struct counted_proxy *proxy = list->first; proxy != NULL; proxy = proxy->next) {
        fputs(proxy != list->first ? "\n" : "", stdout);
        put_proxy(proxy);
    }
}

/* Whether stdout is a terminal that can move. */
static bool is_screen(void)
{
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
}

/* Of processes that the list only counts. */
static void put_notes(const struct counted_list *list)
{
    if (list->first == NULL)
        say("no process that may be read uses the proxy; not readable: %zu",
            list->processes[COUNTED_FORBIDDEN]);
    if (list->processes[COUNTED_STRANGE] > 0)
        say("with counters of another kind: %zu; name one to see why",
            list->processes[COUNTED_STRANGE]);
}

/* Finds the processes that are named, or all. False if one cannot be shown; complains: says why not. */
static bool find(struct counted_list *list, bool complains)
{
    static const char *const reasons[] = {
        [COUNTED_GONE] = "does not exist",
        [COUNTED_UNUSED] =
            "does not use the proxy, has x-statistics: off, or has closed its descriptors; "
            "it counts from its own C_Initialize to C_Finalize",
        [COUNTED_FORBIDDEN] = "cannot be read: it belongs to another user, or is privileged; "
                              "root can read it",
        [COUNTED_STRANGE] = "has counters that version " VERSION
                            " does not read; use the p11-proxy that came with the module",
    };
    bool all_shown = true;
    if (request.arguments[0] == NULL)
        counters_add_all(list);
    for (char **word = request.arguments; *word != NULL; word++) {
        pid_t pid = (pid_t)strtol(*word, NULL, 10);
        enum counted counted = counters_add(list, pid);
        all_shown = all_shown && counted == COUNTED;
        if (counted != COUNTED && complains)
            say("process %ld %s", (long)pid, reasons[counted]);
    }
    return all_shown;
}

/* Once, or until stdout is closed or none of the processes that were named can be shown. */
static int show(enum format format)
{
    static void (*const print[])(const struct counted_list *) = {put_table, stats_json,
                                                                 stats_metrics};
    bool redraws = stats.watches && format == FORMAT_TABLE && is_screen();
    bool has_names = request.arguments[0] != NULL;
    struct counted_list list = {0};
    bool all_shown = find(&list, /* complains= */ true);
    int code;
    do {
        fputs(redraws ? DRAW_ANEW : "", stdout);
        print[format](&list);
        fputs(stats.watches && !redraws && format == FORMAT_TABLE ? "\n" : "", stdout);
        code = end_of_output(all_shown ? EXIT_FINE : EXIT_BAD);
        if (!has_names && !(stats.watches && format == FORMAT_JSON))
            put_notes(&list);
        if (!stats.watches || ferror(stdout))
            break;
        sleep((unsigned)stats.period_s);
        counters_free(&list);
        find(&list, /* complains= */ false);
    } while (!has_names || list.first != NULL);
    counters_free(&list);
    return code;
}

static int run(void)
{
    int format = word_number(stats.format, "table, json, openmetrics");
    unsigned long number;
    if (format < 0)
        usage_error("--format is not table, json or openmetrics: '%s'", stats.format);
    if (stats.watches && format == FORMAT_METRICS)
        usage_error("--watch does not go with --format=openmetrics");
    for (char **word = request.arguments; *word != NULL; word++)
        if (!parse_number(*word, INT_MAX, &number))
            usage_error("no process has this number: '%s'", *word);
    return show((enum format)format);
}

const struct command stats_command = {
    .name = "stats",
    .summary = "show live counters of the processes that use the proxy",
    .usage =
        "p11-proxy stats [--json] [--format=FORMAT] [--watch[=SECONDS]] [PID]...\n\n"
        "Shows what the proxy counts in the processes PID, or in all that use it: draws served\n"
        "from the pool and by the token, fills, drops, refusals.\n"
        "You see your own processes; root sees those of all users.",
    .takes_arguments = true,
    .options = {{"format", "=FORMAT", "table (the default), json or openmetrics",
                 .text = &stats.format},
                {"json", "", "the same as --format=json", .text = &stats.format},
                {"watch", "[=SECONDS]", "again every second, or every 1 to 3600 seconds",
                 &stats.watches, .number = &stats.period_s, .most = 3600}},
    .exit_codes = "0 shown, or no process uses it; 1 a PID cannot be shown; 2 wrong usage.",
    .run = run,
};
