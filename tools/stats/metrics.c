/* metrics.c - counters for monitoring: OpenMetrics, which can be read as Prometheus' older text format too.
 *
 * Both formats want the samples of one name together, so each name goes over all processes. Only types
 * that both formats have are used.
 */
#include "stats/stats.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "policy/tables.h"

enum { MECHANISM_BYTES = 64 };

/* A name of which samples are written, and the process that they are of. */
struct family {
    FILE *out;
    const struct statistics_row *row;
    const struct counted_proxy *proxy;
};

typedef void put_samples(const struct family *family, const struct statistics *counters);

static void put_label(FILE *out, const char *name, const char *value)
{
    fprintf(out, ",%s=\"", name);
    for (; *value != '\0'; value++) {
        if (*value == '"' || *value == '\\')
            putc('\\', out);
        putc(*value, out); /* no line ends in there: the text is plain */
    }
    putc('"', out);
}

static void begin_sample(const struct family *family)
{
    fprintf(family->out, "p11_proxy_%s%s{pid=\"%ld\"", family->row->name,
            family->row->type == STATISTICS_COUNTER ? "_total" : "", (long)family->proxy->pid);
    put_label(family->out, "program", family->proxy->program);
    put_label(family->out, "module", family->proxy->counters->module);
}

static void begin_slot_sample(const struct family *family, const struct statistics_slot *slot)
{
    begin_sample(family);
    fprintf(family->out, ",slot=\"%" PRIu64 "\"", statistic_read(&slot->id));
    put_label(family->out, "token", slot->token);
}

static void end_sample(const struct family *family, uint64_t value)
{
    fprintf(family->out, "} %" PRIu64 "\n", value);
}

/* One for each slot; part is where in it the row is. */
static void put_slots(const struct family *family, const struct statistics *counters, size_t part)
{
    for (uint64_t i = 0; i < counters->slot_count; i++) {
        begin_slot_sample(family, &counters->slots[i]);
        end_sample(family,
                   statistics_number(family->row, (const char *)&counters->slots[i] + part));
    }
}

static void put_calls(const struct family *family, const struct statistics *counters)
{
    put_slots(family, counters, offsetof(struct statistics_slot, calls));
    begin_sample(family);
    put_label(family->out, "slot", "unknown");
    put_label(family->out, "token", "");
    end_sample(family, statistics_number(family->row, &counters->unknown));
}

static void put_pools(const struct family *family, const struct statistics *counters)
{
    put_slots(family, counters, offsetof(struct statistics_slot, pool));
}

static void put_process(const struct family *family, const struct statistics *counters)
{
    begin_sample(family);
    end_sample(family, statistics_number(family->row, counters));
}

static void put_info(const struct family *family, const struct statistics *counters)
{
    begin_sample(family);
    put_label(family->out, "target", counters->target);
    put_label(family->out, "version", counters->version);
    put_label(family->out, "pool", stats_has(counters, STATISTICS_POOL) ? "on" : "off");
    put_label(family->out, "thread", stats_has(counters, STATISTICS_THREAD) ? "on" : "off");
    put_label(family->out, "mix", stats_has(counters, STATISTICS_MIX_KERNEL) ? "kernel" : "none");
    put_label(family->out, "policy", stats_policy_word(counters));
    end_sample(family, 1);
}

static void put_saved(const struct family *family, const struct statistics *counters)
{
    for (uint64_t i = 0; i < counters->slot_count; i++) {
        uint64_t ns = stats_saved_ns(&counters->slots[i].pool);
        if (ns == 0)
            continue; /* not known */
        begin_slot_sample(family, &counters->slots[i]);
        fprintf(family->out, "} %.9f\n", (double)ns / NS_PER_S);
    }
}

static void put_drops(const struct family *family, const struct statistics *counters)
{
    for (uint64_t i = 0; i < counters->slot_count; i++) {
        for (unsigned cause = 0; cause < STATISTICS_DROPS; cause++) {
            begin_slot_sample(family, &counters->slots[i]);
            put_label(family->out, "cause", statistics_drop_words[cause]);
            end_sample(family, counters->slots[i].pool.drops[cause]);
        }
    }
}

