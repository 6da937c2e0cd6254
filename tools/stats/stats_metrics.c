/* stats_metrics.c - counters for monitoring: OpenMetrics, and readable as Prometheus' older text
 * format too.
 *
 * Both want the samples of one name together, so it goes name by name over all processes. Types are
 * those that both know.
 */
#include "stats/stats.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "policy/mechanisms.h"

enum { MECHANISM_BYTES = 64 };

struct family;

typedef void put_samples(FILE *out, const struct family *family, const struct stats_proxy *proxy);

struct family {
    const char *name;
    const char *type;
    const char *unit; /* or NULL; name ends with it */
    const char *help;
    put_samples *put;
    size_t offset; /* for some, of the counter within what put looks at */
};

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

static void put_number_label(FILE *out, const char *name, uint64_t value)
{
    fprintf(out, ",%s=\"%" PRIu64 "\"", name, value);
}

static void begin_sample(FILE *out, const struct family *family, const struct stats_proxy *proxy)
{
    fprintf(out, "%s%s{pid=\"%ld\"", family->name,
            strcmp(family->type, "counter") == 0 ? "_total" : "", (long)proxy->pid);
    put_label(out, "program", proxy->program);
    put_label(out, "module", proxy->counters->module);
}

static void begin_slot_sample(FILE *out, const struct family *family,
                              const struct stats_proxy *proxy, const struct statistics_slot *slot)
{
    begin_sample(out, family, proxy);
    put_number_label(out, "slot", statistic_read(&slot->id));
    put_label(out, "token", slot->token);
}

static void end_sample(FILE *out, uint64_t value)
{
    fprintf(out, "} %" PRIu64 "\n", value);
}

static const statistic *counter_at(const void *counters, size_t offset)
{
    return (const statistic *)((const char *)counters + offset);
}

static void put_info(FILE *out, const struct family *family, const struct stats_proxy *proxy)
{
    const struct statistics *counters = proxy->counters;

    begin_sample(out, family, proxy);
    put_label(out, "target", counters->target);
    put_label(out, "version", counters->version);
    put_label(out, "pool", stats_has(counters, STATISTICS_POOL) ? "on" : "off");
    put_label(out, "thread", stats_has(counters, STATISTICS_THREAD) ? "on" : "off");
    put_label(out, "mix", stats_has(counters, STATISTICS_MIX_KERNEL) ? "kernel" : "none");
    put_label(out, "policy", stats_policy_word(counters));
    end_sample(out, 1);
}

/* offset: in struct statistics. */
static void put_of_process(FILE *out, const struct family *family, const struct stats_proxy *proxy)
{
    begin_sample(out, family, proxy);
    end_sample(out, statistic_read(counter_at(proxy->counters, family->offset)));
}

static void put_refused(FILE *out, const struct family *family, const struct stats_proxy *proxy)
{
    begin_sample(out, family, proxy);
    put_label(out, "policy", stats_policy_word(proxy->counters));
    end_sample(out, statistic_read(&proxy->counters->refused));
}

static void put_refusals(FILE *out, const struct family *family, const struct stats_proxy *proxy)
{
    const struct statistics *counters = proxy->counters;
    char name[MECHANISM_BYTES];

    for (uint64_t i = 0; i < statistic_read(&counters->refusal_count); i++) {
        const struct statistics_refusal *refusal = &counters->refusals[i];
        uint64_t mechanism = statistic_read(&refusal->mechanism);
        begin_sample(out, family, proxy);
        put_label(out, "policy", stats_policy_word(counters));
        put_label(out, "mechanism",
                  mechanism == STATISTICS_NO_MECHANISM
                      ? "key"
                      : mechanism_name(mechanism, name, sizeof name));
        put_label(out, "rule", refusal->rule);
        put_label(out, "file", refusal->file);
        put_number_label(out, "line", statistic_read(&refusal->line));
        end_sample(out, statistic_read(&refusal->times));
    }
}

static void put_mechanisms(FILE *out, const struct family *family, const struct stats_proxy *proxy)
{
    char name[MECHANISM_BYTES];

    for (size_t i = 0; i < STATISTICS_MECHANISMS; i++) {
        const struct statistics_mechanism *mechanism = &proxy->counters->mechanisms[i];
        uint64_t type_plus_1 = statistic_read(&mechanism->type_plus_1);
        if (type_plus_1 == 0)
            break;
        begin_sample(out, family, proxy);
        put_label(out, "mechanism", mechanism_name(type_plus_1 - 1, name, sizeof name));
        end_sample(out, statistic_read(&mechanism->calls));
    }
}

