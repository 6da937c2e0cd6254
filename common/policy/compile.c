/* compile.c - what lists mean: each item becomes a rule, with what it denies or why it denies nothing. */
#include "policy/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/keys.h"

static const char unknown_name[] = "an unknown name";
static const char later[] = "its date is to come";
static const char repeated[] = "an earlier item is the same";
static const char java_pads[] = "Java pads itself, over the mechanism without padding";

struct compiler {
    struct policy *policy;
    int64_t now_s;
    struct report report;
    bool curves_included;
    bool effective; /* something in the present lists is in force, or will be */
};

static bool key_begins(const struct list *list, const char *prefix)
{
    return list->key != NULL && strncmp(list->key, prefix, strlen(prefix)) == 0;
}

/* Takes "Service." off an item of jdk.crypto.disabledAlgorithms; the uses that are the service's. */
static uint8_t take_service(const char **text)
{
    static const struct {
        const char *name;
        uint8_t uses;
    } services[] = {{"MessageDigest.", FOR_DIGEST},
                    {"Signature.", FOR_SIGN},
                    {"Mac.", FOR_SIGN},
                    {"Cipher.", FOR_CIPHER},
                    {"KeyStore.", 0}};

    for (size_t i = 0; i < sizeof services / sizeof *services; i++) {
        size_t len = strlen(services[i].name);
        if (!same_text(*text, services[i].name, len))
            continue;
        *text += len;
        return services[i].uses;
    }
    return FOR_ANY;
}

/* "AES/CBC/PKCS5Padding": the mechanism without padding that Java uses for it; NULL: something else. */
static const struct mechanism *java_padded(const struct item *item)
{
    static const char padding[] = "/PKCS?Padding";
    size_t len = sizeof padding - 1;
    char plain[64];

    if (item->name_len <= len || item->name_len >= sizeof plain)
        return NULL;
    const char *end = item->name + item->name_len - len;
    if (!same_text(end, padding, 5) || !same_text(end + 6, padding + 6, len - 6))
        return NULL;
    int plain_len =
        snprintf(plain, sizeof plain, "%.*s/NoPadding", (int)(end - item->name), item->name);
    for (size_t i = 0; i < MECHANISMS; i++)
        if (has_name(mechanisms[i].names, plain, (size_t)plain_len))
            return &mechanisms[i];
    return NULL;
}

/* Why a name denies nothing, its conditions aside; NULL if it does. */
static const char *no_effect_of_name(const struct names *names, const struct list *list,
                                     const struct item *item, const struct name *group,
                                     uint8_t uses)
{
    const char *word = word_reason(item->name, item->name_len);

    if (uses == 0)
        return "no token has this service";
    /* In TLS, ECDH means suites with static keys; taken literally it would end every ECDHE handshake. */
    if (key_begins(list, "jdk.tls.") && item->name_len == 4 && same_text(item->name, "ECDH", 4))
        return "static ECDH suites of TLS";
    if (group->kinds != 0)
        return uses == FOR_ANY || (group->uses & uses) ? NULL
                                                       : "no mechanism of this service has it";
    if (word != NULL)
        return word;
    if (java_padded(item) != NULL)
        return java_pads;
    return names_is_known(names, item->name, item->name_len) ? "no mechanism is this combination"
                                                             : unknown_name;
}

static const char *no_effect_of_conditions(const struct compiler *c, const struct list *list,
                                           const struct item *item, const struct name *group)
{
    bool about_files = key_begins(list, "jdk.jar.") || key_begins(list, "jdk.certpath.");

    if (item->certificates_only || (item->has_date && about_files))
        return "a condition on certificates and signed files";
    if (item->has_sizes && item->denied_count == 0)
        return "no size meets its conditions";
    if (item->has_sizes && !(group->kinds & HAS_SIZE))
        return "its keys have no size in bits";
    return item->has_date && c->now_s < item->from_s ? later : NULL;
}

/* What the author of an item is told that is no name, or is one of Java's alone. 0 or an error. */
static int tell(struct compiler *c, const struct policy_rule *at, const struct item *item,
                bool is_told)
{
    const struct name *nearest = at->key == NULL ? names_nearest(c->policy->names, at->text) : NULL;
    const struct mechanism *plain = java_padded(item);
    char should[200], padded[64];

    if (plain != NULL) {
        int len = (int)strcspn(plain->names, "|");
        snprintf(padded, sizeof padded, " or %.*s_PAD", len, plain->names);
        bool exists = names_find(c->policy->names, padded + 4, strlen(padded + 4)) != NO_NAME;
        snprintf(should, sizeof should, "has a padding that Java does itself (write %.*s%s)", len,
                 plain->names, exists ? padded : "");
    } else if (nearest != NULL) {
        snprintf(should, sizeof should,
                 "has no known algorithm, mechanism or curve (nearest: %.*s)", (int)nearest->len,
                 nearest->text);
    } else {
        snprintf(should, sizeof should, "has no known algorithm, mechanism or curve");
    }
    if (at->key == NULL)
        return report_error(&c->report, at, -EINVAL, should);
    if (!is_told)
        report_warning(&c->report, at, should);
    return 0;
}