static void put_refusals(const struct family *family, const struct statistics *counters)
{
    char name[MECHANISM_BYTES];
    for (uint64_t i = 0; i < counters->refusal_count; i++) {
        const struct statistics_refusal *refusal = &counters->refusals[i];
        bool any = refusal->mechanism != STATISTICS_NO_MECHANISM;
        begin_sample(family);
        put_label(family->out, "policy", stats_policy_word(counters));
        put_label(family->out, "mechanism",
                  any ? mechanism_name(refusal->mechanism, name, sizeof name) : "key");
        put_label(family->out, "rule", refusal->rule);
        put_label(family->out, "file", refusal->file);
        fprintf(family->out, ",line=\"%" PRIu64 "\"", statistic_read(&refusal->line));
        end_sample(family, refusal->times);
    }
}

static void put_mechanisms(const struct family *family, const struct statistics *counters)
{
    char name[MECHANISM_BYTES];
    for (size_t i = 0; i < STATISTICS_MECHANISMS && counters->mechanisms[i].type_plus_1 != 0; i++) {
        uint64_t type = counters->mechanisms[i].type_plus_1 - 1;
        begin_sample(family);
        put_label(family->out, "mechanism", mechanism_name(type, name, sizeof name));
        end_sample(family, counters->mechanisms[i].calls);
    }
}

/* Two series of one name and label are an error, and spoil all: dlmopen() may load one module twice. The
 * list is sorted by both. */
static bool is_second(const struct counted_list *list, size_t i)
{
    const struct counted_proxy *proxy = &list->proxies[i];
    return i > 0 && proxy[-1].pid == proxy->pid &&
           strcmp(proxy[-1].counters->module, proxy->counters->module) == 0;
}

static void put_family(FILE *out, const struct counted_list *list, const struct statistics_row *row,
                       put_samples *put)
{
    fprintf(out, "# TYPE p11_proxy_%s %s\n", row->name,
            row->type == STATISTICS_COUNTER ? "counter" : "gauge");
    if (row->unit[0] != '\0')
        fprintf(out, "# UNIT p11_proxy_%s %s\n", row->name, row->unit);
    fprintf(out, "# HELP p11_proxy_%s %s\n", row->name, row->help);
    for (size_t i = 0; i < list->count; i++) {
        if (!is_second(list, i))
            put(&(struct family){out, row, &list->proxies[i]}, list->proxies[i].counters);
    }
}

static void put_families(FILE *out, const struct counted_list *list,
                         const struct statistics_row *row, put_samples *put)
{
    for (; row->name != NULL; row++)
        put_family(out, list, row, put);
}

/* What is no row of statistics.def. */
static const struct {
    struct statistics_row row;
    put_samples *put;
} others[] = {
    {{"info", STATISTICS_GAUGE, "", "", "1 for each process that uses the proxy.", 0}, put_info},
    {{"saved_seconds", STATISTICS_GAUGE, "seconds", "",
      "Estimate of how much longer all draws would have waited without the pool.", 0},
     put_saved},
    {{"drops", STATISTICS_COUNTER, "", "", "How often the pool was emptied.", 0}, put_drops},
    {{"refusals", STATISTICS_COUNTER, "", "", "Refused calls by rule and mechanism.", 0},
     put_refusals},
    {{"mechanism_calls", STATISTICS_COUNTER, "", "",
      "Calls that name a mechanism and were answered with CKR_OK.", 0},
     put_mechanisms},
};

void stats_metrics(FILE *out, const struct counted_list *list)
{
    if (list->count > 0) {
        put_families(out, list, statistics_process_rows, put_process);
        put_families(out, list, statistics_pool_rows, put_pools);
        put_families(out, list, statistics_call_rows, put_calls);
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
            put_family(out, list, &others[i].row, others[i].put);
    }
    fputs("# EOF\n", out);
}