/* offset: in struct statistics_slot. */
static void put_of_slots(FILE *out, const struct family *family, const struct stats_proxy *proxy)
{
    for (uint64_t i = 0; i < statistic_read(&proxy->counters->slot_count); i++) {
        const struct statistics_slot *slot = &proxy->counters->slots[i];
        begin_slot_sample(out, family, proxy, slot);
        end_sample(out, statistic_read(counter_at(slot, family->offset)));
    }
}

/* offset: in struct statistics_calls; with a source, "token", if the pool is another. */
static void put_calls(FILE *out, const struct family *family, const struct stats_proxy *proxy,
                      const char *source)
{
    const struct statistics_calls *elsewhere = &proxy->counters->elsewhere;

    for (uint64_t i = 0; i < statistic_read(&proxy->counters->slot_count); i++) {
        const struct statistics_slot *slot = &proxy->counters->slots[i];
        begin_slot_sample(out, family, proxy, slot);
        if (source != NULL)
            put_label(out, "source", source);
        end_sample(out, statistic_read(counter_at(&slot->calls, family->offset)));
    }
    begin_sample(out, family, proxy);
    put_label(out, "slot", "unknown");
    put_label(out, "token", "");
    if (source != NULL)
        put_label(out, "source", source);
    end_sample(out, statistic_read(counter_at(elsewhere, family->offset)));
}

static void put_of_calls(FILE *out, const struct family *family, const struct stats_proxy *proxy)
{
    put_calls(out, family, proxy, NULL);
}

/* By the pool and by the token; offset as for put_calls(). */
static void put_by_source(FILE *out, const struct family *family, const struct stats_proxy *proxy)
{
    for (uint64_t i = 0; i < statistic_read(&proxy->counters->slot_count); i++) {
        const struct statistics_slot *slot = &proxy->counters->slots[i];
        struct stats_draws draws = stats_draws(slot);
        begin_slot_sample(out, family, proxy, slot);
        put_label(out, "source", "pool");
        end_sample(out, family->offset == offsetof(struct statistics_calls, token_draws)
                            ? draws.pool
                            : draws.pool_bytes);
    }
    put_calls(out, family, proxy, "token");
}

static void put_held(FILE *out, const struct family *family, const struct stats_proxy *proxy)
{
    for (uint64_t i = 0; i < statistic_read(&proxy->counters->slot_count); i++) {
        const struct statistics_slot *slot = &proxy->counters->slots[i];
        begin_slot_sample(out, family, proxy, slot);
        end_sample(out, statistics_held(&slot->pool));
    }
}

static void put_drops(FILE *out, const struct family *family, const struct stats_proxy *proxy)
{
    for (uint64_t i = 0; i < statistic_read(&proxy->counters->slot_count); i++) {
        const struct statistics_slot *slot = &proxy->counters->slots[i];
        for (unsigned cause = 0; cause < STATISTICS_DROPS; cause++) {
            if (statistics_drop_word(cause) == NULL)
                continue;
            begin_slot_sample(out, family, proxy, slot);
            put_label(out, "cause", statistics_drop_word(cause));
            end_sample(out, statistic_read(&slot->pool.drops[cause]));
        }
    }
}

static void put_saved(FILE *out, const struct family *family, const struct stats_proxy *proxy)
{
    for (uint64_t i = 0; i < statistic_read(&proxy->counters->slot_count); i++) {
        const struct statistics_slot *slot = &proxy->counters->slots[i];
        uint64_t ns = stats_saved_ns(slot);
        if (ns == 0)
            continue; /* not known */
        begin_slot_sample(out, family, proxy, slot);
        fprintf(out, "} %" PRIu64 ".%09" PRIu64 "\n", ns / (uint64_t)NS_PER_S,
                ns % (uint64_t)NS_PER_S);
    }
}

/* clang-format off */
#define PROCESS(field) offsetof(struct statistics, field)
#define SLOT(field)    offsetof(struct statistics_slot, field)
#define CALLS(field)   offsetof(struct statistics_calls, field)

