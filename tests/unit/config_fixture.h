/* config_fixture.h - a folder of configuration files that lasts one test. In expected texts "@" stands for it. */
#ifndef P11_PROXY_CONFIG_FIXTURE_H
#define P11_PROXY_CONFIG_FIXTURE_H

#include <sys/stat.h>
#include <unistd.h>

#include "../check_main.h"
#include "config/config.h"

static struct config_places places; /* all inside root; the environment is empty */

/* The file that most tests write. */
static const char module_file[] = "system/p11-proxy.module";

void set_up(void)
{
    static const char *const folders[] = {"package", "system", "user", "user/modules", "targets"};
    umask(022); /* for the tests that change their user */
    for (size_t i = 0; i < COUNT_OF(folders); i++)
        ck_assert_int_eq(mkdir(in_root(folders[i]), 0755), 0);
    places = (struct config_places){
        .module_path = "/usr/lib/pkcs11/p11-proxy.so",
        .package_modules = in_root("package"),
        .system_modules = in_root("system"),
        .system_conf = in_root("pkcs11.conf"),
        .target_directory = in_root("targets"),
        .user_config = in_root("user"),
    };
}

static inline void must_read(const char *came, const char *text)
{
    char expected[4096] = "";
    for (size_t at = 0; *text != '\0'; text++) {
        if (*text == '@')
            at += (size_t)sprintf(expected + at, "%s", root);
        else
            expected[at++] = *text;
    }
    ck_assert_str_eq(came, expected);
}

/* Of a configuration that ends with its block. */
#define A_CONFIG __attribute__((cleanup(config_end))) struct config
static inline void config_end(struct config **config)
{
    config_free(*config);
}

static inline struct config *load(void)
{
    struct config *config = config_read(&places);
    ck_assert_msg(config->mistake_count == 0, "refused: %s", config->mistakes[0].text);
    return config;
}

static inline void refused(const char *expected)
{
    A_CONFIG *config = config_read(&places);
    ck_assert_msg(config->mistake_count > 0, "should say: %s", expected);
    must_read(config->mistakes[0].text, expected);
}

#endif
