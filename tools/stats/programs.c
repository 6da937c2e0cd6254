/* programs.c - counters for programs: JSON, whose keys the manual page explains, and OpenMetrics.
 *
 * One walk makes both. Both text formats of Prometheus want the samples of one name together, and none
 * twice. So the samples of a name are an object, in which their labels are the keys.
 */
#include "stats/stats.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "policy/tables.h"
#include "tool.h"

enum {
    MECHANISM_BYTES = 64,
    LABELS_BYTES = 8192 /* twice as many as all texts of a sample have */
};

struct labels {
    char text[LABELS_BYTES];
};

const char *stats_policy_word(const struct statistics *counters)
{
    return counters->flags & STATISTICS_AUDIT    ? "audit"
           : counters->flags & STATISTICS_POLICY ? "enforce"
                                                 : "none";
}

/* What is made: JSON's processes, and the samples. */
static struct json_object *processes, *families;

static struct json_object *number(uint64_t value)
{
    return json_object_new_uint64(value);
}

/* A text is plain, so JSON escapes of it what OpenMetrics does: quotes and backslashes. */
static void add_label(struct labels *labels, const char *name, struct json_object *value)
{
    size_t len = strlen(labels->text);
    const char *mark = json_object_is_type(value, json_type_string) ? "" : "\"";
    const char *text = json_object_to_json_string_ext(value, JSON_C_TO_STRING_NOSLASHESCAPE);
    if (json_object_is_type(value, json_type_boolean))
        text = json_object_get_boolean(value) ? "on" : "off";
    if (value == NULL)
        text = "key"; /* that was refused, and no mechanism */
    snprintf(labels->text + len, sizeof labels->text - len, "%s%s=%s%s%s", len > 0 ? "," : "", name,
             mark, text, mark);
}

/* A member of the object that is a label, too. */
static void add_member(struct json_object *object, struct labels *labels, const char *name,
                       struct json_object *value)
{
    json_add(object, name, value);
    add_label(labels, name, value);
}

static void add_sample(const char *name, const struct labels *labels, struct json_object *value)
{
    struct json_object *family;
    if (!json_object_object_get_ex(families, name, &family)) {
        family = json_object_new_object();
        json_add(families, name, family);
    }
    json_add(family, labels->text, value);
}

static void add_rows(struct json_object *object, const struct labels *labels,
                     const struct statistics_row *row, const void *counts)
{
    for (; row->name != NULL; row++) {
        uint64_t value = statistics_number(row, counts);
        const char *trust = value == HEALTH_OK        ? "trusted"
                            : value == HEALTH_SUSPECT ? "suspect"
                                                      : "latched";
        json_add(object, row->name,
                 row->type == STATISTICS_FLAG     ? json_object_new_boolean(value != 0)
                 : row->type == STATISTICS_HEALTH ? json_text(trust)
                                                  : number(value));
        add_sample(row->name, labels, number(value));
    }
}

static struct json_object *add_slot(struct labels labels, const struct statistics_slot *slot)
{
    struct json_object *object = json_object_new_object();
    struct json_object *drops = json_object_new_object();
    add_member(object, &labels, "slot", number(slot->id));
    add_member(object, &labels, "token", json_text(slot->token));
    add_rows(object, &labels, statistics_slot_rows, slot);
    json_add(object, "drops", drops);
    for (unsigned i = 0; i < POOL_DROP_CAUSES; i++) {
        struct labels of_drop = labels;
        struct json_object *cause = json_text(statistics_drop_words[i]);
        add_label(&of_drop, "cause", cause);
        json_object_put(cause);
        json_add(drops, statistics_drop_words[i], number(slot->pool.drops[i]));
        add_sample("drops", &of_drop, number(slot->pool.drops[i]));
    }
    return object;
}

static struct json_object *add_refusal(struct labels labels,
                                       const struct statistics_refusal *refusal)
{
    struct json_object *object = json_object_new_object();
    bool any = refusal->mechanism != NO_MECHANISM;
    char text[MECHANISM_BYTES];
    const char *name = mechanism_name(refusal->mechanism, text, sizeof text);
    add_member(object, &labels, "mechanism", any ? json_text(name) : NULL);
    json_add(object, "mechanism_number", any ? number(refusal->mechanism) : NULL);
    add_member(object, &labels, "rule", json_text(refusal->rule));
    add_member(object, &labels, "file", json_text(refusal->file));
    add_member(object, &labels, "line", number(refusal->line));
    json_add(object, "times", number(refusal->times));
    add_sample("refusals", &labels, number(refusal->times));
    return object;
}

