/* stats_json.c - counters for programs: one line, one object. The manual page says what the keys
 * mean. */
#include "stats/stats.h"

#include <inttypes.h>
#include <time.h>

#include "policy/mechanisms.h"
#include "tool.h"

enum { MECHANISM_BYTES = 64 };

static void put_key_number(FILE *out, const char *key, uint64_t value)
{
    fprintf(out, ", \"%s\": %" PRIu64, key, value);
}

static void put_counter(FILE *out, const char *key, const statistic *counter)
{
    put_key_number(out, key, statistic_read(counter));
}

static void put_key_text(FILE *out, const char *key, const char *text)
{
    fprintf(out, ", \"%s\": ", key);
    put_json(out, text);
}

static void put_key_bool(FILE *out, const char *key, bool value)
{
    fprintf(out, ", \"%s\": %s", key, value ? "true" : "false");
}

/* null where it is not known. */
static void put_key_ns(FILE *out, const char *key, uint64_t ns)
{
    if (ns != 0)
        put_key_number(out, key, ns);
    else
        fprintf(out, ", \"%s\": null", key);
}

/* The keys mechanism and mechanism_number; both are null for STATISTICS_NO_MECHANISM. */
static void put_mechanism(FILE *out, uint64_t mechanism)
{
    char name[MECHANISM_BYTES];

    fputs("\"mechanism\": ", out);
    if (mechanism == STATISTICS_NO_MECHANISM) {
        fputs("null, \"mechanism_number\": null", out);
        return;
    }
    put_json(out, mechanism_name(mechanism, name, sizeof name));
    put_key_number(out, "mechanism_number", mechanism);
}

static void put_calls(FILE *out, const struct statistics_calls *calls)
{
    fprintf(out, "\"token_draws\": %" PRIu64, statistic_read(&calls->token_draws));
    put_counter(out, "token_drawn_bytes", &calls->token_bytes);
    put_counter(out, "failed_draws", &calls->failed_draws);
    put_counter(out, "calls", &calls->calls);
    put_counter(out, "called_bytes", &calls->called_bytes);
    put_counter(out, "failed_calls", &calls->failed_calls);
}

static void put_drops(FILE *out, const struct statistics_pool *pool)
{
    const char *before = "";

    fputs(", \"drops\": {", out);
    for (unsigned cause = 0; cause < STATISTICS_DROPS; cause++) {
        if (statistics_drop_word(cause) == NULL)
            continue;
        fprintf(out, "%s\"%s\": %" PRIu64, before, statistics_drop_word(cause),
                statistic_read(&pool->drops[cause]));
        before = ", ";
    }
    putc('}', out);
}

static void put_pool(FILE *out, const struct statistics_pool *pool)
{
    put_counter(out, "missed_draws", &pool->missed);
    put_counter(out, "fills", &pool->fills);
    put_counter(out, "filled_bytes", &pool->filled_bytes);
    put_counter(out, "expired_bytes", &pool->expired_bytes);
    put_drops(out, pool);
    put_counter(out, "dropped_bytes", &pool->dropped_bytes);
    put_counter(out, "alarms", &pool->alarms);
    put_key_number(out, "held_bytes", statistics_held(pool));
    put_counter(out, "level_bytes", &pool->level_bytes);
    put_counter(out, "capacity_bytes", &pool->capacity_bytes);
    put_key_bool(out, "locked", statistic_read(&pool->locked) != 0);
    put_key_bool(out, "droppable", statistic_read(&pool->droppable) != 0);
}

static void put_slot(FILE *out, const struct statistics_slot *slot)
{
    struct stats_draws draws = stats_draws(slot);

    fprintf(out, "{\"slot\": %" PRIu64, statistic_read(&slot->id));
    put_key_text(out, "token", slot->token);
    put_key_text(out, "trust", stats_trust_word(slot));
    put_key_number(out, "pool_draws", draws.pool);
    put_key_number(out, "pool_drawn_bytes", draws.pool_bytes);
    fputs(", ", out);
    put_calls(out, &slot->calls);
    put_pool(out, &slot->pool);
    put_counter(out, "chunk_bytes", &slot->chunk_bytes);
    put_key_ns(out, "call_ns", stats_call_ns(slot));
    put_key_ns(out, "saved_ns", stats_saved_ns(slot));
    putc('}', out);
}

static void put_refusals(FILE *out, const struct statistics *counters)
{
    fputs(", \"refusals\": [", out);
    for (uint64_t i = 0; i < statistic_read(&counters->refusal_count); i++) {
        const struct statistics_refusal *refusal = &counters->refusals[i];
        fputs(i > 0 ? ", {" : "{", out);
        put_mechanism(out, statistic_read(&refusal->mechanism));
        put_key_text(out, "rule", refusal->rule);
        put_key_text(out, "file", refusal->file);
        put_counter(out, "line", &refusal->line);
        put_counter(out, "times", &refusal->times);
        putc('}', out);
    }
    putc(']', out);
}

static void put_mechanisms(FILE *out, const struct statistics *counters)
{
    fputs(", \"mechanisms\": [", out);
    for (size_t i = 0; i < STATISTICS_MECHANISMS; i++) {
        const struct statistics_mechanism *mechanism = &counters->mechanisms[i];
        if (statistic_read(&mechanism->type_plus_1) == 0)
            break;
        fputs(i > 0 ? ", {" : "{", out);
        put_mechanism(out, statistic_read(&mechanism->type_plus_1) - 1);
        put_counter(out, "calls", &mechanism->calls);
        putc('}', out);
    }
    putc(']', out);
    put_counter(out, "other_mechanism_calls", &counters->mechanisms_lost);
}

static void put_proxy(FILE *out, const struct stats_proxy *proxy)
{
    const struct statistics *counters = proxy->counters;

    fprintf(out, "{\"pid\": %ld", (long)proxy->pid);
    put_key_text(out, "program", proxy->program);
    put_key_text(out, "version", counters->version);
    put_counter(out, "started_seconds", &counters->started_s);
    put_key_text(out, "module", counters->module);
    put_key_text(out, "target", counters->target);
    put_key_bool(out, "pool", stats_has(counters, STATISTICS_POOL));
    put_key_bool(out, "thread", stats_has(counters, STATISTICS_THREAD));
    put_key_text(out, "mix", stats_has(counters, STATISTICS_MIX_KERNEL) ? "kernel" : "none");
    put_key_text(out, "policy", stats_policy_word(counters));
    fputs(", \"slots\": [", out);
    for (uint64_t i = 0; i < statistic_read(&counters->slot_count); i++) {
        fputs(i > 0 ? ", " : "", out);
        put_slot(out, &counters->slots[i]);
    }
    fputs("], \"unknown_slots\": {", out);
    put_calls(out, &counters->elsewhere);
    putc('}', out);
    put_counter(out, "refused", &counters->refused);
    put_refusals(out, counters);
    put_mechanisms(out, counters);
    putc('}', out);
}

void stats_json(FILE *out, const struct stats_list *list)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    fprintf(out, "{\"time_seconds\": %jd.%03ld, \"processes\": [", (intmax_t)now.tv_sec,
            now.tv_nsec / 1000000);
    for (size_t i = 0; i < list->count; i++) {
        fputs(i > 0 ? ", " : "", out);
        put_proxy(out, &list->proxies[i]);
    }
    fprintf(out,
            "], \"forbidden_processes\": %zu, \"closed_processes\": %zu, "
            "\"strange_processes\": %zu}\n",
            list->forbidden, list->closed, list->strange);
}
