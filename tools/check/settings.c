/* check_settings.c - what is configured and where, and the policy. */
#include "check/check_parts.h"
#include "tool.h"

#include <string.h>

enum { IDLE_RULES_SHOWN = 8 };

/* Whether an earlier setting came from the same place. */
static bool is_first_from(const struct config *config, int index)
{
    for (int i = 0; i < index; i++) {
        const char *from = config->settings[i].from;
        if (from != NULL && strcmp(from, config->settings[index].from) == 0)
            return false;
    }
    return true;
}

void check_settings(struct findings *findings, const struct config *config)
{
    char origin[MESSAGE_BYTES];
    int defaults = 0;

    for (int i = 0; i < CONFIG_KEYS; i++) {
        const struct config_setting *setting = &config->settings[i];
        if (setting->from == NULL) {
            defaults++;
            continue;
        }
        found(findings, MARK_OK, "configuration", "%s: %s (%s)", setting->key, setting->text,
              config_origin(setting, origin, sizeof origin));
        if (setting->from[0] == '/' && is_first_from(config, i))
            check_writers(findings, "configuration", "the configuration", setting->from);
    }
    found(findings, MARK_OK, "configuration", "%d %s the default, see p11-proxy.module(5)",
          defaults, defaults == 1 ? "key has" : "keys have");
    if (!config->pool) {
        found(findings, MARK_NOTE, "configuration",
              "the pool is off: every request goes to the token");
        advise(findings, "remove x-pool: off from %s if that is not meant",
               config_origin(config_find(config, "x-pool"), origin, sizeof origin));
    }
}

static void hear_warning(void *context, const char *message)
{
    found(context, MARK_NOTE, "policy", "%s", message);
    advise(context, "remove it, or correct it if it was meant to refuse something");
}

static void find_idle_rules(struct findings *findings, const struct policy *policy)
{
    size_t idle = 0;

    for (size_t i = 0; i < policy_rules_count(policy); i++) {
        const char *why = policy_rule_no_effect(policy, i);
        const struct policy_rule *rule = policy_rule(policy, i);
        if (why == NULL || ++idle > IDLE_RULES_SHOWN)
            continue;
        found(findings, MARK_NOTE, "policy", "%s:%u: %s has %s", rule->file, rule->line, rule->text,
              why);
    }
    if (idle > IDLE_RULES_SHOWN) {
        found(findings, MARK_NOTE, "policy", "%zu more items have no effect here",
              idle - IDLE_RULES_SHOWN);
        advise(findings, "p11-proxy policy shows them all");
    }
}

void check_policy(struct findings *findings, const struct config *config)
{
    struct policy *policy;
    struct message message;

    if (config->disabled_algorithms_file != NULL)
        check_writers(findings, "policy", "the list of algorithms",
                      config->disabled_algorithms_file);
    if (load_policy(&policy, config, hear_warning, findings, &message) != 0) {
        found(findings, MARK_PROBLEM, "policy", "%s", message.text);
        advise(findings, "mend that; until then C_Initialize answers CKR_GENERAL_ERROR");
        return;
    }
    if (policy == NULL) {
        found(findings, MARK_OK, "policy", "no algorithm is disabled");
    } else if (policy_is_audit(policy)) {
        found(findings, MARK_NOTE, "policy", "x-policy is audit: %zu items, and nothing is refused",
              policy_rules_count(policy));
        advise(findings,
               "set x-policy: enforce once the log shows nothing that must go on working");
    } else {
        found(findings, MARK_OK, "policy",
              "a policy of %zu items is in force, see p11-proxy policy",
              policy_rules_count(policy));
    }
    find_idle_rules(findings, policy);
    policy_free(policy);
}