static void add_proxy(const struct counted_proxy *proxy)
{
    const struct statistics *counters = &proxy->counters;
    uint64_t flags = counters->flags;
    struct json_object *object = json_object_new_object();
    struct json_object *slots = json_object_new_array(), *refusals = json_object_new_array();
    struct labels own = {""}, labels;
    json_object_array_add(processes, object);
    add_member(object, &own, "pid", number((uint64_t)proxy->pid));
    add_member(object, &own, "program", json_text(proxy->program));
    add_member(object, &own, "module", json_text(counters->module));
    labels = own;
    add_member(object, &labels, "target", json_text(counters->target));
    add_member(object, &labels, "version", json_text(counters->version));
    add_member(object, &labels, "pool", json_object_new_boolean((flags & STATISTICS_POOL) != 0));
    add_member(object, &labels, "thread",
               json_object_new_boolean((flags & STATISTICS_THREAD) != 0));
    add_member(object, &labels, "mix",
               json_text(flags & STATISTICS_MIX_KERNEL ? "kernel" : "none"));
    add_member(object, &labels, "policy", json_text(stats_policy_word(counters)));
    add_sample("info", &labels, number(1));
    add_rows(object, &own, statistics_process_rows, counters);

    json_add(object, "slots", slots);
    for (uint64_t i = 0; i < counters->slot_count; i++)
        json_object_array_add(slots, add_slot(own, &counters->slots[i]));
    json_add(object, "refusals", refusals);
    labels = own;
    add_label(&labels, "policy", json_object_object_get(object, "policy"));
    for (uint64_t i = 0; i < counters->refusal_count; i++)
        json_object_array_add(refusals, add_refusal(labels, &counters->refusals[i]));
}

static void make(const struct counted_list *list)
{
    processes = json_object_new_array();
    families = json_object_new_object();
    for (const struct counted_proxy *proxy = list->first; proxy != NULL; proxy = proxy->next)
        add_proxy(proxy);
}

void stats_json(const struct counted_list *list)
{
    struct json_object *document = json_object_new_object();
    struct timespec now;
    make(list);
    clock_gettime(CLOCK_REALTIME, &now);
    json_add(document, "time_seconds",
             json_decimal((double)now.tv_sec + (double)now.tv_nsec / NS_PER_S, 3));
    json_add(document, "processes", processes);
    json_add(document, "forbidden_processes", number(list->processes[COUNTED_FORBIDDEN]));
    json_add(document, "strange_processes", number(list->processes[COUNTED_STRANGE]));
    json_write(document);
    json_object_put(families);
}

static void put_families(const struct statistics_row *row)
{
    for (; row->name != NULL; row++) {
        bool grows = row->type == STATISTICS_COUNTER;
        struct json_object *family;
        if (!json_object_object_get_ex(families, row->name, &family))
            continue;
        printf("# TYPE p11_proxy_%s %s\n", row->name, grows ? "counter" : "gauge");
        if (row->unit[0] != '\0')
            printf("# UNIT p11_proxy_%s %s\n", row->name, row->unit);
        printf("# HELP p11_proxy_%s %s\n", row->name, row->help);
        json_object_object_foreach(family, labels, value)
        {
            printf("p11_proxy_%s%s{%s} %s\n", row->name, grows ? "_total" : "", labels,
                   json_object_to_json_string(value));
        }
    }
}

void stats_metrics(const struct counted_list *list)
{
    static const struct statistics_row others[] = {
        {"info", STATISTICS_GAUGE, "", "", "1 for each process that uses the proxy.", 0},
        {"drops", STATISTICS_COUNTER, "", "", "How often the pool was emptied.", 0},
        {"refusals", STATISTICS_COUNTER, "", "", "Refused calls by rule and mechanism.", 0},
        {0}};
    make(list);
    put_families(statistics_process_rows);
    put_families(statistics_slot_rows);
    put_families(others);
    puts("# EOF");
    json_object_put(processes);
    json_object_put(families);
}
