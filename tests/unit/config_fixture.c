/* config_fixture.c - a folder of configuration files that lasts one test. */
#include "config_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../check_main.h"

char root[64];
struct config_places places;
struct message said;

static char package_modules[512], system_modules[512], system_conf[512], target_directory[512];

const char *below(const char *name)
{
    static char paths[8][512];
    static unsigned turn;
    char *path = paths[turn++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

void put_bytes(const char *name, const void *bytes, size_t len)
{
    int fd = open(below(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
    close(fd);
}

void put(const char *name, const char *text)
{
    put_bytes(name, text, strlen(text));
}

void put_system(const char *text)
{
    put("system/p11-proxy.module", text);
}

void fixture_setup(void)
{
    static const char *const folders[] = {"package", "system", "user", "user/modules", "targets"};

    umask(022); /* for the tests that change their user */
    make_folder(root);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        ck_assert_int_eq(mkdir(below(folders[i]), 0755), 0);
    strcpy(package_modules, below("package"));
    strcpy(system_modules, below("system"));
    strcpy(system_conf, below("pkcs11.conf"));
    strcpy(target_directory, below("targets"));
    places = (struct config_places){
        .module_path = "/usr/lib/pkcs11/p11-proxy.so",
        .package_modules = package_modules,
        .system_modules = system_modules,
        .system_conf = system_conf,
        .target_directory = target_directory,
    };
    strcpy(places.user_config, below("user"));
    said.text[0] = '\0';
}

struct config *load(void)
{
    struct config *config = NULL;
    int rc = config_load(&config, &places, &said);

    ck_assert_msg(rc == 0, "refused: %s", said.text);
    return config;
}

void same_text(const char *came, const char *text)
{
    char expected[2048] = "";

    for (size_t at = 0; *text != '\0'; text++) {
        if (*text == '@')
            at += (size_t)sprintf(expected + at, "%s", root);
        else
            expected[at++] = *text;
    }
    ck_assert_str_eq(came, expected);
}

void refused(const char *expected)
{
    struct config *config = NULL;
    int rc = config_load(&config, &places, &said);

    ck_assert_msg(rc != 0, "was not refused, but should say: %s", expected);
    ck_assert_ptr_null(config);
    same_text(said.text, expected);
}

void line_refused(const char *line, const char *expected_rest)
{
    char expected[MESSAGE_BYTES];

    put_system(line);
    snprintf(expected, sizeof expected, "@/system/p11-proxy.module:1: %s", expected_rest);
    refused(expected);
}

void target_refused(const char *target, const char *expected)
{
    places.env_target = target;
    struct config *config = load();
    ck_assert_int_ne(config_check_target(config, &said), 0);
    same_text(said.text, expected);
    config_free(config);
}
