/* settings.c - the configuration in force: that of the file named like this .so. */
#include "settings.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

static struct config          defaults;
static _Atomic(struct config *) current = &defaults;
static struct config         *former;

const struct config *settings(void)
{
    return atomic_load_explicit(&current, memory_order_acquire);
}

/* Until the policy is there, a list of what to refuse must not be taken for granted. */
static bool policy_is_possible(const struct config *config, struct message *message)
{
    const char *keys[] = {"x-disabled-algorithms", "x-disabled-algorithms-file"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct config_setting *setting = config_find(config, keys[i]);
        char                         origin[PATH_MAX];
        if (setting->from == NULL)
            continue;
        message_set(message, "%s: %s cannot be enforced by this version, which would have to "
                             "be without that key",
                    config_origin(setting, origin, sizeof origin), setting->key);
        return false;
    }
    return true;
}

bool settings_load(struct message *message)
{
    struct config_places places;
    struct config       *config = NULL;
    Dl_info              self = {0};
    dladdr(&defaults, &self);
    config_places_default(&places, self.dli_fname != NULL ? self.dli_fname : "p11-proxy.so");
    if (config_load(&config, &places, message) != 0)
        return false;
    if (!policy_is_possible(config, message)) {
        config_free(config);
        return false;
    }
    log_configure(&config->log);
    config_free(former);
    struct config *old = atomic_exchange(&current, config);
    former = old != &defaults ? old : NULL;
    return true;
}
