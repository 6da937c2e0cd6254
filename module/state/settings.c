/* settings.c - the configuration and the policy in force: those of the file named like this .so. */
#include "state/settings.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct config defaults;
static _Atomic(struct config *) current = &defaults;
static struct config *former;

_Atomic(struct policy *) current_policy;
static struct policy *former_policy;

const struct config *settings(void)
{
    return atomic_load_explicit(&current, memory_order_acquire);
}

void settings_free(void)
{
    struct config *config = atomic_exchange(&current, &defaults);
    config_free(former);
    if (config != &defaults)
        config_free(config);
    policy_free(former_policy);
    policy_free(atomic_exchange(&current_policy, NULL));
}

static void log_warning(void *context, const char *message)
{
    (void)context;
    log_write(LOG_LEVEL_WARNING, "%s", message);
}

/* The places are long, and the caller's stack may be the smallest that there is. */
static bool load_config(struct config **config, struct message *message)
{
    struct config_places *places = malloc(sizeof *places);
    Dl_info self = {0};
    if (places == NULL) {
        message_set(message, "the configuration cannot be read: no memory");
        return false;
    }
    dladdr(&defaults, &self);
    config_places_default(places, self.dli_fname != NULL ? self.dli_fname : "p11-proxy.so");
    int rc = config_load(config, places, message);
    free(places);
    return rc == 0;
}

/* The first setting that came from a file. NULL if none did. */
static const struct config_setting *from_file(const struct config *config)
{
    for (int i = 0; i < CONFIG_KEYS; i++)
        if (config->settings[i].from != NULL && config->settings[i].from[0] == '/')
            return &config->settings[i];
    return NULL;
}

/* A file that settings in force came from can be read no more: rights were given up, or this is another root. */
static bool is_out_of_reach(const struct config *config, char *where, size_t where_bytes)
{
    for (int i = 0; i < CONFIG_KEYS; i++) {
        const struct config_setting *setting = &config->settings[i];
        if (setting->from == NULL || setting->from[0] != '/' ||
            faccessat(AT_FDCWD, setting->from, R_OK, AT_EACCESS) == 0)
            continue;
        config_origin(setting, where, where_bytes);
        return true;
    }
    return false;
}

/* Whether the settings in force stay, because a file that they came from cannot be read now and no other file was read.
 * config is what was read this time, or NULL. */
static bool stays(const struct config *config, bool heard)
{
    char where[256];
    if ((config != NULL && from_file(config) != NULL) ||
        !is_out_of_reach(settings(), where, sizeof where))
        return false;
    if (heard)
        log_write(LOG_LEVEL_WARNING, "%s is out of reach: the settings of before stay in force",
                  where);
    return true;
}

bool settings_load(struct message *message, bool heard)
{
    struct config *config = NULL;
    struct policy *policy;
    bool loaded = load_config(&config, message);
    if (stays(config, heard)) {
        config_free(config);
        return true;
    }
    if (!loaded)
        return false;
    /* Before the lists are read: what is to be said of them belongs where this configuration says. */
    log_configure(&config->log);
    if (policy_load(&policy, config, heard ? log_warning : NULL, NULL, message) != 0) {
        config_free(config);
        return false;
    }
    config_free(former);
    policy_free(former_policy);
    former_policy = atomic_exchange(&current_policy, policy);
    struct config *old = atomic_exchange(&current, config);
    former = old != &defaults ? old : NULL;
    return true;
}
