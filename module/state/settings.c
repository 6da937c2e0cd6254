/* settings.c - the configuration and the policy in force: those of the file named like this .so. */
#include "state/settings.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static struct config defaults;
_Atomic(struct config *) current_config = &defaults;
_Atomic(struct policy *) current_policy;

/* Those before, which a late call may still read. Never what is in force, nor what is freed already: another thread may
 * fork at any time, and the child goes on with what it finds here. Rather than freed twice, it is then lost. */
static _Atomic(struct config *) former;
static _Atomic(struct policy *) former_policy;

void settings_free(void)
{
    struct config *config = atomic_exchange(&current_config, &defaults);
    config_free(former);
    if (config != &defaults)
        config_free(config);
    policy_free(former_policy);
    policy_free(atomic_exchange(&current_policy, NULL));
}

static void log_warning(const char *message)
{
    log_write(LOG_LEVEL_WARNING, "%s", message);
}

/* A setting that came from a file, or from one that cannot be read any more. NULL if there is none. */
static const struct config_setting *from_file(const struct config *config, bool out_of_reach)
{
    for (int i = 0; config != NULL && i < CONFIG_KEYS; i++) {
        const struct config_setting *setting = &config->settings[i];
        if (setting->from != NULL && setting->from[0] == '/' &&
            !(out_of_reach && faccessat(AT_FDCWD, setting->from, R_OK, AT_EACCESS) == 0))
            return setting;
    }
    return NULL;
}

bool settings_load(struct message *message, bool heard)
{
    struct config *config = NULL;
    struct policy *policy;
    Dl_info self = {0};
    char where[256];
    dladdr(&defaults, &self);
    bool loaded = config_load(&config, self.dli_fname != NULL ? self.dli_fname : "p11-proxy.so",
                              message) == 0;
    const struct config_setting *lost = from_file(config, /* out_of_reach= */ false) == NULL
                                            ? from_file(settings(), /* out_of_reach= */ true)
                                            : NULL;
    if (lost != NULL) {
        if (heard)
            log_write(LOG_LEVEL_WARNING, "%s is out of reach: the settings of before stay in force",
                      config_origin(lost, where, sizeof where));
        config_free(config);
        return true;
    }
    if (!loaded)
        return false;
    /* Before the lists are read: what is to be said of them belongs where this configuration says. */
    log_configure(&config->log);
    if (policy_load(&policy, config, heard ? log_warning : NULL, message) != 0) {
        config_free(config);
        return false;
    }
    config_free(atomic_exchange(&former, NULL));
    policy_free(atomic_exchange(&former_policy, NULL));
    atomic_store(&former_policy, atomic_exchange(&current_policy, policy));
    struct config *old = atomic_exchange(&current_config, config);
    if (old != &defaults)
        atomic_store(&former, old);
    return true;
}
