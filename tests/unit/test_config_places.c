/* test_config_places.c - which file or variable wins, and which are not read at all. */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../check_main.h"
#include "config_fixture.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static const char module_file[] = "system/p11-proxy.module";

static void put_three_files(void)
{
    put("package/p11-proxy.module", "x-pool-size: 4KiB\nx-pool-max-age: 1s\nx-pool-mix: kernel\n");
    put("system/p11-proxy.module", "x-pool-size: 8KiB\nx-pool-max-age: 2s\n");
    put("user/modules/p11-proxy.module", "\nx-pool-size: 12KiB\n");
}

/* What the three files amount to. */
enum counts { SYSTEM_ONLY, ALL_THREE, USER_ONLY };

static void expect(enum counts counts)
{
    struct config *c = load();
    ck_assert_uint_eq(c->pool_size_bytes, counts == SYSTEM_ONLY ? 8192 : 12288);
    ck_assert_uint_eq(c->pool_max_age_ms, counts == USER_ONLY ? 10000 : 2000);
    ck_assert_int_eq(c->pool_mix, counts == USER_ONLY ? CONFIG_MIX_NONE : CONFIG_MIX_KERNEL);
    config_free(c);
}

static void expect_size(size_t size_bytes)
{
    struct config *c = load();
    ck_assert_uint_eq(c->pool_size_bytes, size_bytes);
    config_free(c);
}

TEST(later_files_override_earlier_ones_key_by_key)
{
    static const struct {
        const char *key, *origin;
    } cases[] = {{"x-pool-size", "@/user/modules/p11-proxy.module:2"},
                 {"x-pool-max-age", "@/system/p11-proxy.module:2"},
                 {"x-pool-mix", "@/package/p11-proxy.module:3"},
                 {"x-policy", "default"}};
    char origin[512];
    put_three_files();
    expect(ALL_THREE);
    struct config *c = load();
    for (size_t i = 0; i < COUNT(cases); i++)
        same_text(config_origin(config_find(c, cases[i].key), origin, sizeof origin),
                  cases[i].origin);
    ck_assert_str_eq(config_find(c, "x-policy")->text, "enforce");
    ck_assert_ptr_null(config_find(c, "x-nothing"));
    config_free(c);
}

TEST(user_config_of_the_system_and_then_of_the_user_is_honoured)
{
    static const struct {
        const char *system, *user;
        enum counts counts;
    } cases[] = {{"# p11-kit\nuser-config: none\nlog-calls: no\n", "", SYSTEM_ONLY},
                 {"user-config: merge\n", "", ALL_THREE},
                 {"user-config: only\n", "", USER_ONLY},
                 {"user-config: override\n", "", USER_ONLY},
                 {"", "user-config: only\n", USER_ONLY},
                 {"", "user-config: none\n", SYSTEM_ONLY},
                 {"user-config: none\n", "user-config: only\n", SYSTEM_ONLY},
                 {"user-config: only\n", "user-config: merge\n", ALL_THREE}};
    put_three_files();
    for (size_t i = 0; i < COUNT(cases); i++) {
        put("pkcs11.conf", cases[i].system);
        put("user/pkcs11.conf", cases[i].user);
        expect(cases[i].counts);
    }
    put("pkcs11.conf", "\nuser-config: maybe\n");
    refused("@/pkcs11.conf:2: user-config is not one of none, merge, only, override: 'maybe'");
}

TEST(no_users_files_are_read_without_a_user_folder_or_in_secure_mode)
{
    put_three_files();
    put("pkcs11.conf", "user-config: only\n");
    places.user_config[0] = '\0';
    expect(SYSTEM_ONLY);
    SKIP_IF(getuid() != 0, "only root can write files that are trusted in secure mode");
    strcpy(places.user_config, below("user"));
    places.secure = true;
    expect(SYSTEM_ONLY);
}

