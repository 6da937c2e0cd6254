/* policy_compile.c - from lists to a policy: which items there are, and what each one is. */
#include "policy/policy_compile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy_fold.h"

/*
 * The start of what came, fit for a message: nothing in it that a terminal or a log would act upon.
 */
const char *compile_quoted(char to[QUOTED_BYTES], const char *came)
{
    size_t i = 0;

    for (; came[i] && i < QUOTED_BYTES - 4; i++)
        to[i] = came[i] >= ' ' && came[i] <= '~' ? came[i] : '?';
    strcpy(to + i, came[i] ? "..." : "");
    return to;
}

int compile_fail(struct compiler *c, int rc, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(c->error, c->error_bytes, format, args);
    va_end(args);
    return rc;
}

int compile_no_memory(struct compiler *c)
{
    return compile_fail(c, -ENOMEM, "no memory for the list of disabled algorithms");
}

void compile_warn(struct compiler *c, const struct place *place, const char *should,
                  const char *came)
{
    char quote[QUOTED_BYTES], message[1024];

    if (++c->warnings > POLICY_WARNINGS_MAX || !c->sources->warn)
        return;
    snprintf(message, sizeof message, "%s:%u: %s %s: '%s'", place->file, place->line,
             place->key ? place->key : INLINE_KEY, should, compile_quoted(quote, came));
    c->sources->warn(c->sources->warn_context, message);
}

int compile_fail_at(struct compiler *c, const struct place *place, const char *should,
                    const char *came)
{
    char quote[QUOTED_BYTES];
    return compile_fail(c, -EINVAL, "%s:%u: %s %s: '%s'", place->file, place->line,
                        place->key ? place->key : INLINE_KEY, should, compile_quoted(quote, came));
}

static int fail_unknown(struct compiler *c, const struct place *place, const char *came)
{
    const struct name *nearest = names_nearest(c->policy->names, came, strlen(came));
    char should[160];

    if (!nearest)
        return compile_fail_at(c, place,
                               "has an item that is no known algorithm, mechanism or curve", came);
    snprintf(should, sizeof should,
             "has an item that is no known algorithm, mechanism or curve (nearest: %.*s)",
             (int)nearest->len, nearest->text);
    return compile_fail_at(c, place, should, came);
}

static struct rule *add_rule(struct compiler *c, const struct place *place, const char *text)
{
    struct policy *policy = c->policy;

    if (policy->rule_count == policy->rule_room) {
        size_t room = policy->rule_room ? 2 * policy->rule_room : 64;
        struct rule *more = reallocarray(policy->rule, room, sizeof *more);
        if (!more)
            return NULL;
        policy->rule = more;
        policy->rule_room = room;
    }
    struct rule *rule = &policy->rule[policy->rule_count++];
    *rule = (struct rule){.shown = {text, place->file, place->key, place->line}};
    return rule;
}

static bool add_spans(struct policy *policy, struct rule *rule, const struct item *item)
{
    rule->first_span = (uint32_t)policy->said_count;
    rule->span_count = (uint32_t)item->denied_count;
    for (size_t i = 0; i < item->denied_count; i++) {
        if (policy->said_count == policy->said_room) {
            size_t room = policy->said_room ? 2 * policy->said_room : 16;
            struct rule_span *more = reallocarray(policy->said, room, sizeof *more);
            if (!more)
                return false;
            policy->said = more;
            policy->said_room = room;
        }
        policy->said[policy->said_count++] =
            (struct rule_span){item->denied[i], (rule_id)policy->rule_count};
    }
    return true;
}

/* The rules of a name's group; NULL if there is no memory. */
static struct group_rules *group_of(struct compiler *c, name_id name)
{
    const struct names *names = c->policy->names;

    if (names->count > c->group_room) {
        size_t room = names->room;
        struct group_rules *more = reallocarray(c->group, room, sizeof *more);
        if (!more)
            return NULL;
        memset(more + c->group_room, 0, (room - c->group_room) * sizeof *more);
        c->group = more;
        c->group_room = room;
    }
    return &c->group[names->entry[name].group];
}

/* Whether a name that is unknown as a whole has at least two parts, all known: "MD5withECDSA". */
static bool is_made_of_known(const struct names *names, const char *text, size_t len)
{
    struct name_parts parts = {text, len};
    const char *part;
    size_t part_len;
    unsigned count = 0;

    while (name_parts_next(&parts, &part, &part_len)) {
        name_id name = names_find(names, part, part_len);
        if ((name == NO_NAME || !names->entry[name].known) && !names_is_word(part, part_len))
            return false;
        count++;
    }
    return count > 1;
}

/* What an item does, its conditions aside. */
static enum effect effect_of_name(const struct compiler *c, const struct place *place,
                                  const struct item *item, name_id name)
{
    const struct names *names = c->policy->names;
    bool tls = place->key && strncmp(place->key, TLS_PREFIX, strlen(TLS_PREFIX)) == 0;
    size_t count = 0;

    /* There ECDH means cipher suites with static keys; here it would end every ECDHE handshake. */
    if (tls && item->name_len == 4 && fold_same(item->name, "ECDH", 4))
        return EFFECT_WORD;
    if (name != NO_NAME && names_refs(names, name, &count))
        return EFFECT_DENIES;
    if (names_is_word(item->name, item->name_len))
        return EFFECT_WORD;
    if (is_made_of_known(names, item->name, item->name_len))
        return EFFECT_NOTHING;
    return EFFECT_UNKNOWN;
}

static enum effect narrow_effect(const struct compiler *c, const struct item *item,
                                 enum effect effect)
{
    if (effect != EFFECT_DENIES)
        return effect;
    if (item->certificates_only)
        return EFFECT_CERTIFICATES;
    if (item->has_date && c->sources->now_s < item->from_s)
        return EFFECT_LATER;
    if (item->has_sizes)
        return item->denied_count ? EFFECT_SIZES : EFFECT_NO_SIZE;
    return EFFECT_DENIES;
}

