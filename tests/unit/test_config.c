/* test_config.c - what a file may say, and what is answered when it says something else. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../hang.h"
#include "config_fixture.h"
#include "base/file.h"
#include "base/nearest.h"

START_TEST(without_any_file_everything_has_its_default)
{
    struct config *c = load();

    ck_assert_ptr_null(c->target);
    ck_assert_ptr_null(c->target_init);
    ck_assert(c->pool);
    ck_assert_uint_eq(c->pool_size_bytes, 64 * 1024);
    ck_assert_uint_eq(c->pool_max_age_ms, 10000);
    ck_assert_int_eq(c->pool_threads, CONFIG_THREADS_AUTO);
    ck_assert_int_eq(c->pool_on_seed, CONFIG_ON_SEED_FLUSH);
    ck_assert_int_eq(c->pool_mix, CONFIG_MIX_NONE);
    ck_assert_int_eq(c->pool_lock_memory, CONFIG_LOCK_MEMORY_AUTO);
    ck_assert_ptr_null(c->disabled_algorithms);
    ck_assert_ptr_null(c->disabled_algorithms_file);
    ck_assert_int_eq(c->policy, CONFIG_POLICY_ENFORCE);
    ck_assert(c->statistics);
    ck_assert_int_eq(c->log.destination, LOG_TO_SYSLOG);
    ck_assert_int_eq(c->log.level, LOG_LEVEL_WARNING);
    config_free(c);
}
END_TEST

START_TEST(every_key_takes_what_the_manual_says)
{
    struct config *c;

    put_system("x-target: /usr/lib/real.so\n"
               "x-target-init: configdir='/a b' flags=x:y\n"
               "x-pool: off\n"
               "x-pool-size: 1MiB\n"
               "x-pool-max-age: 500ms\n"
               "x-pool-threads: require\n"
               "x-pool-on-seed: keep\n"
               "x-pool-mix: kernel\n"
               "x-pool-lock-memory: never\n"
               "x-disabled-algorithms: MD5, RSA keySize < 2048\n"
               "x-disabled-algorithms-file: /etc/list\n"
               "x-policy: audit\n"
               "x-statistics: off\n"
               "x-log: /var/log/p11 debug\n");
    c = load();
    ck_assert_str_eq(c->target, "/usr/lib/real.so");
    ck_assert_str_eq(c->target_init, "configdir='/a b' flags=x:y");
    ck_assert(!c->pool);
    ck_assert_uint_eq(c->pool_size_bytes, 1024 * 1024);
    ck_assert_uint_eq(c->pool_max_age_ms, 500);
    ck_assert_int_eq(c->pool_threads, CONFIG_THREADS_REQUIRE);
    ck_assert_int_eq(c->pool_on_seed, CONFIG_ON_SEED_KEEP);
    ck_assert_int_eq(c->pool_mix, CONFIG_MIX_KERNEL);
    ck_assert_int_eq(c->pool_lock_memory, CONFIG_LOCK_MEMORY_NEVER);
    ck_assert_str_eq(c->disabled_algorithms, "MD5, RSA keySize < 2048");
    ck_assert_str_eq(c->disabled_algorithms_file, "/etc/list");
    ck_assert_int_eq(c->policy, CONFIG_POLICY_AUDIT);
    ck_assert(!c->statistics);
    ck_assert_int_eq(c->log.destination, LOG_TO_FILE);
    ck_assert_int_eq(c->log.level, LOG_LEVEL_DEBUG);
    ck_assert_str_eq(c->log.path, "/var/log/p11");
    config_free(c);
}
END_TEST

static const struct {
    const char *text;
    unsigned expected;
} sizes[] = {{"4096", 4096},         {"4KiB", 4096},      {"64 KiB", 65536},
             {"64\tKiB", 65536},     {"16MiB", 16777216}, {"16384KiB", 16777216},
             {"16777216", 16777216}, {"00004096", 4096}},
  ages[] = {{"10ms", 10},        {"10 s", 10000},    {"1min", 60000},
            {"60 min", 3600000}, {"3600s", 3600000}, {"3600000ms", 3600000}};

START_TEST(a_size_is_bytes_kib_or_mib)
{
    char line[64];
    struct config *c;

    snprintf(line, sizeof line, "x-pool-size: %s", sizes[_i].text);
    put_system(line);
    c = load();
    ck_assert_uint_eq(c->pool_size_bytes, sizes[_i].expected);
    config_free(c);
}
END_TEST

START_TEST(a_duration_is_ms_s_or_min)
{
    char line[64];
    struct config *c;

    snprintf(line, sizeof line, "x-pool-max-age: %s", ages[_i].text);
    put_system(line);
    c = load();
    ck_assert_uint_eq(c->pool_max_age_ms, ages[_i].expected);
    config_free(c);
}
END_TEST

static const char *const bad_sizes[] = {"3 fish",   "",
                                        "4095",     "17MiB",
                                        "16777217", "-4096",
                                        "64k",      "4 K iB",
                                        "0x1000",   "99999999999999999999999",
                                        "4.5MiB",   "18014398509481985KiB",
                                        "KiB",      "4096 bytes"};
static const char *const bad_ages[] = {
    "10", "", "9ms", "61min", "3601s", "0s", "1h", "-1s", "s", "1.5s", "99999999999999999999min"};

START_TEST(a_bad_size_is_quoted_with_the_range)
{
    char line[64], rest[128];

    snprintf(line, sizeof line, "x-pool-size: %s", bad_sizes[_i]);
    snprintf(rest, sizeof rest, "x-pool-size is not between 4KiB and 16MiB, in bytes, KiB or MiB: '%s'", bad_sizes[_i]);
    line_refused(line, rest);
}
END_TEST

START_TEST(a_comment_behind_a_value_is_found_out)
{
    line_refused("x-pool-size: 64KiB # enough",
                 "x-pool-size is not between 4KiB and 16MiB, in bytes, KiB or MiB: "
                 "'64KiB # enough'; a comment needs a line of its own");
}
END_TEST

START_TEST(a_bad_duration_is_quoted_with_range_and_units)
{
    char line[64], rest[128];

    snprintf(line, sizeof line, "x-pool-max-age: %s", bad_ages[_i]);
    snprintf(rest, sizeof rest,
             "x-pool-max-age is not between 10ms and 60min, in ms, s or min: '%s'", bad_ages[_i]);
    line_refused(line, rest);
}
END_TEST

START_TEST(a_bad_word_is_answered_with_the_permitted_ones)
{
    line_refused("x-pool: yes", "x-pool is neither on nor off: 'yes'");
    line_refused("x-statistics:", "x-statistics is neither on nor off: ''");
    line_refused("x-pool-threads: Auto",
                 "x-pool-threads is not one of auto, never, require: 'Auto'");
    line_refused("x-pool-on-seed: x", "x-pool-on-seed is not one of flush, keep: 'x'");
    line_refused("x-pool-mix: xor", "x-pool-mix is not one of none, kernel: 'xor'");
    line_refused("x-pool-lock-memory: always",
                 "x-pool-lock-memory is not one of auto, never: 'always'");
    line_refused("x-policy: off", "x-policy is not one of enforce, audit: 'off'");
    line_refused("x-log: journal",
                 "x-log is not off, syslog, stderr or an absolute path without blanks, alone or "
                 "with error, warning, info or debug after it: 'journal'");
    line_refused("x-disabled-algorithms-file: list",
                 "x-disabled-algorithms-file is not an absolute path: 'list'");
}
END_TEST

START_TEST(a_target_is_never_relative_to_the_working_folder)
{
    line_refused("x-target: ./real.so",
                 "x-target is neither an absolute path nor a plain file name: './real.so'");
    line_refused("x-target: ..",
                 "x-target is neither an absolute path nor a plain file name: '..'");
    line_refused("x-target:", "x-target is neither an absolute path nor a plain file name: ''");
}
END_TEST

START_TEST(a_plain_target_name_is_found_in_the_module_directory)
{
    struct config *c;

    put("targets/real.so", "");
    put_system("x-target: real.so\n");
    c = load();
    same_text(c->target, "@/targets/real.so");
    ck_assert_str_eq(config_find(c, "x-target")->text, "real.so");
    config_free(c);

    put_system("\nx-target: other.so\n");
    refused(-ENOENT, "@/system/p11-proxy.module:2: x-target is not in @/targets: 'other.so'");
}
END_TEST

START_TEST(a_missing_plain_name_that_is_overridden_does_no_harm)
{
    struct config *c;

    put_system("x-target: missing.so\n");
    places.env_target = "/some/where.so";
    c = load();
    ck_assert_str_eq(c->target, "/some/where.so");
    config_free(c);
}
END_TEST

START_TEST(an_empty_init_string_is_set_and_an_absent_one_is_not)
{
    struct config *c;

    put_system("x-target-init:\nx-disabled-algorithms:\n");
    c = load();
    ck_assert_str_eq(c->target_init, "");
    ck_assert_str_eq(c->disabled_algorithms, "");
    config_free(c);
}
END_TEST

START_TEST(the_init_string_is_never_shown)
{
    struct config *c;

    put_system("x-target-init: pin=1234\n");
    c = load();
    ck_assert_str_eq(config_find(c, "x-target-init")->text, "(hidden)");
    config_free(c);

    put_system("x-target-init: pin=1234\nx-target-init: pin=5678\n");
    refused(-EINVAL, "@/system/p11-proxy.module:2: x-target-init is already set on line 1");
    put_system("x-target-int: pin=1234\n");
    refused(-EINVAL, "@/system/p11-proxy.module:1: unknown key 'x-target-int'; "
                     "the nearest is x-target-init");
    put_system("x-target-init pin=1234\n");
    refused(-EINVAL, "@/system/p11-proxy.module:1: a line that is not `name: value`, "
                     "starting with 'x-target-init'");
}
END_TEST

START_TEST(an_unknown_key_is_answered_with_the_nearest)
{
    line_refused("x-pool-sise: 1", "unknown key 'x-pool-sise'; the nearest is x-pool-size");
    line_refused("x-disabled-algoritms: MD5",
                 "unknown key 'x-disabled-algoritms'; the nearest is x-disabled-algorithms");
    line_refused("x-Policy: audit", "unknown key 'x-Policy'; the nearest is x-policy");
    line_refused("X-LOG: off", "unknown key 'X-LOG'; the nearest is x-log");
    line_refused("x-: 1", "unknown key 'x-'; the nearest is x-log");
    line_refused("x-log\x1b[2J: 1", "unknown key 'x-log\\x1b[2J'; the nearest is x-log");
}
END_TEST

START_TEST(a_key_that_lost_its_x_is_not_taken_for_a_foreign_one)
{
    line_refused("disabled-algorithms: MD5",
                 "unknown key 'disabled-algorithms'; the nearest is x-disabled-algorithms");
    line_refused("\xEF\xBB\xBFx-pol: MD5", "unknown key 'x-pol'; the nearest is x-pool");
}
END_TEST

START_TEST(keys_of_p11_kit_and_of_others_are_ignored)
{
    struct config *c;

    put_system("module: p11-proxy.so\ncritical: no\nenable-in: a, b\ndisable-in: c\nmanaged: yes\n"
               "priority: 3\nremote: |ssh a b\ntrust-policy: no\nlog-calls: yes\n"
               "server-address: unix:path=/x\nx-init-reserved: a\nx-trust-lookup: b\n"
               "setting.2: text\nmodule: twice.so\n");
    c = load();
    for (int i = 0; i < CONFIG_KEYS; i++)
        ck_assert_ptr_null(c->settings[i].from);
    config_free(c);
}
END_TEST

START_TEST(white_space_comments_crlf_and_a_byte_order_mark_are_harmless)
{
    struct config *c;

    put_system("\xEF\xBB\xBFx-pool: off\r\n\r\n  \t \n#x-pool: on\n   # x-pool: on\n"
               "\t x-pool-size \t:\t 8KiB \t\r\nx-pool-max-age:20s\n\v\nx-policy: audit");
    c = load();
    ck_assert(!c->pool);
    ck_assert_uint_eq(c->pool_size_bytes, 8192);
    ck_assert_uint_eq(c->pool_max_age_ms, 20000);
    ck_assert_int_eq(c->policy, CONFIG_POLICY_AUDIT);
    ck_assert_uint_eq(config_find(c, "x-pool-size")->line, 6);
    config_free(c);

    put_system("");
    config_free(load());
}
END_TEST

START_TEST(a_line_without_a_name_or_colon_is_refused)
{
    put_system("x-pool: on\n\njunk here\n");
    refused(-EINVAL, "@/system/p11-proxy.module:3: a line that is not `name: value`, "
                     "starting with 'junk'");
    line_refused(": value", "a line that is not `name: value`, starting with ''");
    line_refused("x-pool=off", "a line that is not `name: value`, starting with 'x-pool'");
}
END_TEST

START_TEST(a_repeated_key_is_refused_with_both_lines)
{
    put_system("# one\nx-pool: on\nmodule: a\n\nx-pool: on\n");
    refused(-EINVAL, "@/system/p11-proxy.module:5: x-pool is already set on line 2");
}
END_TEST

START_TEST(a_long_value_is_cut_and_control_characters_are_spelled_out)
{
    char line[256] = "x-pool-mix: ";
    char rest[256] = "x-pool-mix is not one of none, kernel: '";

    memset(line + strlen(line), 'a', 100);
    memset(rest + strlen(rest), 'a', 80);
    strcat(rest, "...'");
    line_refused(line, rest);
    line_refused("x-pool-mix: a\x1b]0;b\x07\xff",
                 "x-pool-mix is not one of none, kernel: 'a\\x1b]0;b\\x07\\xff'");
}
END_TEST

START_TEST(what_is_not_a_small_text_file_is_refused_at_once)
{
    static char huge[FILE_MOST_BYTES + 1];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = below("system/p11-proxy.module");
    int fd;

    ck_assert_int_eq(mkdir(path, 0755), 0);
    refused(-EISDIR, "@/system/p11-proxy.module: is a directory, not a file");
    rmdir(path);

    ck_assert_int_eq(mkfifo(path, 0644), 0);
    refused(-EINVAL, "@/system/p11-proxy.module: is not a regular file");
    unlink(path);

    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    strcpy(address.sun_path, path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    refused(-ENXIO, "@/system/p11-proxy.module: cannot be read: No such device or address");
    close(fd);
    unlink(path);

    put_bytes("system/p11-proxy.module", "x-pool: off\0\n", 13);
    refused(-EINVAL, "@/system/p11-proxy.module: holds a NUL byte, so it is not a text file");

    memset(huge, '\n', sizeof huge);
    put_bytes("system/p11-proxy.module", huge, sizeof huge);
    refused(-EFBIG, "@/system/p11-proxy.module: is larger than 1MiB");
    put_bytes("system/p11-proxy.module", huge, sizeof huge - 1);
    config_free(load());
}
END_TEST

START_TEST(every_line_of_a_long_file_counts)
{
    static const char first[] = "x-pool: off\n", last[] = "x-statistics: off\n";
    static char text[FILE_MOST_BYTES / 2];
    struct config *config;

    memset(text, '\n', sizeof text);
    memcpy(text, first, sizeof first - 1);
    memcpy(text + sizeof text - sizeof last + 1, last, sizeof last - 1);
    put_bytes("system/p11-proxy.module", text, sizeof text);
    config = load();
    ck_assert(!config->pool);
    ck_assert(!config->statistics);
    config_free(config);
}
END_TEST

START_TEST(a_dangling_link_is_a_file_that_cannot_be_read)
{
    ck_assert_int_eq(symlink("/nowhere/at/all", below("system/p11-proxy.module")), 0);
    refused(-ENOENT, "@/system/p11-proxy.module: cannot be read: No such file or directory");
}
END_TEST

START_TEST(the_distance_of_words_counts_letters_and_not_case)
{
    char long_word[300];

    ck_assert_uint_eq(edit_distance("x-pool", "X-POOL"), 0);
    ck_assert_uint_eq(edit_distance("", "abc"), 3);
    ck_assert_uint_eq(edit_distance("abc", ""), 3);
    ck_assert_uint_eq(edit_distance("kitten", "sitting"), 3);
    memset(long_word, 'a', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = '\0';
    ck_assert_uint_eq(edit_distance(long_word, "a"), SIZE_MAX);
}
END_TEST

START_TEST(each_kind_of_bad_target_has_its_own_message)
{
    struct config *c = load();

    ck_assert_int_eq(config_check_target(c, &said), -EDESTADDRREQ);
    same_text(said.text, "no token's module is configured: set x-target in "
                         "@/system/p11-proxy.module, or P11_PROXY_TARGET");
    config_free(c);

    places.env_target = "/nowhere.so";
    c = load();
    ck_assert_int_eq(config_check_target(c, &said), -ENOENT);
    same_text(said.text, "P11_PROXY_TARGET: x-target does not exist: '/nowhere.so'");
    config_free(c);

    places.env_target = below("targets");
    c = load();
    ck_assert_int_eq(config_check_target(c, &said), -EISDIR);
    same_text(said.text, "P11_PROXY_TARGET: x-target is a directory, not a module: '@/targets'");
    config_free(c);

    places.env_target = "/dev/null";
    c = load();
    ck_assert_int_eq(config_check_target(c, &said), -EINVAL);
    same_text(said.text, "P11_PROXY_TARGET: x-target is not a regular file: '/dev/null'");
    config_free(c);

    put("targets/real.so", "");
    places.env_target = NULL;
    put_system("x-target: real.so");
    c = load();
    ck_assert_int_eq(config_check_target(c, &said), 0);
    config_free(c);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("values and files");
    Suite *suite = suite_create("config");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tcase, HANG_S);
    tcase_add_checked_fixture(tcase, fixture_setup, fixture_teardown);
    tcase_add_test(tcase, without_any_file_everything_has_its_default);
    tcase_add_test(tcase, every_key_takes_what_the_manual_says);
#define LOOP(test, table) tcase_add_loop_test(tcase, test, 0, (int)(sizeof table / sizeof table[0]))
    LOOP(a_size_is_bytes_kib_or_mib, sizes);
    LOOP(a_duration_is_ms_s_or_min, ages);
    LOOP(a_bad_size_is_quoted_with_the_range, bad_sizes);
    LOOP(a_bad_duration_is_quoted_with_range_and_units, bad_ages);
    tcase_add_test(tcase, a_comment_behind_a_value_is_found_out);
    tcase_add_test(tcase, a_bad_word_is_answered_with_the_permitted_ones);
    tcase_add_test(tcase, a_target_is_never_relative_to_the_working_folder);
    tcase_add_test(tcase, a_plain_target_name_is_found_in_the_module_directory);
    tcase_add_test(tcase, a_missing_plain_name_that_is_overridden_does_no_harm);
    tcase_add_test(tcase, an_empty_init_string_is_set_and_an_absent_one_is_not);
    tcase_add_test(tcase, the_init_string_is_never_shown);
    tcase_add_test(tcase, an_unknown_key_is_answered_with_the_nearest);
    tcase_add_test(tcase, a_key_that_lost_its_x_is_not_taken_for_a_foreign_one);
    tcase_add_test(tcase, keys_of_p11_kit_and_of_others_are_ignored);
    tcase_add_test(tcase, white_space_comments_crlf_and_a_byte_order_mark_are_harmless);
    tcase_add_test(tcase, a_line_without_a_name_or_colon_is_refused);
    tcase_add_test(tcase, a_repeated_key_is_refused_with_both_lines);
    tcase_add_test(tcase, a_long_value_is_cut_and_control_characters_are_spelled_out);
    tcase_add_test(tcase, what_is_not_a_small_text_file_is_refused_at_once);
    tcase_add_test(tcase, every_line_of_a_long_file_counts);
    tcase_add_test(tcase, a_dangling_link_is_a_file_that_cannot_be_read);
    tcase_add_test(tcase, the_distance_of_words_counts_letters_and_not_case);
    tcase_add_test(tcase, each_kind_of_bad_target_has_its_own_message);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
