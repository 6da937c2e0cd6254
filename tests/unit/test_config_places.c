/* test_config_places.c - which file or variable wins, and which are not read at all. */
#include "config_fixture.h"

static void put_three_files(void)
{
    write_in_root("package/p11-proxy.module",
                  "x-pool-size: 4KiB\nx-pool-max-age: 1s\nx-pool-mix: kernel\n");
    write_in_root(module_file, "x-pool-size: 8KiB\nx-pool-max-age: 2s\n");
    write_in_root("user/modules/p11-proxy.module", "\nx-pool-size: 12KiB\n");
}

/* What a key is set to, and where. */
static void shows(const char *key, const char *text, const char *origin)
{
    A_CONFIG *c = load();
    char came[512];
    ck_assert_str_eq(config_find(c, key)->text, text);
    must_read(config_origin(config_find(c, key), came, sizeof came), origin);
}

/* What the three files amount to. */
enum counts { SYSTEM_ONLY, ALL_THREE, USER_ONLY };

static void expect(enum counts counts)
{
    A_CONFIG *c = load();
    ck_assert_uint_eq(c->pool_size_bytes, counts == SYSTEM_ONLY ? 8192 : 12288);
    ck_assert_uint_eq(c->pool_max_age_ms, counts == USER_ONLY ? 10000 : 2000);
    ck_assert_int_eq(c->pool_mix, counts == USER_ONLY ? CONFIG_MIX_NONE : CONFIG_MIX_KERNEL);
    ck_assert_int_eq(c->user_file != NULL, counts != SYSTEM_ONLY);
}

TEST(later_files_override_earlier_ones_key_by_key)
{
    put_three_files();
    shows("x-pool-size", "12KiB", "@/user/modules/p11-proxy.module:2");
    shows("x-pool-max-age", "2s", "@/system/p11-proxy.module:2");
    shows("x-pool-mix", "kernel", "@/package/p11-proxy.module:3");
    shows("x-policy", "enforce", "default");
    /* A bad value is an error even where it is overridden. */
    write_in_root("package/p11-proxy.module", "x-pool: 1\n");
    refused("@/package/p11-proxy.module:1: x-pool is not one of off, on: '1'");
}

static const struct {
    const char *system, *user;
    enum counts counts;
} modes[] = {{"# p11-kit\nuser-config: none\nlog-calls: no\n", "", SYSTEM_ONLY},
             {"user-config: merge\n", "", ALL_THREE},
             {"user-config: only\n", "", USER_ONLY},
             {"user-config: override\n", "", USER_ONLY},
             {"", "user-config: only\n", USER_ONLY},
             {"user-config: none\n", "user-config: only\n", SYSTEM_ONLY},
             {"user-config: only\n", "user-config: merge\n", ALL_THREE}};

TEST_EACH(user_config_of_the_system_and_then_of_the_user_is_honoured, 0, COUNT_OF(modes))
{
    put_three_files();
    write_in_root("pkcs11.conf", modes[_i].system);
    write_in_root("user/pkcs11.conf", modes[_i].user);
    expect(modes[_i].counts);
    /* As for root, and when AT_SECURE. */
    places.user_config = "";
    write_in_root("pkcs11.conf", "");
    expect(SYSTEM_ONLY);
}

TEST(a_copy_of_the_module_has_a_file_of_its_own)
{
    put_three_files();
    write_in_root("system/p11-proxy-luna.module", "x-pool-size: 1MiB\n");
    places.module_path = "/opt/p11-proxy-luna.so";
    shows("x-pool-size", "1MiB", "@/system/p11-proxy-luna.module:1");
}

TEST(a_named_file_is_the_only_one_that_is_read_and_must_be_there)
{
    put_three_files();
    write_in_root("pkcs11.conf", "user-config: maybe\n");
    write_in_root("alone", "x-pool-size: 5KiB\n");
    places.env_config = in_root("alone");
    shows("x-pool-size", "5KiB", "@/alone:1");
    shows("x-pool-mix", "none", "default");
    unlink(in_root("alone"));
    refused("P11_PROXY_CONFIG: @/alone: cannot be read: No such file or directory");
    unlink(in_root("pkcs11.conf"));
    places.env_config = "";
    expect(ALL_THREE);
}

TEST(the_environment_overrides_target_and_log)
{
    write_in_root(module_file, "x-target: missing.so\nx-log: off\n");
    places.env_target = "/from/environment.so";
    places.env_log = "stderr info";
    shows("x-target", "/from/environment.so", "P11_PROXY_TARGET");
    shows("x-log", "stderr info", "P11_PROXY_LOG");
    places.env_target = places.env_log = "";
    shows("x-target", "missing.so", "@/system/p11-proxy.module:1");
    shows("x-log", "off", "@/system/p11-proxy.module:2");
}

/* Root reads everything, so a test that runs as root becomes another user for a while. */
static bool started_as_root(void)
{
    uid_t real, effective, saved;
    return getresuid(&real, &effective, &saved) == 0 && saved == 0;
}

static void become(uid_t user)
{
    if (started_as_root())
        ck_assert_int_eq(setresuid(user, user, 0), 0);
}

enum { ROOT = 0, ANOTHER = 65534 };

static const struct {
    const char *closed, *answer; /* NULL: the others count */
} unreadable[] = {{"system", "@/system/p11-proxy.module: cannot be read: Permission denied"},
                  {"user", NULL},
                  {"user/modules/p11-proxy.module",
                   "@/user/modules/p11-proxy.module: cannot be read: Permission denied"}};

TEST_EACH(what_cannot_be_read_is_an_error_but_for_a_users_folder, 0, COUNT_OF(unreadable))
{
    ck_assert_int_eq(chmod(root, 0755), 0);
    put_three_files();
    ck_assert_int_eq(chmod(in_root(unreadable[_i].closed), 0), 0);
    become(ANOTHER);
    if (unreadable[_i].answer != NULL)
        refused(unreadable[_i].answer);
    else
        shows("x-pool-size", "8KiB", "@/system/p11-proxy.module:1");
    become(ROOT);
    ck_assert_int_eq(chmod(in_root(unreadable[_i].closed), 0755), 0);
}

TEST(a_relative_named_file_outlasts_a_change_of_directory)
{
    struct config_places p;
    ck_assert_int_eq(chdir(root), 0);
    setenv("P11_PROXY_CONFIG", "proxy.module", 1);
    for (int i = 0; i < 2; i++) {
        config_places_default(&p, "p11-proxy.so");
        must_read(p.env_config, "@/proxy.module");
        ck_assert_int_eq(chdir("/"), 0);
    }
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
    ck_assert_str_eq(p.user_config, "/home/me/.config/pkcs11");
    ck_assert_str_eq(p.env_config, "/c");
    ck_assert_str_eq(p.env_target, "/t");
    ck_assert_str_eq(p.env_log, "off");
    setenv("XDG_CONFIG_HOME", "/xdg", 1);
    config_places_default(&p, "/x/p11-proxy.so");
    ck_assert_str_eq(p.user_config, "/xdg/pkcs11");
    become(ROOT);
    config_places_default(&p, "/x/p11-proxy.so");
    ck_assert_str_eq(p.user_config, started_as_root() ? "" : "/xdg/pkcs11");
}
