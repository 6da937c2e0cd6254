/* settings.c - what is configured and where, the log file, and the policy. */
#include "check/check.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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

static void check_log(const struct config *config)
{
    if (config->log.destination != LOG_TO_FILE || can_be_written(config->log.path, O_NOFOLLOW))
        return;
    report_add(MARK_NOTE, "configuration",
               "user %u cannot write the log file (%m): %s; syslog gets the lines instead\n"
               "let all users of the token write it, or set x-log: syslog",
               (unsigned)geteuid(), config->log.path);
}

void check_settings(const struct config *config)
{
    char origin[MESSAGE_BYTES];
    int defaults = 0;
    for (int i = 0; i < CONFIG_KEYS; i++) {
        const struct config_setting *setting = &config->settings[i];
        if (setting->from == NULL) {
            defaults++;
            continue;
        }
        report_add(MARK_OK, "configuration", "%s: %s (%s)", setting->key, setting->text,
                   config_origin(setting, origin, sizeof origin));
        if (setting->from[0] == '/' && is_first_from(config, i))
            check_writers("configuration", "the configuration", setting->from);
    }
    report_add(MARK_OK, "configuration", "%d %s the default, see p11-proxy.module(5)", defaults,
               defaults == 1 ? "key has" : "keys have");
    if (!config->pool) {
        report_add(MARK_NOTE, "configuration",
                   "the pool is off: every request goes to the token\n"
                   "remove x-pool: off from %s if that is not intended",
                   config_origin(config_find(config, "x-pool"), origin, sizeof origin));
    }
    check_log(config);
}

static void hear_warning(void *unused, const char *message)
{
    (void)unused;
    report_add(MARK_NOTE, "policy",
               "%s\n"
               "remove it, or correct it if it was meant to refuse something",
               message);
}

static void check_idle_rules(const struct policy *policy)
{
    const struct policy_rule *rule;
    size_t idle = 0;
    for (size_t i = 0; (rule = policy_rule(policy, i)) != NULL; i++)
        idle += policy_no_effect(rule) != NULL;
    if (idle > 0)
        report_add(MARK_NOTE, "policy",
                   "%zu item%s no effect here\np11-proxy policy shows which, and why", idle,
                   idle == 1 ? " has" : "s have");
}

void check_policy(const struct config *config)
{
    struct policy *policy;
    struct policy_counts counts;
    struct message message;
    if (config->disabled_algorithms_file != NULL)
        check_writers("policy", "the list of algorithms", config->disabled_algorithms_file);
    if (policy_load(&policy, config, hear_warning, NULL, &message) != 0) {
        report_add(MARK_PROBLEM, "policy",
                   "%s\ncorrect that; until then C_Initialize answers CKR_GENERAL_ERROR",
                   message.text);
        return;
    }
    policy_count(policy, &counts);
    if (policy == NULL)
        report_add(MARK_OK, "policy", "no algorithm is disabled");
    else if (policy_is_audit(policy))
        report_add(MARK_NOTE, "policy",
                   "x-policy is audit: nothing is refused; the list has %zu item%s\n"
                   "set x-policy: enforce once the log shows nothing that must go on working",
                   counts.items, counts.items == 1 ? "" : "s");
    else
        report_add(MARK_OK, "policy", "a policy of %zu item%s is in force, see p11-proxy policy",
                   counts.items, counts.items == 1 ? "" : "s");
    check_idle_rules(policy);
    policy_free(policy);
}
