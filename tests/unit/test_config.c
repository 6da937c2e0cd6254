/* test_config.c - what a file may say, and what is answered when it says something else. */
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "../check_main.h"
#include "base/file.h"
#include "config_fixture.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static const char module_file[] = "system/p11-proxy.module";

TEST(without_any_file_everything_has_its_default)
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

TEST(every_key_takes_what_the_manual_says)
{
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
    struct config *c = load();
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

TEST(a_size_and_a_duration_have_their_units)
{
    static const struct {
        const char *line;
        unsigned bytes, ms; /* 0: not looked at */
    } cases[] = {{"x-pool-size: 4096", 4096, 0},         {"x-pool-size: 4KiB", 4096, 0},
                 {"x-pool-size: 64 KiB", 65536, 0},      {"x-pool-size: 64\tKiB", 65536, 0},
                 {"x-pool-size: 16MiB", 16777216, 0},    {"x-pool-size: 16384KiB", 16777216, 0},
                 {"x-pool-size: 16777216", 16777216, 0}, {"x-pool-size: 00004096", 4096, 0},
                 {"x-pool-max-age: 10ms", 0, 10},        {"x-pool-max-age: 10 s", 0, 10000},
                 {"x-pool-max-age: 1min", 0, 60000},     {"x-pool-max-age: 60 min", 0, 3600000},
                 {"x-pool-max-age: 3600s", 0, 3600000},  {"x-pool-max-age: 3600000ms", 0, 3600000}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        put_system(cases[i].line);
        struct config *c = load();
        ck_assert(cases[i].bytes == 0 || c->pool_size_bytes == cases[i].bytes);
        ck_assert(cases[i].ms == 0 || c->pool_max_age_ms == cases[i].ms);
        config_free(c);
    }
}

TEST(a_bad_amount_is_quoted_with_range_and_units)
{
    static const char *const sizes[] = {"",
                                        "4095",
                                        "17MiB",
                                        "16777217",
                                        "-4096",
                                        "+4096",
                                        "KiB",
                                        "0",
                                        "64k",
                                        "64kb",
                                        "4 K iB",
                                        "0x1000",
                                        "4.5MiB",
                                        "64ms",
                                        "4096 bytes",
                                        "3 fish",
                                        "18014398509481985KiB",
                                        "99999999999999999999999"};
    static const char *const ages[] = {"",
                                       "9ms",
                                       "61min",
                                       "3601s",
                                       "0s",
                                       "-1s",
                                       "s",
                                       "10",
                                       "1h",
                                       "10sec",
                                       "1.5s",
                                       "10KiB",
                                       "99999999999999999999min"};
    char line[64], answer[128];
    for (size_t i = 0; i < COUNT(sizes); i++) {
        snprintf(line, sizeof line, "x-pool-size: %s", sizes[i]);
        snprintf(answer, sizeof answer,
                 "x-pool-size is not between 4KiB and 16MiB, in bytes, KiB or MiB: '%s'", sizes[i]);
        line_refused(line, answer);
    }
    for (size_t i = 0; i < COUNT(ages); i++) {
        snprintf(line, sizeof line, "x-pool-max-age: %s", ages[i]);
        snprintf(answer, sizeof answer,
                 "x-pool-max-age is not between 10ms and 60min, in ms, s or min: '%s'", ages[i]);
        line_refused(line, answer);
    }
}

TEST(a_wrong_line_is_answered_with_what_would_be_right)
{
    static const struct {
        const char *line, *answer;
    } cases[] = {
        {"x-pool: yes", "x-pool is not one of off, on: 'yes'"},
        {"x-statistics:", "x-statistics is not one of off, on: ''"},
        {"x-pool-threads: Auto", "x-pool-threads is not one of auto, never, require: 'Auto'"},
        {"x-pool-threads: auto, never",
         "x-pool-threads is not one of auto, never, require: 'auto, never'"},
        {"x-pool-on-seed: x", "x-pool-on-seed is not one of flush, keep: 'x'"},
        {"x-pool-mix: xor", "x-pool-mix is not one of none, kernel: 'xor'"},
        {"x-pool-lock-memory: always", "x-pool-lock-memory is not one of auto, never: 'always'"},
        {"x-policy: off", "x-policy is not one of enforce, audit: 'off'"},
        {"x-log: journal",
         "x-log is not off, syslog, stderr or an absolute path without blanks, alone or with one "
         "of error, warning, info, debug after it: 'journal'"},
        {"x-disabled-algorithms-file: list",
         "x-disabled-algorithms-file is not an absolute path: 'list'"},
        /* A target is never relative to the working directory. */
        {"x-target: ./real.so",
         "x-target is not an absolute path or a plain file name: './real.so'"},
        {"x-target: ..", "x-target is not an absolute path or a plain file name: '..'"},
        {"x-target:", "x-target is not an absolute path or a plain file name: ''"},
        {"x-pool-size: 64KiB # enough",
         "x-pool-size is not between 4KiB and 16MiB, in bytes, KiB or MiB: '64KiB # enough'; a "
         "comment needs a line of its own"},
        {"x-pool-mix: a\x1b]0;b\x07\xff",
         "x-pool-mix is not one of none, kernel: 'a\\x1b]0;b\\x07\\xff'"},

        {"x-pool-sise: 1", "unknown key 'x-pool-sise'; the nearest is x-pool-size"},
        {"x-disabled-algoritms: MD5",
         "unknown key 'x-disabled-algoritms'; the nearest is x-disabled-algorithms"},
        {"x-Policy: audit", "unknown key 'x-Policy'; the nearest is x-policy"},
        {"X-LOG: off", "unknown key 'X-LOG'; the nearest is x-log"},
        {"x-: 1", "unknown key 'x-'; the nearest is x-log"},
        {"x-log\x1b[2J: 1", "unknown key 'x-log\\x1b[2J'; the nearest is x-log"},
        /* A key that lost its x- is not another program's. */
        {"disabled-algorithms: MD5",
         "unknown key 'disabled-algorithms'; the nearest is x-disabled-algorithms"},
        {"\xEF\xBB\xBFx-pol: MD5", "unknown key 'x-pol'; the nearest is x-pool"},

        {"junk here", "a line that is not `name: value`, starting with 'junk'"},
        {": value", "a line that is not `name: value`, starting with ''"},
        {"x-pool=off", "a line that is not `name: value`, starting with 'x-pool'"},

        /* What may be a PIN is not shown. */
        {"x-target-int: pin=1234", "unknown key 'x-target-int'; the nearest is x-target-init"},
        {"x-target-init pin=1234",
         "a line that is not `name: value`, starting with 'x-target-init'"}};
    for (size_t i = 0; i < COUNT(cases); i++)
        line_refused(cases[i].line, cases[i].answer);
}

TEST(a_long_value_is_cut)
{
    char line[128], answer[128];
    snprintf(line, sizeof line, "x-pool-mix: %0100d", 0);
    snprintf(answer, sizeof answer, "x-pool-mix is not one of none, kernel: '%080d...'", 0);
    line_refused(line, answer);
}

TEST(the_message_has_the_line)
{
    put_system("x-pool: on\n\njunk here\n");
    refused("@/system/p11-proxy.module:3: a line that is not `name: value`, starting with 'junk'");
    put_system("# one\nx-pool: on\nmodule: a\n\nx-pool: on\n");
    refused("@/system/p11-proxy.module:5: x-pool is already set on line 2");
    put_system("x-target-init: pin=1234\nx-target-init: pin=5678\n");
    refused("@/system/p11-proxy.module:2: x-target-init is already set on line 1");
    put_system("x-pool: 1\nx-policy: 1\n"); /* the first mistake counts */
    refused("@/system/p11-proxy.module:1: x-pool is not one of off, on: '1'");
}

static void add_mistake(void *context, const char *text)
{
    strcat(strcat(context, text), "\n");
}

TEST(all_mistakes_are_told_and_the_rest_counts)
{
    char told[4096] = "";
    places.mistake = add_mistake;
    places.mistake_context = told;
    places.env_log = "loud";
    put("pkcs11.conf", "user-config: maybe\n");
    put_system("x-pool: 1\njunk\nx-pol: on\nx-pool-size: 1\nx-pool-max-age: 1\nx-policy: audit\n");
    struct config *c = load();
    ck_assert_int_eq(c->policy, CONFIG_POLICY_AUDIT);
    ck_assert(c->pool);
    ck_assert_uint_eq(c->pool_size_bytes, 64 * 1024);
    ck_assert_uint_eq(c->pool_max_age_ms, 10000);
    same_text(
        told,
        "@/pkcs11.conf:1: user-config is not one of none, merge, only, override: 'maybe'\n"
        "@/system/p11-proxy.module:1: x-pool is not one of off, on: '1'\n"
        "@/system/p11-proxy.module:2: a line that is not `name: value`, starting with 'junk'\n"
        "@/system/p11-proxy.module:3: unknown key 'x-pol'; the nearest is x-pool\n"
        "@/system/p11-proxy.module:4: x-pool-size is not between 4KiB and 16MiB, in bytes, "
        "KiB or MiB: '1'\n"
        "@/system/p11-proxy.module:5: x-pool-max-age is not between 10ms and 60min, in ms, s "
        "or min: '1'\n"
        "P11_PROXY_LOG: x-log is not off, syslog, stderr or an absolute path without blanks, "
        "alone or with one of error, warning, info, debug after it: 'loud'\n");
    config_free(c);
}

TEST(an_empty_init_string_is_set_and_is_never_shown)
{
    put_system("x-target-init:\nx-disabled-algorithms:\n");
    struct config *c = load();
    ck_assert_str_eq(c->target_init, "");
    ck_assert_str_eq(c->disabled_algorithms, "");
    config_free(c);

    put_system("x-target-init: pin=1234\n");
    c = load();
    ck_assert_str_eq(config_find(c, "x-target-init")->text, "(hidden)");
    config_free(c);
}

TEST(keys_of_p11_kit_and_of_others_are_ignored)
{
    put_system("module: p11-proxy.so\ncritical: no\nenable-in: a, b\ndisable-in: c\nmanaged: yes\n"
               "priority: 3\nremote: |ssh a b\ntrust-policy: no\nlog-calls: yes\n"
               "server-address: unix:path=/x\nx-init-reserved: a\nx-trust-lookup: b\n"
               "setting.2: text\nmodule: twice.so\n");
    struct config *c = load();
    for (int i = 0; i < CONFIG_KEYS; i++)
        ck_assert_ptr_null(c->settings[i].from);
    config_free(c);
}

TEST(white_space_comments_crlf_and_a_byte_order_mark_are_harmless)
{
    put_system("\xEF\xBB\xBFx-pool: off\r\n\r\n  \t \n#x-pool: on\n   # x-pool: on\n"
               "\t x-pool-size \t:\t 8KiB \t\r\nx-pool-max-age:20s\n\v\nx-policy: audit");
    struct config *c = load();
    ck_assert(!c->pool);
    ck_assert_uint_eq(c->pool_size_bytes, 8192);
    ck_assert_uint_eq(c->pool_max_age_ms, 20000);
    ck_assert_int_eq(c->policy, CONFIG_POLICY_AUDIT);
    ck_assert_uint_eq(config_find(c, "x-pool-size")->line, 6);
    config_free(c);

    put_system("");
    config_free(load());
}

TEST(what_is_not_a_small_text_file_is_refused_at_once)
{
    static char huge[FILE_MOST_BYTES + 1];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = below(module_file);

    ck_assert_int_eq(mkdir(path, 0755), 0);
    refused("@/system/p11-proxy.module: is a directory, not a file");
    rmdir(path);

    ck_assert_int_eq(mkfifo(path, 0644), 0);
    refused("@/system/p11-proxy.module: is not a regular file");
    unlink(path);

    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    strcpy(address.sun_path, path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    refused("@/system/p11-proxy.module: cannot be read: No such device or address");
    close(fd);
    unlink(path);

    ck_assert_int_eq(symlink("/nowhere/at/all", path), 0);
    refused("@/system/p11-proxy.module: cannot be read: No such file or directory");
    unlink(path);

    put_bytes(module_file, "x-pool: off\0\n", 13);
    refused("@/system/p11-proxy.module: holds a NUL byte, so it is not a text file");

    memset(huge, '\n', sizeof huge);
    put_bytes(module_file, huge, sizeof huge);
    refused("@/system/p11-proxy.module: is larger than 1MiB");
    put_bytes(module_file, huge, sizeof huge - 1);
    config_free(load());
}

static const char *written_meanwhile; /* to the file that is read next, NULL: nothing */

/* In place of libc's. */
ssize_t read(int fd, void *buf, size_t len_bytes)
{
    if (written_meanwhile != NULL)
        put_bytes(module_file, written_meanwhile, strlen(written_meanwhile));
    written_meanwhile = NULL;
    return syscall(SYS_read, fd, buf, len_bytes);
}

TEST_EACH(a_file_that_is_written_meanwhile_is_neither_the_old_nor_the_new_one, 0, 3)
{
    static const char *const news[] = {"x-pool: off\nx-log: off\n", "x-pool: on\n", ""};
    put_system("x-pool: off\n");
    written_meanwhile = news[_i];
    refused("@/system/p11-proxy.module: is being written");
}

TEST(a_file_that_tells_no_size_is_read)
{
    ck_assert_int_eq(symlink("/proc/self/comm", below(module_file)), 0);
    refused("@/system/p11-proxy.module:1: a line that is not `name: value`, starting with "
            "'test_config'");
}

TEST(every_line_of_a_long_file_counts)
{
    static const char first[] = "x-pool: off\n", last[] = "x-statistics: off\n";
    static char text[FILE_MOST_BYTES / 2];
    memset(text, '\n', sizeof text);
    memcpy(text, first, sizeof first - 1);
    memcpy(text + sizeof text - sizeof last + 1, last, sizeof last - 1);
    put_bytes(module_file, text, sizeof text);
    struct config *config = load();
    ck_assert(!config->pool);
    ck_assert(!config->statistics);
    config_free(config);
}

TEST(a_plain_target_name_is_found_in_the_module_directory)
{
    put("targets/real.so", "");
    put_system("x-target: real.so\n");
    struct config *c = load();
    same_text(c->target, "@/targets/real.so");
    ck_assert_str_eq(config_find(c, "x-target")->text, "real.so");
    ck_assert_int_eq(config_check_target(c, &said), 0);
    config_free(c);
}

TEST(each_kind_of_bad_target_has_its_own_message)
{
    target_refused(NULL, "no token's module is configured: set x-target in "
                         "@/system/p11-proxy.module, or P11_PROXY_TARGET");
    target_refused("/nowhere.so", "P11_PROXY_TARGET: x-target does not exist: '/nowhere.so'");
    target_refused("nowhere.so", "P11_PROXY_TARGET: x-target is not in @/targets: 'nowhere.so'");
    target_refused(below("targets"),
                   "P11_PROXY_TARGET: x-target is a directory, not a module: '@/targets'");
    target_refused("/dev/null", "P11_PROXY_TARGET: x-target is not a regular file: '/dev/null'");
    put_system("\nx-target: other.so\n");
    target_refused(NULL, "@/system/p11-proxy.module:2: x-target is not in @/targets: 'other.so'");
}

int main(void)
{
    return test_main("config", fixture_setup, NULL);
}
