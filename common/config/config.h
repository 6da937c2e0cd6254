/* config.h - the settings of one proxy, and where each of them was written. */
#ifndef P11_PROXY_CONFIG_H
#define P11_PROXY_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "base/message.h"

/* The words of a key, in the order of its row in config.c. */
enum config_threads { CONFIG_THREADS_AUTO, CONFIG_THREADS_NEVER, CONFIG_THREADS_REQUIRE };
enum config_on_seed { CONFIG_ON_SEED_FLUSH, CONFIG_ON_SEED_KEEP };
enum config_mix { CONFIG_MIX_NONE, CONFIG_MIX_KERNEL };
enum config_lock_memory { CONFIG_LOCK_MEMORY_AUTO, CONFIG_LOCK_MEMORY_NEVER };
enum config_policy { CONFIG_POLICY_ENFORCE, CONFIG_POLICY_AUDIT };

enum {
    CONFIG_POOL_SIZE_LEAST_BYTES = 4 * 1024,
    CONFIG_POOL_SIZE_MOST_BYTES = 16 * 1024 * 1024,
    CONFIG_MAX_AGE_LEAST_MS = 10,
    CONFIG_MAX_AGE_MOST_MS = 60 * 60 * 1000,
};

/* One key. Everything belongs to the struct config. */
struct config_setting {
    const char *key;  /* "x-pool-size" */
    const char *text; /* the value as written or, if none was written, the default; NULL: none.
                       * "(hidden)" for x-target-init, which may hold a PIN */
    const char *from; /* path of the file or name of the environment variable; NULL: the default */
    unsigned line;    /* in that file, from 1; 0 for the environment and the default */
};

enum { CONFIG_KEYS = 14 };

/* Fixed once config_load() has returned, so any thread may read it without a lock. */
struct config {
    char *target;      /* x-target: absolute path, or NULL */
    char *target_init; /* x-target-init: NULL if not set; "" is a string that was set */
    bool pool;
    size_t pool_size_bytes;
    unsigned pool_max_age_ms;
    enum config_threads pool_threads;
    enum config_on_seed pool_on_seed;
    enum config_mix pool_mix;
    enum config_lock_memory pool_lock_memory;
    char *disabled_algorithms;      /* the list as written, or NULL; config_find() says where */
    char *disabled_algorithms_file; /* absolute path, or NULL */
    enum config_policy policy;
    bool statistics;
    struct log_settings log;

    char *expected_file; /* the file that an administrator would put a missing key into */
    struct config_setting settings[CONFIG_KEYS]; /* in the order of the manual */
};

/* Hears of a mistake in the configuration. text is valid during the call only. */
typedef void config_mistake(void *context, const char *text);

/*
 * Where to look. Strings are borrowed and must outlive the call of config_load() only.
 * config_places_default() fills in what a real process uses; a test then replaces what it wants.
 */
struct config_places {
    const char *module_path; /* of the .so as loaded: its last part with ".so" replaced by ".module"
                              * names the file in each of the three module directories */
    const char *package_modules;  /* p11-kit's module configuration directory */
    const char *system_modules;   /* /etc/pkcs11/modules */
    const char *system_conf;      /* /etc/pkcs11/pkcs11.conf, asked for user-config only */
    char user_config[PATH_MAX];   /* ~/.config/pkcs11: pkcs11.conf and modules/; "": no user's */
    const char *target_directory; /* where x-target is looked for if it is a plain file name */
    const char *env_config;       /* P11_PROXY_CONFIG, P11_PROXY_TARGET and P11_PROXY_LOG; */
    const char *env_target;       /* NULL or "": not set */
    const char *env_log;
    bool secure; /* more rights than the user has (AT_SECURE): no user's files, and only files that
                  * root alone can write */
    /* NULL: the first mistake ends config_load(). Otherwise each one is reported, and the line, file or
     * variable that has it does not count. */
    config_mistake *mistake;
    void *mistake_context;
};

/*
 * The places of this process. module_path is borrowed; so is the environment (secure_getenv), which
 * must not be changed until config_load() has returned. There are no user's files for uid 0 or when
 * AT_SECURE, as in p11-kit. Cannot fail.
 */
void config_places_default(struct config_places *places, const char *module_path);

/* What p11-kit's user-config says about the user's files. */
enum config_user { CONFIG_USER_NONE, CONFIG_USER_MERGE, CONFIG_USER_ONLY };

/*
 * Finds out which of the places count: none of the user's, all, or the user's only. Returns 0, or a
 * negative errno value with a message, as config_load() would; *mode is then of no use. Any thread.
 */
int config_user_mode(enum config_user *mode, const struct config_places *places,
                     struct message *message);

/*
 * Reads all places, later ones overriding earlier ones key by key: package_modules, system_modules,
 * user_config, the environment. With env_config that one file, then the environment. No file at all
 * is fine: everything has its default, and the target is NULL.
 * On 0 the caller owns *config and ends it with config_free().
 * On failure *config is untouched, and message says where, what would have been right, and what was
 * there instead (never x-target-init's value):
 *   -EINVAL  not `name: value`, an unknown or repeated key, a bad value
 *   -ENOENT  x-target is a plain file name that is not in target_directory
 *   -ENOMEM
 *   and those of file_read() for a file that is there but cannot be read
 * Any thread.
 */
int config_load(struct config **config, const struct config_places *places,
                struct message *message);

/* NULL is fine. */
void config_free(struct config *config);

/* The setting of a key such as "x-pool-size", or NULL if there is no such key. Any thread. */
const struct config_setting *config_find(const struct config *config, const char *key);

/*
 * Writes "<file>:<line>", "P11_PROXY_LOG" or "default" to out (cut if it does not fit) and returns
 * out. Any thread.
 */
const char *config_origin(const struct config_setting *setting, char *out, size_t out_bytes);

/*
 * Asks whether the target is a file that can be loaded, as far as one can tell without loading it.
 * Returns 0, or with a message for each: -EDESTADDRREQ (none configured), -ENOENT (missing),
 * -EISDIR (a directory), -EINVAL (not a regular file), -EACCES or another errno (unreadable).
 * Any thread.
 */
int config_check_target(const struct config *config, struct message *message);

#endif
