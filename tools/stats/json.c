/* json.c - counters for programs: one line, one object. The manual page says what the keys mean. */
#include "stats/stats.h"

#include <time.h>

#include "policy/tables.h"
#include "tool.h"

enum { MECHANISM_BYTES = 64 };

static struct json_object *number(uint64_t value)
{
    return json_object_new_uint64(value);
}

/* null where it is not known. */
static struct json_object *known_ns(uint64_t ns)
{
    return ns != 0 ? number(ns) : NULL;
}

static struct json_object *value_of(const struct statistics_row *row, const void *counts)
{
    uint64_t value = statistics_number(row, counts);
    if (row->type == STATISTICS_FLAG)
        return json_object_new_boolean(value != 0);
    return row->type == STATISTICS_HEALTH ? json_text(stats_trust_word(value)) : number(value);
}

static void add_rows(struct json_object *to, const struct statistics_row *row, const void *counts)
{
    for (; row->name != NULL; row++)
        json_add(to, row->name, value_of(row, counts));
}

/* The keys mechanism and mechanism_number; both are null for STATISTICS_NO_MECHANISM. */
static struct json_object *new_of_mechanism(uint64_t mechanism)
{
    struct json_object *object = json_object_new_object();
    bool any = mechanism != STATISTICS_NO_MECHANISM;
    char name[MECHANISM_BYTES];
    json_add(object, "mechanism",
             any ? json_text(mechanism_name(mechanism, name, sizeof name)) : NULL);
    json_add(object, "mechanism_number", any ? number(mechanism) : NULL);
    return object;
}

static struct json_object *slot_json(const struct statistics_slot *slot)
{
    struct json_object *object = json_object_new_object();
    struct json_object *drops = json_object_new_object();
    json_add(object, "slot", number(slot->id));
    json_add(object, "token", json_text(slot->token));
    add_rows(object, statistics_call_rows, &slot->calls);
    add_rows(object, statistics_pool_rows, &slot->pool);
    for (unsigned i = 0; i < STATISTICS_DROPS; i++)
        json_add(drops, statistics_drop_words[i], number(slot->pool.drops[i]));
    json_add(object, "drops", drops);
    json_add(object, "call_ns", known_ns(stats_call_ns(&slot->pool)));
    json_add(object, "saved_ns", known_ns(stats_saved_ns(&slot->pool)));
    return object;
}

static struct json_object *refusals_json(const struct statistics *counters)
{
    struct json_object *array = json_object_new_array();
    for (uint64_t i = 0; i < counters->refusal_count; i++) {
        const struct statistics_refusal *refusal = &counters->refusals[i];
        struct json_object *object = new_of_mechanism(refusal->mechanism);
        json_add(object, "rule", json_text(refusal->rule));
        json_add(object, "file", json_text(refusal->file));
        json_add(object, "line", number(refusal->line));
        json_add(object, "times", number(refusal->times));
        json_object_array_add(array, object);
    }
    return array;
}

static struct json_object *mechanisms_json(const struct statistics *counters)
{
    struct json_object *array = json_object_new_array();
    for (size_t i = 0; i < STATISTICS_MECHANISMS && counters->mechanisms[i].type_plus_1 != 0; i++) {
        struct json_object *object = new_of_mechanism(counters->mechanisms[i].type_plus_1 - 1);
        json_add(object, "calls", number(counters->mechanisms[i].calls));
        json_object_array_add(array, object);
    }
    return array;
}

static struct json_object *proxy_json(const struct counted_proxy *proxy)
{
    const struct statistics *counters = proxy->counters;
    struct json_object *object = json_object_new_object();
    struct json_object *unknown = json_object_new_object();
    struct json_object *slots = json_object_new_array();
    bool mixes = stats_has(counters, STATISTICS_MIX_KERNEL);
    json_add(object, "pid", number((uint64_t)proxy->pid));
    json_add(object, "program", json_text(proxy->program));
    json_add(object, "version", json_text(counters->version));
    json_add(object, "module", json_text(counters->module));
    json_add(object, "target", json_text(counters->target));
    json_add(object, "pool", json_object_new_boolean(stats_has(counters, STATISTICS_POOL)));
    json_add(object, "thread", json_object_new_boolean(stats_has(counters, STATISTICS_THREAD)));
    json_add(object, "mix", json_text(mixes ? "kernel" : "none"));
    json_add(object, "policy", json_text(stats_policy_word(counters)));
    add_rows(object, statistics_process_rows, counters);
    for (uint64_t i = 0; i < counters->slot_count; i++)
        json_object_array_add(slots, slot_json(&counters->slots[i]));
    json_add(object, "slots", slots);
    add_rows(unknown, statistics_call_rows, &counters->unknown);
    json_add(object, "unknown_slots", unknown);
    json_add(object, "refusals", refusals_json(counters));
    json_add(object, "mechanisms", mechanisms_json(counters));
    return object;
}

void stats_json(FILE *out, const struct counted_list *list)
{
    struct json_object *document = json_object_new_object();
    struct json_object *processes = json_object_new_array();
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (size_t i = 0; i < list->count; i++)
        json_object_array_add(processes, proxy_json(&list->proxies[i]));
    json_add(document, "time_seconds",
             json_decimal((double)now.tv_sec + (double)now.tv_nsec / 1e9, 3));
    json_add(document, "processes", processes);
    json_add(document, "forbidden_processes", number(list->forbidden));
    json_add(document, "strange_processes", number(list->strange));
    json_write(out, document, JSON_ONE_LINE);
}
