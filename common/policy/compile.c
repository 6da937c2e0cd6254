/* compile.c - what lists mean: each item becomes a rule, with what it denies or why it denies nothing. */
#include "policy/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char unknown_name[] = "an unknown name";
static const char later[] = "its date is to come";
static const char java_pads[] = "Java pads itself, over the mechanism without padding";

static bool key_begins(const struct policy_rule *at, const char *prefix)
{
    return at->key != NULL && strncmp(at->key, prefix, strlen(prefix)) == 0;
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

/* Why a name that stands for no row denies nothing. */
static const char *no_effect_of_word(const struct names *names, const char *name, size_t len)
{
    static const char padding[] = "/PKCS5Padding";
    const size_t tail = sizeof padding - 1;
    const char *word = word_reason(name, len);

    if (word != NULL)
        return word;
    if (!names_is_known(names, name, len))
        return unknown_name;
    return len > tail && same_text(name + len - tail, padding, tail)
               ? java_pads
               : "no mechanism is this combination";
}

/* Why a rule denies nothing; NULL if it does. */
static const char *no_effect(const struct compiler *c, const struct rule *rule,
                             const struct name *group)
{
    const struct policy_rule *at = &rule->shown;
    bool about_files = key_begins(at, "jdk.jar.") || key_begins(at, "jdk.certpath.");
    bool has_size = false;
    unsigned uses = 0;
    const struct row *row;

    for (uint32_t link = 0; (row = next_row(c->policy->names, group, &link)) != NULL;) {
        uses |= row->uses;
        has_size = has_size || row->name >= c->policy->names->known_count ||
                   (row->kind != A_KEY_TYPE && row->size_from >= SIZE_MODULUS &&
                    row->size_from <= SIZE_FIXED);
    }
    if (rule->uses == 0)
        return "no token has this service";
    /* In TLS, ECDH means suites with static keys; taken literally it would end every ECDHE handshake. */
    if (key_begins(at, "jdk.tls.") && rule->name_len == 4 && same_text(rule->name, "ECDH", 4))
        return "static ECDH suites of TLS";
    if (group->first_link == 0)
        return no_effect_of_word(c->policy->names, rule->name, rule->name_len);
    if (rule->uses != FOR_ANY && !(uses & rule->uses))
        return "no mechanism of this service has it";
    if (rule->certificates_only || (rule->has_date && about_files))
        return "a condition on certificates and signed files";
    if (!sizes_deny(&rule->sizes, rule->sizes.min) &&
        !sizes_deny(&rule->sizes, rule->sizes.min + 1))
        return "no size meets its conditions";
    if (rule->has_sizes && !has_size)
        return "its keys have no size in bits";
    return rule->has_date && c->sources->now_s < rule->from_s ? later : NULL;
}

/* What the author of an item is told that is no name, or is one of Java's alone. 0 or an error. */
static int tell(struct compiler *c, const struct policy_rule *at, bool is_told)
{
    bool pads = at->no_effect == java_pads;
    const char *should = pads ? "has a padding that Java does itself (write AES/CBC, as an "
                                "example, or CKM_AES_CBC_PAD)"
                              : "has no known algorithm, mechanism or curve";

    if (at->key != NULL) {
        if (!is_told)
            report_warning(c, at, should);
        return 0;
    }
    const struct name *nearest = pads ? NULL : names_nearest(c->policy->names, at->text);
    return nearest == NULL ? report_error(c, at, "%s", should)
                           : report_error(c, at, "%s (nearest: %.*s)", should, (int)nearest->len,
                                          nearest->text);
}

static int compile_item(struct compiler *c, const struct policy_rule *at)
{
    struct policy *policy = c->policy;
    struct rule *rule = &policy->rule[policy->rule_count++];
    const char *text = at->text;

    *rule = (struct rule){.shown = *at, .uses = FOR_ANY};
    if (key_begins(at, "jdk.crypto."))
        rule->uses = take_service(&text);
    const char *wrong = item_parse(rule, text);
    if (wrong != NULL)
        return report_error(c, at, "%s", wrong);
    name_id id = names_take(policy->names, rule->name, rule->name_len);
    if (id == NO_NAME)
        return report_error(
            c, at, "has no mechanism number that is taken (0x..., or decimal if it is known)");
    struct name *group = names_group(policy->names, id);
    rule->group = policy->names->name[id].group;
    const char *why = rule->shown.no_effect = no_effect(c, rule, group);
    bool in_force = why == NULL;
    bool is_told = group->listed != NULL;

    if (!is_told)
        group->listed = &rule->shown;
    if (group->decides == NULL && !rule->has_sizes && !rule->certificates_only &&
        (!rule->has_date || in_force))
        group->decides = &rule->shown;
    policy->counts.items++;
    policy->counts.no_effect += !in_force;
    policy->counts.size_rules += in_force && rule->has_sizes;
    c->effective = c->effective || in_force || why == later;
    if (why == unknown_name || why == java_pads)
        return tell(c, &rule->shown, is_told);
    return !in_force || verdicts_add(policy, rule)
               ? 0
               : report_error(c, at, "is one key-size rule more than can be held");
}

static int compile_list(struct compiler *c, struct policy_rule list);

/* "include jdk.disabled.namedCurves", the only inclusion that the JDK knows within a list. */
static int include_curves(struct compiler *c, const struct policy_rule *at, const char *what)
{
    const struct policy_rule *named = lists_find(c->policy, CURVES_KEY);
    bool is_other =
        strlen(what) != strlen(CURVES_KEY) || !same_text(what, CURVES_KEY, strlen(what));
    const char *should = is_other ? "includes something else than " CURVES_KEY
                                  : "includes a property that no list file has";

    if (is_other || (named == NULL && at->key == NULL))
        return report_error(c, at, "%s", should);
    if (named == NULL)
        report_warning(c, at, should);
    if (named == NULL || c->curves_included)
        return 0;
    c->curves_included = true; /* also while it is, since it may include itself */
    return compile_list(c, *named);
}

static int compile_list(struct compiler *c, struct policy_rule list)
{
    static const char include[] = "include ";
    struct policy_rule at = list;
    int rc = 0;

    while (rc == 0 && (at.text = list_next(&list, &at.line)) != NULL) {
        if (same_text(at.text, include, sizeof include - 1))
            rc = include_curves(c, &at, at.text + sizeof include - 1);
        else if (*at.text != '\0')
            rc = compile_item(c, &at);
    }
    return rc;
}

/*
 * Compiles lists of one origin: named is where they come from (NULL: the inline list, which may be empty). Lists of
 * which nothing takes effect must not pass for a policy: they were cut short, or mean something else.
 */
static int compile_lists(struct compiler *c, size_t from, size_t to,
                         const struct policy_rule *named)
{
    const struct policy_rule *list = c->policy->list;
    size_t rules_before = c->policy->rule_count;
    int rc = 0;

    c->effective = false;
    for (size_t i = from; i < to && rc == 0; i++)
        if (list[i].key == NULL || strcmp(list[i].key, CURVES_KEY) != 0)
            rc = compile_list(c, list[i]);
    const struct policy_rule *first = policy_rule(c->policy, rules_before);
    if (rc != 0 || c->effective || (first == NULL && named == NULL))
        return rc;
    return first == NULL
               ? report_error(c, named, "lists no algorithm under a key jdk.*.disabledAlgorithms")
               : report_error(c, first, "lists nothing that takes effect (%s)", first->no_effect);
}

static int compile(struct compiler *c)
{
    struct policy *policy = c->policy;
    const struct policy_rule *file = &c->sources->file;
    size_t items = 0;
    /* All files first, because any list may include what stands in one of them. */
    int rc = c->sources->list.text != NULL ? lists_add_inline(c) : 0;
    size_t inline_count = policy->list_count;

    if (rc == 0 && file->text != NULL)
        rc = lists_add_file(c, file);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < policy->list_count; i++)
        for (const char *at = policy->list[i].text; at != NULL; items++)
            at = (at = strchr(at, ',')) != NULL ? at + 1 : NULL;
    policy->names = names_create(items);
    policy->rule = calloc(items + 1, sizeof *policy->rule);
    if (policy->names == NULL || policy->rule == NULL)
        return report_no_memory(c);
    rc = compile_lists(c, 0, inline_count, NULL);
    if (rc == 0 && file->text != NULL)
        rc = compile_lists(c, inline_count, policy->list_count, file);
    verdicts_end(policy);
    return rc;
}