static const struct family families[] = {
    {"p11_proxy_info", "gauge", NULL, "1 for each process that uses the proxy.", put_info, 0},
    {"p11_proxy_start_time_seconds", "gauge", "seconds",
     "When C_Initialize was called, since 1970.", put_of_process, PROCESS(started_s)},
    {"p11_proxy_draws", "counter", NULL, "Calls of C_GenerateRandom that were answered.",
     put_by_source, CALLS(token_draws)},
    {"p11_proxy_drawn_bytes", "counter", "bytes", "Random bytes that they got.",
     put_by_source, CALLS(token_bytes)},
    {"p11_proxy_failed_draws", "counter", NULL, "Calls of C_GenerateRandom that failed.",
     put_of_calls, CALLS(failed_draws)},
    {"p11_proxy_missed_draws", "counter", NULL, "Small calls for which the pool held too little.",
     put_of_slots, SLOT(pool.missed)},
    {"p11_proxy_saved_seconds", "gauge", "seconds",
     "Estimate of how much longer all draws would have waited without the pool.", put_saved, 0},
    {"p11_proxy_calls", "counter", NULL, "Calls of C_GenerateRandom that reached the target.",
     put_of_calls, CALLS(calls)},
    {"p11_proxy_called_bytes", "counter", "bytes", "Random bytes that they asked for.",
     put_of_calls, CALLS(called_bytes)},
    {"p11_proxy_failed_calls", "counter", NULL, "How many of them failed.",
     put_of_calls, CALLS(failed_calls)},
    {"p11_proxy_fills", "counter", NULL, "Calls that put bytes into the pool.",
     put_of_slots, SLOT(pool.fills)},
    {"p11_proxy_filled_bytes", "counter", "bytes", "Random bytes that went into the pool.",
     put_of_slots, SLOT(pool.filled_bytes)},
    {"p11_proxy_expired_bytes", "counter", "bytes", "Bytes of the pool that became too old.",
     put_of_slots, SLOT(pool.expired_bytes)},
    {"p11_proxy_drops", "counter", NULL, "How often all of the pool was thrown away.",
     put_drops, 0},
    {"p11_proxy_dropped_bytes", "counter", "bytes", "Bytes that were thrown away with it.",
     put_of_slots, SLOT(pool.dropped_bytes)},
    {"p11_proxy_alarms", "counter", NULL, "Fills that failed the health test.",
     put_of_slots, SLOT(pool.alarms)},
    {"p11_proxy_suspect", "gauge", NULL,
     "1: the token's last bytes failed the health test; 2: twice in a row, no more random bytes.",
     put_of_slots, SLOT(suspect)},
    {"p11_proxy_held_bytes", "gauge", "bytes", "Bytes in the pool.", put_held, 0},
    {"p11_proxy_level_bytes", "gauge", "bytes", "Bytes that demand asks the pool to hold.",
     put_of_slots, SLOT(pool.level_bytes)},
    {"p11_proxy_capacity_bytes", "gauge", "bytes",
     "Bytes that the pool may hold; 0: there is none.", put_of_slots, SLOT(pool.capacity_bytes)},
    {"p11_proxy_chunk_bytes", "gauge", "bytes", "Bytes that one call of a fill asks for.",
     put_of_slots, SLOT(chunk_bytes)},
    {"p11_proxy_locked", "gauge", NULL, "1: the pool is kept out of swap.",
     put_of_slots, SLOT(pool.locked)},
    {"p11_proxy_droppable", "gauge", NULL, "1: a page tells of a restored checkpoint.",
     put_of_slots, SLOT(pool.droppable)},
    {"p11_proxy_refused_calls", "counter", NULL,
     "Calls that the policy refused; with audit, would have.", put_refused, 0},
    {"p11_proxy_refusals", "counter", NULL, "The same by rule and mechanism.", put_refusals, 0},
    {"p11_proxy_mechanism_calls", "counter", NULL,
     "Calls that name a mechanism and were answered with CKR_OK.", put_mechanisms, 0},
    {"p11_proxy_other_mechanism_calls", "counter", NULL,
     "The same of mechanisms for which there was no place.",
     put_of_process, PROCESS(mechanisms_lost)},
};
/* clang-format on */

/* Two series of one name and label are an error, and spoil all: dlmopen() may load one module
 * twice. */
static bool seen_before(const struct stats_list *list, size_t i)
{
    for (size_t j = 0; j < i; j++) {
        if (list->proxies[j].pid == list->proxies[i].pid &&
            strcmp(list->proxies[j].counters->module, list->proxies[i].counters->module) == 0)
            return true;
    }
    return false;
}

void stats_metrics(FILE *out, const struct stats_list *list)
{
    for (size_t f = 0; list->count > 0 && f < sizeof families / sizeof families[0]; f++) {
        const struct family *family = &families[f];
        fprintf(out, "# TYPE %s %s\n", family->name, family->type);
        if (family->unit != NULL)
            fprintf(out, "# UNIT %s %s\n", family->name, family->unit);
        fprintf(out, "# HELP %s %s\n", family->name, family->help);
        for (size_t i = 0; i < list->count; i++) {
            if (!seen_before(list, i))
                family->put(out, family, &list->proxies[i]);
        }
    }
    fputs("# EOF\n", out);
}
