/* config.h - the settings of one proxy, and where each of them was written. Any thread may call these functions. */
#ifndef P11_PROXY_CONFIG_H
#define P11_PROXY_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "base/message.h"

/* The values of keys that take a word, each in the order of the words in the key's row in keys.c. */
enum config_switch { CONFIG_OFF, CONFIG_ON };
enum config_threads { CONFIG_THREADS_AUTO, CONFIG_THREADS_NEVER, CONFIG_THREADS_REQUIRE };
enum config_on_seed { CONFIG_ON_SEED_FLUSH, CONFIG_ON_SEED_KEEP };
enum config_mix { CONFIG_MIX_NONE, CONFIG_MIX_KERNEL };
enum config_lock_memory { CONFIG_LOCK_MEMORY_AUTO, CONFIG_LOCK_MEMORY_NEVER };
enum config_policy { CONFIG_POLICY_ENFORCE, CONFIG_POLICY_AUDIT };

enum { CONFIG_KEYS = 14, CONFIG_MISTAKES_MOST = 16 };

/* One key. text is what was written, or the default, or NULL for neither; x-target-init, which may hold a PIN, shows
 * as "(hidden)". */
struct config_setting {
    const char *key; /* "x-pool-size" */
    const char *text;
    const char *from; /* path of the file or name of the environment variable; NULL: the default */
    unsigned line;    /* in that file, from 1; 0 for the environment and the default */
    char *value;      /* what was written, for struct config to own */
};

/* Owns all that it points to, and does not change after it was read. */
struct config {
    char *target;      /* x-target: absolute path, or NULL */
    char *target_init; /* x-target-init: NULL if not set; "" is a string that was set */
    enum config_switch pool;
    unsigned pool_size_bytes;
    unsigned pool_max_age_ms;
    enum config_threads pool_threads;
    enum config_on_seed pool_on_seed;
    enum config_mix pool_mix;
    enum config_lock_memory pool_lock_memory;
    char *disabled_algorithms;      /* the list as written, or NULL */
    char *disabled_algorithms_file; /* absolute path, or NULL */
    enum config_policy policy;
    enum config_switch statistics;
    struct log_settings log;

    struct config_setting settings[CONFIG_KEYS]; /* in the order of the manual */
    /* Paths that were looked at; NULL: not looked at. With P11_PROXY_CONFIG that is the system's one. */
    char *package_file, *system_file, *user_file;
    char *target_path; /* of a target that is a plain file name */

    /* Where a mistake is, what would have been right, and what was there instead (never x-target-init's
     * value). The line, file or variable that has it does not count. */
    struct message *mistakes;
    unsigned mistake_count;
};

/* Where to look. Strings are borrowed until the configuration was read. */
struct config_places {
    const char *module_path;      /* of the .so as loaded, after which the module files are named */
    const char *package_modules;  /* p11-kit's module configuration directory */
    const char *system_modules;   /* /etc/pkcs11/modules */
    const char *system_conf;      /* /etc/pkcs11/pkcs11.conf, asked for user-config only */
    const char *user_config;      /* ~/.config/pkcs11: pkcs11.conf and modules/; "": no user's */
    const char *target_directory; /* where x-target is looked for if it is a plain file name */
    const char *env_config;       /* P11_PROXY_CONFIG, P11_PROXY_TARGET and P11_PROXY_LOG; */
    const char *env_target;       /* NULL or "": not set */
    const char *env_log;
};

/*
 * The places of this process; a test replaces some of them. There are no user's files for uid 0 or when
 * AT_SECURE, as in p11-kit. One thread at a time. The environment (secure_getenv) is borrowed.
 */
void config_places_default(struct config_places *places, const char *module_path);

/*
 * Reads all places, later ones overriding earlier ones key by key: package_modules, system_modules,
 * user_config, the environment. With env_config that one file, then the environment. No file at all
 * is fine: everything has its default, and the target is NULL. config_free() ends it. NULL: no memory.
 */
struct config *config_read(const struct config_places *places);

/* The same of this process's places, where a mistake is a failure: returns 0 and *config, or -1, NULL and
 * the first mistake. One thread at a time. */
int config_load(struct config **config, const char *module_path, struct message *message);

/* NULL is fine. */
void config_free(struct config *config);

/* The setting of a key such as "x-pool-size", or NULL if there is no such key. */
const struct config_setting *config_find(const struct config *config, const char *key);

/* Writes "<file>:<line>", "P11_PROXY_LOG" or "default" to out (cut if it does not fit), and returns out. */
const char *config_origin(const struct config_setting *setting, char *out, size_t out_bytes);

/* Returns 0 if the target is a file that can be loaded, as far as that shows without loading it; otherwise
 * -1 with a message. */
int config_check_target(const struct config *config, struct message *message);

#endif