/* The name of an item, which is added if it is new; NO_NAME with a message if it is a wrong number. */
static name_id name_of(struct compiler *c, const struct policy_rule *at, const struct item *item,
                       int *rc)
{
    struct names *names = c->policy->names;
    name_id id = names_find(names, item->name, item->name_len);
    uint64_t number;
    enum number_kind kind = item_number(item->name, item->name_len, &number);
    const struct mechanism *row = kind == NUMBER_RIGHT ? mechanism_find(number) : NULL;

    if (id != NO_NAME)
        return id;
    if (row != NULL)
        return names_find(names, row->names, strcspn(row->names, "|"));
    if (kind == NUMBER_WRONG) {
        *rc = report_error(
            &c->report, at, -EINVAL,
            "has no mechanism number that is taken (0x..., or decimal if it is known)");
        return NO_NAME;
    }
    id = names_add(names, item->name, item->name_len);
    if (kind == NUMBER_RIGHT) {
        names->name[id].number = number;
        names->name[id].kinds = IS_MECHANISM | HAS_SIZE;
        names->name[id].uses = FOR_ANY;
    }
    return id;
}

/* Whether earlier rules in force deny all that this one does. */
static bool is_repeated(const struct policy *policy, const struct rule *rule, rule_id earlier)
{
    unsigned left = rule->uses;

    for (; earlier != NO_RULE; earlier = rule_at(policy, earlier)->next)
        if (!rule_at(policy, earlier)->has_sizes)
            left &= ~(unsigned)rule_at(policy, earlier)->uses;
    return !rule->has_sizes && left == 0;
}

static int compile_item(struct compiler *c, const struct list *list, const struct policy_rule *at)
{
    struct policy *policy = c->policy;
    const char *text = at->text, *wrong;
    uint8_t uses = key_begins(list, "jdk.crypto.") ? take_service(&text) : FOR_ANY;
    struct item item;
    int rc = 0;

    if ((wrong = item_parse(&item, text)) != NULL)
        return report_error(&c->report, at, -EINVAL, wrong);
    name_id id = name_of(c, at, &item, &rc);
    if (id == NO_NAME)
        return rc;
    struct name *group = names_group(policy->names, id);
    const char *no_effect = no_effect_of_name(policy->names, list, &item, group, uses);
    if (no_effect == unknown_name || no_effect == java_pads)
        rc = tell(c, at, &item, /* is_told= */ group->listed != NO_RULE);
    else if (no_effect == NULL)
        no_effect = no_effect_of_conditions(c, list, &item, group);
    if (rc != 0)
        return rc;

    struct rule *rule = &policy->rule[policy->rule_count++];
    *rule = (struct rule){.shown = *at,
                          .no_effect = no_effect,
                          .group = policy->names->name[id].group,
                          .uses = uses,
                          .has_sizes = item.has_sizes,
                          .next = group->in_force};
    if (no_effect == NULL && is_repeated(policy, rule, group->in_force))
        rule->no_effect = repeated;
    bool decides =
        !item.has_sizes && !item.certificates_only && (!item.has_date || no_effect == NULL);
    if (group->listed == NO_RULE && decides)
        group->listed = (rule_id)policy->rule_count;
    if (rule->no_effect == NULL)
        group->in_force = (rule_id)policy->rule_count;
    c->effective = c->effective || rule->no_effect == NULL || rule->no_effect == later ||
                   rule->no_effect == repeated;
    return 0;
}

static int compile_list(struct compiler *c, const struct list *list);

/* "include jdk.disabled.namedCurves", the only inclusion that the JDK knows within a list. */
static int include_curves(struct compiler *c, const struct policy_rule *at, const char *what)
{
    const struct list *named = lists_find(&c->policy->lists, CURVES_KEY);

    if (strlen(what) != strlen(CURVES_KEY) || !same_text(what, CURVES_KEY, strlen(what)))
        return report_error(&c->report, at, -EINVAL, "includes something else than " CURVES_KEY);
    if (named == NULL && at->key == NULL)
        return report_error(&c->report, at, -EINVAL, "includes a property that no list file has");
    if (named == NULL)
        report_warning(&c->report, at, "includes a property that no list file has");
    if (named == NULL || c->curves_included)
        return 0;
    c->curves_included = true; /* also while it is, since it may include itself */
    return compile_list(c, named);
}

