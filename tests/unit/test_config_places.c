/* test_config_places.c - which file or variable wins, and which are not read at all. */
#include <check.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../hang.h"
#include "config_fixture.h"

static void put_three_policies(void)
{
    put("package/p11-proxy.module", "x-pool-size: 4KiB\nx-pool-max-age: 1s\nx-pool-mix: kernel\n");
    put("system/p11-proxy.module", "x-pool-size: 8KiB\nx-pool-max-age: 2s\n");
    put("user/modules/p11-proxy.module", "\nx-pool-size: 12KiB\n");
}

static void expect(unsigned size_kib, unsigned age_ms, enum config_mix mix)
{
    struct config *c = load();

    ck_assert_uint_eq(c->pool_size_bytes, size_kib * 1024);
    ck_assert_uint_eq(c->pool_max_age_ms, age_ms);
    ck_assert_int_eq(c->pool_mix, mix);
    config_free(c);
}

START_TEST(later_files_override_earlier_ones_key_by_key)
{
    char origin[512];
    struct config *c;

    put_three_policies();
    expect(12, 2000, CONFIG_MIX_KERNEL);

    c = load();
    same_text(config_origin(config_find(c, "x-pool-size"), origin, sizeof origin),
              "@/user/modules/p11-proxy.module:2");
    same_text(config_origin(config_find(c, "x-pool-max-age"), origin, sizeof origin),
              "@/system/p11-proxy.module:2");
    same_text(config_origin(config_find(c, "x-pool-mix"), origin, sizeof origin),
              "@/package/p11-proxy.module:3");
    same_text(config_origin(config_find(c, "x-policy"), origin, sizeof origin), "default");
    ck_assert_str_eq(config_find(c, "x-policy")->text, "enforce");
    ck_assert_ptr_null(config_find(c, "x-nothing"));
    config_free(c);
}
END_TEST

/* What each word does when the system says it and when the user does. */
START_TEST(user_config_of_the_system_is_honoured)
{
    put_three_policies();
    put("pkcs11.conf", "# p11-kit\nuser-config: none\nlog-calls: no\n");
    expect(8, 2000, CONFIG_MIX_KERNEL);
    put("pkcs11.conf", "user-config: merge\n");
    expect(12, 2000, CONFIG_MIX_KERNEL);
    put("pkcs11.conf", "user-config: only\n");
    expect(12, 10000, CONFIG_MIX_NONE);
    put("pkcs11.conf", "user-config: override\n");
    expect(12, 10000, CONFIG_MIX_NONE);
    put("pkcs11.conf", "\nuser-config: maybe\n");
    refused(-EINVAL, "@/pkcs11.conf:2: user-config is not one of none, merge, only, override: "
                     "'maybe'");
}
END_TEST

START_TEST(user_config_of_the_user_counts_unless_the_system_said_none)
{
    put_three_policies();
    put("user/pkcs11.conf", "user-config: only\n");
    expect(12, 10000, CONFIG_MIX_NONE);
    put("pkcs11.conf", "user-config: none\n");
    expect(8, 2000, CONFIG_MIX_KERNEL);
    put("pkcs11.conf", "");
    put("user/pkcs11.conf", "user-config: none\n");
    expect(8, 2000, CONFIG_MIX_KERNEL);
}
END_TEST

START_TEST(no_users_files_are_read_without_a_user_folder_or_in_secure_mode)
{
    put_three_policies();
    put("pkcs11.conf", "user-config: only\n");
    places.user_config[0] = '\0';
    expect(8, 2000, CONFIG_MIX_KERNEL);
    if (getuid() == 0) {
        strcpy(places.user_config, below("user"));
        places.secure = true;
        expect(8, 2000, CONFIG_MIX_KERNEL);
    }
}
END_TEST

START_TEST(a_copy_of_the_module_has_a_file_of_its_own)
{
    put_three_policies();
    put("system/p11-proxy-luna.module", "x-pool-size: 1MiB\n");
    put("system/odd.module", "x-pool-size: 2MiB\n");
    places.module_path = "/opt/p11-proxy-luna.so";
    expect(1024, 10000, CONFIG_MIX_NONE);
    places.module_path = "odd";
    expect(2048, 10000, CONFIG_MIX_NONE);
}
END_TEST

