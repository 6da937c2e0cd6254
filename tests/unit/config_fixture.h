/* config_fixture.h - a folder of configuration files that lasts one test. In expected texts "@" stands for it. */
#ifndef P11_PROXY_CONFIG_FIXTURE_H
#define P11_PROXY_CONFIG_FIXTURE_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../check_main.h"
#include "config/config.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static char root[64];
static struct config_places places; /* all inside root; the environment is empty */

/* The file that most tests write. */
static const char module_file[] = "system/p11-proxy.module";

/* A path below root, in one of a few buffers that are used in turn. */
static inline const char *below(const char *name)
{
    static char paths[16][128];
    static unsigned turn;
    char *path = paths[turn++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

static inline void put_bytes(const char *name, const void *bytes, size_t len)
{
    int fd = open(below(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
    close(fd);
}

static inline void put(const char *name, const char *text)
{
    put_bytes(name, text, strlen(text));
}

void set_up(void)
{
    static const char *const folders[] = {"package", "system", "user", "user/modules", "targets"};
    umask(022); /* for the tests that change their user */
    make_folder(root);
    for (size_t i = 0; i < COUNT(folders); i++)
        ck_assert_int_eq(mkdir(below(folders[i]), 0755), 0);
    places = (struct config_places){
        .module_path = "/usr/lib/pkcs11/p11-proxy.so",
        .package_modules = strdup(below("package")),
        .system_modules = strdup(below("system")),
        .system_conf = strdup(below("pkcs11.conf")),
        .target_directory = strdup(below("targets")),
        .user_config = strdup(below("user")),
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