static int compile_list(struct compiler *c, const struct list *list)
{
    static const char include[] = "include ";
    int rc = 0;

    for (size_t i = 0; i < list->count && rc == 0; i++) {
        const char *text = list->item[i].text;
        struct policy_rule at = {text, list->file, list->key, list->item[i].line};
        if (same_text(text, include, sizeof include - 1))
            rc = include_curves(c, &at, text + sizeof include - 1);
        else if (*text != '\0')
            rc = compile_item(c, list, &at);
    }
    return rc;
}

/*
 * Lists of which nothing takes effect must not pass for a policy: they were cut short, or mean something
 * else. named is where they come from (NULL: the inline list, which may be empty), and before them there
 * are so many rules.
 */
static int need_effect(struct compiler *c, const struct policy_rule *named, size_t rules_before)
{
    static const char nothing[] = "lists no algorithm under a key jdk.*.disabledAlgorithms";
    const struct policy_rule *first = policy_rule(c->policy, rules_before);
    char should[120];

    if (c->effective || (first == NULL && named == NULL))
        return 0;
    if (first == NULL)
        return report_error(&c->report, named, -EINVAL, nothing);
    snprintf(should, sizeof should, "lists nothing that takes effect (%s)",
             policy_no_effect(first));
    return report_error(&c->report, first, -EINVAL, should);
}

static int compile(struct compiler *c, const struct policy_sources *sources)
{
    struct policy *policy = c->policy;
    struct policy_rule named = {sources->file, sources->file_from, FILE_KEY, sources->file_line};
    size_t rules_before = 0, items = 0;
    /* All files first, because any list may include what stands in one of them. */
    int rc = lists_add_inline(&policy->lists, sources, &c->report);

    if (rc == 0 && sources->file != NULL)
        rc = lists_add_file(&policy->lists, &named, &c->report);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < policy->lists.count; i++)
        items += policy->lists.list[i].count;
    policy->names = names_create(items);
    policy->rule = calloc(items + 1, sizeof *policy->rule);
    if (policy->names == NULL || policy->rule == NULL)
        return report_no_memory(&c->report);
    for (size_t i = 0; i < policy->lists.count && rc == 0; i++) {
        const struct list *list = &policy->lists.list[i];
        if (list->key == NULL || strcmp(list->key, CURVES_KEY) != 0)
            rc = compile_list(c, list);
        if (rc != 0 || list->key != NULL)
            continue;
        rc = need_effect(c, NULL, 0);
        rules_before = policy->rule_count;
        c->effective = false;
    }
    if (rc == 0 && sources->file != NULL)
        rc = need_effect(c, &named, rules_before);
    if (rc == 0)
        rc = build_verdicts(policy, &c->report);
    if (rc == 0)
        rc = build_key_rules(policy, &c->report);
    return rc;
}

int policy_compile(struct policy **policy, const struct policy_sources *sources,
                   struct message *message)
{
    struct compiler c = {.policy = calloc(1, sizeof *c.policy),
                         .now_s = sources->now_s,
                         .report = {sources->warn, sources->warn_context, 0, message}};
    int rc = c.policy != NULL ? compile(&c, sources) : report_no_memory(&c.report);

    if (rc == 0 && c.report.warnings > POLICY_WARNINGS_MAX && sources->warn != NULL) {
        message_set(message, "and %zu more warnings of disabled algorithms",
                    c.report.warnings - POLICY_WARNINGS_MAX);
        sources->warn(sources->warn_context, message->text);
    }
    if (rc != 0 || c.policy->rule_count == 0) {
        policy_free(c.policy);
        c.policy = NULL;
    } else {
        c.policy->audit = sources->audit;
    }
    if (rc == 0)
        *policy = c.policy;
    return rc;
}

int policy_load(struct policy **policy, const struct config *config, policy_warning *warn,
                void *warn_context, struct message *message)
{
    const struct config_setting *list = config_find(config, INLINE_KEY);
    const struct config_setting *file = config_find(config, FILE_KEY);
    const struct policy_sources sources = {.list = config->disabled_algorithms,
                                           .list_from = list->from,
                                           .list_line = list->line,
                                           .file = config->disabled_algorithms_file,
                                           .file_from = file->from,
                                           .file_line = file->line,
                                           .now_s = time(NULL),
                                           .audit = config->policy == CONFIG_POLICY_AUDIT,
                                           .warn = warn,
                                           .warn_context = warn_context};
    if (sources.list == NULL && sources.file == NULL) {
        *policy = NULL;
        return 0;
    }
    return policy_compile(policy, &sources, message);
}

void policy_free(struct policy *policy)
{
    if (policy == NULL)
        return;
    lists_free(&policy->lists);
    names_free(policy->names);
    free(policy->denied);
    free(policy->rule);
    free(policy);
}