TEST(a_copy_of_the_module_has_a_file_of_its_own)
{
    put_three_files();
    put("system/p11-proxy-luna.module", "x-pool-size: 1MiB\n");
    put("system/odd.module", "x-pool-size: 2MiB\n");
    places.module_path = "/opt/p11-proxy-luna.so";
    expect_size(1024 * 1024);
    places.module_path = "odd";
    expect_size(2048 * 1024);
}

TEST(a_bad_value_is_an_error_even_where_it_is_overridden)
{
    put("package/p11-proxy.module", "x-pool: maybe\n");
    put("system/p11-proxy.module", "x-pool: on\n");
    refused("@/package/p11-proxy.module:1: x-pool is not one of off, on: 'maybe'");
}

TEST(a_named_file_is_the_only_one_that_is_read)
{
    put_three_files();
    put("pkcs11.conf", "user-config: maybe\n");
    put("alone", "x-pool-size: 5KiB\n");
    places.env_config = below("alone");
    expect_size(5 * 1024);
    target_refused(NULL, "no token's module is configured: set x-target in @/alone, or "
                         "P11_PROXY_TARGET");
}

TEST(a_named_file_must_be_there)
{
    put_three_files();
    places.env_config = below("missing");
    refused("P11_PROXY_CONFIG: @/missing: cannot be read: No such file or directory");
    places.env_config = below("system");
    refused("P11_PROXY_CONFIG: @/system: is a directory, not a file");
    put("alone", "x-pool: 1\n");
    places.env_config = below("alone");
    refused("@/alone:1: x-pool is not one of off, on: '1'");
    places.env_config = "";
    config_free(load());
}

TEST(the_environment_overrides_target_and_log)
{
    char origin[64];
    put_system("x-target: missing.so\nx-log: off\n");
    places.env_target = "/from/environment.so";
    places.env_log = "stderr info";
    struct config *c = load();
    ck_assert_str_eq(c->target, "/from/environment.so");
    ck_assert_int_eq(c->log.destination, LOG_TO_STDERR);
    ck_assert_int_eq(c->log.level, LOG_LEVEL_INFO);
    ck_assert_str_eq(config_origin(config_find(c, "x-target"), origin, sizeof origin),
                     "P11_PROXY_TARGET");
    ck_assert_str_eq(config_origin(config_find(c, "x-log"), origin, sizeof origin),
                     "P11_PROXY_LOG");
    config_free(c);

    places.env_target = places.env_log = "";
    c = load();
    same_text(c->target, "@/targets/missing.so");
    ck_assert_int_eq(c->log.destination, LOG_TO_NOTHING);
    config_free(c);

    places.env_target = "a/b.so";
    refused("P11_PROXY_TARGET: x-target is not an absolute path or a plain file name: 'a/b.so'");
    places.env_target = NULL;
    places.env_log = "stderr loud";
    refused("P11_PROXY_LOG: x-log is not off, syslog, stderr or an absolute path without blanks, "
            "alone or with one of error, warning, info, debug after it: 'stderr loud'");
}

TEST(with_more_rights_than_the_user_only_roots_files_are_trusted)
{
    const char *path = below(module_file);
    static const char foreign[] = "@/system/p11-proxy.module: is not owned by root, in a setuid or "
                                  "setgid program",
                      writable[] = "@/system/p11-proxy.module: can be written by group or others, "
                                   "in a setuid or setgid program";
    places.secure = true;
    put_system("x-pool: off\n");
    if (getuid() != 0) {
        refused(foreign);
        return;
    }
    config_free(load());
    chmod(path, 0664);
    refused(writable);
    chmod(path, 0646);
    refused(writable);
    chmod(path, 0644);
    ck_assert_int_eq(chown(path, 1, 0), 0);
    refused(foreign);
    places.secure = false;
    config_free(load());
}

/* Root reads everything, so a test that runs as root becomes another user for a while. */
static uid_t started_as;

static void become(uid_t user)
{
    if (started_as == 0)
        ck_assert_int_eq(setresuid(user, user, 0), 0);
}

enum { ROOT = 0, ANOTHER = 65534 };