/*
 * Files the rule under its name. Only rules without conditions on keys are: those decide by name
 * alone.
 */
static int file_rule(struct compiler *c, struct rule *rule)
{
    rule_id id = (rule_id)(rule - c->policy->rule) + 1;
    struct group_rules *group = group_of(c, rule->name);

    if (!group)
        return compile_no_memory(c);
    if (rule->effect == EFFECT_DENIES ? group->denies : group->named) {
        rule->repeats = rule->effect == EFFECT_DENIES ? group->denies : group->named;
        rule->effect = EFFECT_REPEATED;
        return 0;
    }
    if (rule->effect == EFFECT_DENIES)
        group->denies = id;
    if (!group->named)
        group->named = id;
    return 0;
}

/* AES_128 is a rule for AES keys, but a name check asks for it as it was said. */
static int name_only(struct compiler *c, const struct item *item)
{
    name_id said = names_add(c->policy->names, item->name, item->said_len);
    struct group_rules *group = said == NO_NAME ? NULL : group_of(c, said);

    if (!group)
        return compile_no_memory(c);
    if (!group->named)
        group->named = (rule_id)c->policy->rule_count;
    return 0;
}

static int add_number(struct compiler *c, const struct place *place, const struct item *item,
                      const char *text, uint64_t number)
{
    const struct mechanism *row = mechanism_find(number);
    struct rule *rule = add_rule(c, place, text);

    if (!rule)
        return compile_no_memory(c);
    rule->effect = narrow_effect(c, item, EFFECT_DENIES);
    rule->number = number;
    if (row)
        rule->name =
            names_find(c->policy->names, text_at(row->names), strcspn(text_at(row->names), "|"));
    if (rule->effect == EFFECT_SIZES && !add_spans(c->policy, rule, item))
        return compile_no_memory(c);
    return row && rule->effect == EFFECT_DENIES ? file_rule(c, rule) : 0;
}

static int add_name(struct compiler *c, const struct place *place, const struct item *item,
                    const char *text)
{
    struct names *names = c->policy->names;
    name_id name = names_find(names, item->name, item->name_len);
    enum effect effect = effect_of_name(c, place, item, name);
    bool plain = !item->certificates_only && !item->has_sizes && !item->has_date;

    if (effect == EFFECT_UNKNOWN && !place->key)
        return fail_unknown(c, place, text);
    if (name == NO_NAME)
        name = names_add(names, item->name, item->name_len);
    struct rule *rule = name == NO_NAME ? NULL : add_rule(c, place, text);
    if (!rule)
        return compile_no_memory(c);
    rule->name = name;
    rule->effect = narrow_effect(c, item, effect);
    if (effect == EFFECT_UNKNOWN) {
        struct group_rules *group = group_of(c, name);
        if (!group)
            return compile_no_memory(c);
        if (!group->warned)
            compile_warn(c, place, "has an item that is no known algorithm, mechanism or curve",
                         text);
        group->warned = true;
    }
    if (rule->effect == EFFECT_SIZES && !add_spans(c->policy, rule, item))
        return compile_no_memory(c);
    if (item->said_len != item->name_len)
        return name_only(c, item);
    if (plain || rule->effect == EFFECT_DENIES)
        return file_rule(c, rule);
    return 0;
}

int compile_item(struct compiler *c, const struct place *place, const char *text)
{
    struct item item;
    uint64_t number;

    const char *wrong = item_parse(&item, text);
    if (wrong)
        return compile_fail_at(c, place, wrong, text);
    if (names_find(c->policy->names, item.name, item.name_len) == NO_NAME) {
        enum number_kind kind = item_number(item.name, item.name_len, &number);
        if (kind == NUMBER_WRONG)
            return compile_fail_at(
                c, place, "has no mechanism number that we take (0x..., or decimal if it is known)",
                text);
        if (kind == NUMBER_RIGHT)
            return add_number(c, place, &item, text, number);
    }
    return add_name(c, place, &item, text);
}

static int compile(struct compiler *c)
{
    int rc = names_create(&c->policy->names);

    if (rc != 0)
        return compile_no_memory(c);
    if ((rc = compile_sources(c)) != 0)
        return rc;

    if (!group_of(c, NO_NAME) || policy_build_verdicts(c->policy, c->group) != 0 ||
        policy_build_sizes(c->policy) != 0)
        return compile_no_memory(c);
    policy_build_names(c->policy, c->group);
    return 0;
}

static void tell_of_more_warnings(struct compiler *c)
{
    char message[80];

    if (c->warnings <= POLICY_WARNINGS_MAX || !c->sources->warn)
        return;
    snprintf(message, sizeof message, "and %zu more warnings of disabled algorithms",
             c->warnings - POLICY_WARNINGS_MAX);
    c->sources->warn(c->sources->warn_context, message);
}

int policy_compile(struct policy **policy, const struct policy_sources *sources, char *error,
                   size_t error_bytes)
{
    struct compiler c = {.sources = sources, .error = error, .error_bytes = error_bytes};
    int rc;

    c.policy = calloc(1, sizeof *c.policy);
    c.loaded = calloc(sources->files_count + 1, sizeof *c.loaded);
    rc = c.policy && c.loaded ? compile(&c) : compile_no_memory(&c);
    if (rc == 0) {
        tell_of_more_warnings(&c);
        c.policy->audit = sources->audit;
        *policy = c.policy;
        c.policy = NULL; /* now the caller's */
    }
    compile_sources_free(&c);
    free(c.group);
    policy_free(c.policy);
    return rc;
}