int policy_compile(struct policy **policy, const struct policy_sources *sources,
                   struct message *message)
{
    struct policy *made = calloc(1, sizeof *made);
    struct compiler c = {.policy = made, .sources = sources, .message = message};

    if (made == NULL)
        return report_no_memory(&c);
    made->audit = sources->audit;
    int rc = compile(&c);
    if (rc != 0 || made->rule_count == 0) {
        policy_free(made);
        made = NULL;
    }
    if (rc == 0)
        *policy = made;
    return rc;
}

static struct policy_rule source(const struct config *config, const char *key)
{
    const struct config_setting *setting = config_find(config, key);
    return (struct policy_rule){setting->text, setting->from, NULL, setting->line, NULL};
}

int policy_load(struct policy **policy, const struct config *config, policy_warning *warn,
                struct message *message)
{
    struct policy_sources sources = {.list = source(config, INLINE_KEY),
                                     .file = source(config, FILE_KEY),
                                     .now_s = time(NULL),
                                     .audit = config->policy == CONFIG_POLICY_AUDIT,
                                     .warn = warn};
    sources.file.key = FILE_KEY;
    *policy = NULL;
    return sources.list.text == NULL && sources.file.text == NULL
               ? 0
               : policy_compile(policy, &sources, message);
}

void policy_free(struct policy *policy)
{
    if (policy == NULL)
        return;
    for (size_t i = 0; i < policy->file_count; i++) {
        free(policy->text[i]);
        free(policy->path[i]);
    }
    free(policy->names);
    free(policy->rule);
    free(policy);
}