START_TEST(a_bad_value_is_an_error_even_where_it_is_overridden)
{
    put("package/p11-proxy.module", "x-pool: maybe\n");
    put("system/p11-proxy.module", "x-pool: on\n");
    refused(-EINVAL, "@/package/p11-proxy.module:1: x-pool is neither on nor off: 'maybe'");
}
END_TEST

START_TEST(a_named_file_is_the_only_one_that_is_read)
{
    struct config *c;

    put_three_policies();
    put("pkcs11.conf", "user-config: maybe\n");
    put("alone", "x-pool-max-age: 7s\n");
    places.env_config = below("alone");
    expect(64, 7000, CONFIG_MIX_NONE);

    c = load();
    ck_assert_int_eq(config_check_target(c, &said), -EDESTADDRREQ);
    same_text(said.text, "no token's module is configured: set x-target in @/alone, "
                         "or P11_PROXY_TARGET");
    config_free(c);
}
END_TEST

START_TEST(a_named_file_must_be_there)
{
    put_three_policies();
    places.env_config = below("missing");
    refused(-ENOENT, "P11_PROXY_CONFIG: @/missing: cannot be read: No such file or directory");
    places.env_config = below("system");
    refused(-EISDIR, "P11_PROXY_CONFIG: @/system: is a directory, not a file");
    put("alone", "x-pool: 1\n");
    places.env_config = below("alone");
    refused(-EINVAL, "@/alone:1: x-pool is neither on nor off: '1'");
    places.env_config = "";
    config_free(load());
}
END_TEST

START_TEST(the_environment_overrides_target_and_log)
{
    char origin[64];
    struct config *c;

    put_system("x-target: /from/file.so\nx-log: off\n");
    places.env_target = "/from/environment.so";
    places.env_log = "stderr info";
    c = load();
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
    ck_assert_str_eq(c->target, "/from/file.so");
    ck_assert_int_eq(c->log.destination, LOG_TO_NOTHING);
    config_free(c);

    places.env_target = "a/b.so";
    refused(-EINVAL, "P11_PROXY_TARGET: x-target is neither an absolute path nor a plain file "
                     "name: 'a/b.so'");
    places.env_target = "b.so";
    refused(-ENOENT, "P11_PROXY_TARGET: x-target is not in @/targets: 'b.so'");
    places.env_target = NULL;
    places.env_log = "stderr loud";
    refused(-EINVAL, "P11_PROXY_LOG: x-log is not off, syslog, stderr or an absolute path without "
                     "blanks, alone or with error, warning, info or debug after it: 'stderr loud'");
}
END_TEST

START_TEST(with_more_rights_than_the_user_only_roots_files_are_believed)
{
    const char *path = below("system/p11-proxy.module");

    places.secure = true;
    put_system("x-pool: off\n");
    if (getuid() != 0) {
        refused(-EPERM, "@/system/p11-proxy.module: is not owned by root, in a setuid or setgid "
                        "program");
        return;
    }
    config_free(load());
    chmod(path, 0664);
    refused(-EPERM, "@/system/p11-proxy.module: can be written by group or others, in a setuid or "
                    "setgid program");
    chmod(path, 0646);
    refused(-EPERM, "@/system/p11-proxy.module: can be written by group or others, in a setuid or "
                    "setgid program");
    chmod(path, 0644);
    ck_assert_int_eq(chown(path, 1, 0), 0);
    refused(-EPERM,
            "@/system/p11-proxy.module: is not owned by root, in a setuid or setgid program");
    places.secure = false;
    config_free(load());
}
END_TEST

/* Root reads everything, so a test that runs as root becomes somebody else for a while. */
static uid_t started_as;

static void become_somebody_else(void)
{
    if (started_as == 0)
        ck_assert_int_eq(setresuid(65534, 65534, 0), 0);
}

static void become_oneself_again(void)
{
    if (started_as == 0)
        ck_assert_int_eq(setresuid(0, 0, 0), 0);
}

START_TEST(an_unreadable_file_is_an_error)
{
    ck_assert_int_eq(chmod(root, 0755), 0);
    put_system("x-pool: off\n");
    ck_assert_int_eq(chmod(below("system/p11-proxy.module"), 0), 0);
    become_somebody_else();
    refused(-EACCES, "@/system/p11-proxy.module: cannot be read: Permission denied");
    become_oneself_again();

    ck_assert_int_eq(chmod(below("system/p11-proxy.module"), 0644), 0);
    ck_assert_int_eq(chmod(below("system"), 0), 0);
    become_somebody_else();
    refused(-EACCES, "@/system/p11-proxy.module: cannot be read: Permission denied");
    become_oneself_again();
    ck_assert_int_eq(chmod(below("system"), 0755), 0);
}
END_TEST