TEST(what_cannot_be_read_is_an_error_but_for_a_users_folder)
{
    static const struct {
        const char *closed, *answer; /* NULL: the others count */
    } cases[] = {
        {"system/p11-proxy.module", "@/system/p11-proxy.module: cannot be read: Permission denied"},
        {"system", "@/system/p11-proxy.module: cannot be read: Permission denied"},
        {"user", NULL},
        {"user/modules/p11-proxy.module",
         "@/user/modules/p11-proxy.module: cannot be read: Permission denied"}};
    ck_assert_int_eq(chmod(root, 0755), 0);
    put_three_files();
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct stat st;
        ck_assert_int_eq(stat(below(cases[i].closed), &st), 0);
        ck_assert_int_eq(chmod(below(cases[i].closed), 0), 0);
        become(ANOTHER);
        if (cases[i].answer != NULL)
            refused(cases[i].answer);
        else
            expect(SYSTEM_ONLY);
        become(ROOT);
        ck_assert_int_eq(chmod(below(cases[i].closed), st.st_mode & 0777), 0);
    }
}

TEST(an_unreadable_target_is_told_from_a_missing_one)
{
    ck_assert_int_eq(chmod(root, 0755), 0);
    put("targets/real.so", "");
    ck_assert_int_eq(chmod(below("targets/real.so"), 0), 0);
    become(ANOTHER);
    target_refused("real.so",
                   "P11_PROXY_TARGET: x-target cannot be read (Permission denied): 'real.so'");
    become(ROOT);
}

TEST(a_relative_named_file_outlasts_a_change_of_directory)
{
    struct config_places first, later;
    char folder[PATH_MAX], expected[PATH_MAX + 16];
    ck_assert_ptr_nonnull(getcwd(folder, sizeof folder));
    snprintf(expected, sizeof expected, "%s/proxy.module", folder);
    setenv("P11_PROXY_CONFIG", "proxy.module", 1);
    config_places_default(&first, "p11-proxy.so");
    ck_assert_str_eq(first.env_config, expected);
    ck_assert_int_eq(chdir("/"), 0);
    config_places_default(&later, "p11-proxy.so");
    ck_assert_str_eq(later.env_config, expected);
    setenv("P11_PROXY_CONFIG", "/etc/other.module", 1);
    config_places_default(&later, "p11-proxy.so");
    ck_assert_str_eq(later.env_config, "/etc/other.module");
}

TEST(a_real_process_looks_where_p11_kit_does)
{
    struct config_places p;
    setenv("HOME", "/home/me", 1);
    unsetenv("XDG_CONFIG_HOME");
    setenv("P11_PROXY_CONFIG", "/c", 1);
    setenv("P11_PROXY_TARGET", "/t", 1);
    setenv("P11_PROXY_LOG", "off", 1);
    become(ANOTHER);
    config_places_default(&p, "/x/p11-proxy.so");
    ck_assert_str_eq(p.system_modules, "/etc/pkcs11/modules");
    ck_assert_str_eq(p.system_conf, "/etc/pkcs11/pkcs11.conf");
    ck_assert_int_eq(p.package_modules[0], '/');
    ck_assert_int_eq(p.target_directory[0], '/');
    ck_assert_str_eq(p.user_config, "/home/me/.config/pkcs11");
    ck_assert_str_eq(p.env_config, "/c");
    ck_assert_str_eq(p.env_target, "/t");
    ck_assert_str_eq(p.env_log, "off");
    ck_assert(!p.secure);
    setenv("XDG_CONFIG_HOME", "/xdg", 1);
    config_places_default(&p, "/x/p11-proxy.so");
    ck_assert_str_eq(p.user_config, "/xdg/pkcs11");
    become(ROOT);
    config_places_default(&p, "/x/p11-proxy.so");
    ck_assert_str_eq(p.user_config, started_as == 0 ? "" : "/xdg/pkcs11");
}

int main(void)
{
    started_as = getuid();
    return test_main("config places", fixture_setup, NULL);
}