START_TEST(a_users_folder_that_is_closed_to_us_counts_as_empty_but_a_closed_file_does_not)
{
    ck_assert_int_eq(chmod(root, 0755), 0);
    put_three_policies();
    ck_assert_int_eq(chmod(below("user"), 0), 0);
    become_somebody_else();
    expect(8, 2000, CONFIG_MIX_KERNEL);
    become_oneself_again();

    ck_assert_int_eq(chmod(below("user"), 0755), 0);
    ck_assert_int_eq(chmod(below("user/modules/p11-proxy.module"), 0), 0);
    become_somebody_else();
    refused(-EACCES, "@/user/modules/p11-proxy.module: cannot be read: Permission denied");
    become_oneself_again();
}
END_TEST

START_TEST(an_unreadable_target_is_told_from_a_missing_one)
{
    struct config *c;

    ck_assert_int_eq(chmod(root, 0755), 0);
    put("targets/real.so", "");
    ck_assert_int_eq(chmod(below("targets/real.so"), 0), 0);
    places.env_target = "real.so";
    c = load();
    become_somebody_else();
    ck_assert_int_eq(config_check_target(c, &said), -EACCES);
    become_oneself_again();
    same_text(said.text,
              "P11_PROXY_TARGET: x-target cannot be read (Permission denied): 'real.so'");
    config_free(c);
}
END_TEST

START_TEST(a_relative_named_file_outlasts_a_change_of_directory)
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
    unsetenv("P11_PROXY_CONFIG");
    ck_assert_int_eq(chdir(folder), 0);
}
END_TEST

START_TEST(a_real_process_looks_where_p11_kit_does)
{
    struct config_places p;

    setenv("HOME", "/home/me", 1);
    unsetenv("XDG_CONFIG_HOME");
    setenv("P11_PROXY_CONFIG", "/c", 1);
    setenv("P11_PROXY_TARGET", "/t", 1);
    setenv("P11_PROXY_LOG", "off", 1);
    become_somebody_else();
    config_places_default(&p, "/x/p11-proxy.so");
    become_oneself_again();
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
    become_somebody_else();
    config_places_default(&p, "/x/p11-proxy.so");
    become_oneself_again();
    ck_assert_str_eq(p.user_config, "/xdg/pkcs11");
    if (started_as == 0) {
        config_places_default(&p, "/x/p11-proxy.so");
        ck_assert_str_eq(p.user_config, "");
    }
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("places");
    Suite *suite = suite_create("config places");
    SRunner *runner;
    int failed;

    started_as = getuid();
    tcase_set_timeout(tcase, HANG_S);
    tcase_add_checked_fixture(tcase, fixture_setup, fixture_teardown);
    tcase_add_test(tcase, later_files_override_earlier_ones_key_by_key);
    tcase_add_test(tcase, user_config_of_the_system_is_honoured);
    tcase_add_test(tcase, user_config_of_the_user_counts_unless_the_system_said_none);
    tcase_add_test(tcase, no_users_files_are_read_without_a_user_folder_or_in_secure_mode);
    tcase_add_test(tcase, a_copy_of_the_module_has_a_file_of_its_own);
    tcase_add_test(tcase, a_bad_value_is_an_error_even_where_it_is_overridden);
    tcase_add_test(tcase, a_named_file_is_the_only_one_that_is_read);
    tcase_add_test(tcase, a_named_file_must_be_there);
    tcase_add_test(tcase, the_environment_overrides_target_and_log);
    tcase_add_test(tcase, with_more_rights_than_the_user_only_roots_files_are_believed);
    tcase_add_test(tcase, an_unreadable_file_is_an_error);
    tcase_add_test(tcase,
                   a_users_folder_that_is_closed_to_us_counts_as_empty_but_a_closed_file_does_not);
    tcase_add_test(tcase, an_unreadable_target_is_told_from_a_missing_one);
    tcase_add_test(tcase, a_relative_named_file_outlasts_a_change_of_directory);
    tcase_add_test(tcase, a_real_process_looks_where_p11_kit_does);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
