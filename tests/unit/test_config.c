/* test_config.c - what a file may say, and what is answered when it says something else. */
#include <sys/syscall.h>

#include "base/file.h"
#include "config_fixture.h"

/* Those of the words are the first ones of their enums; tests/package compares all with the documents. */
TEST(without_any_file_everything_has_its_default)
{
    A_CONFIG *c = load();
    ck_assert_ptr_null(c->target);
    ck_assert_ptr_null(c->target_init);
    ck_assert(c->pool && c->statistics);
    ck_assert_uint_eq(c->pool_size_bytes, 64 * 1024);
    ck_assert_uint_eq(c->pool_max_age_ms, 10000);
    ck_assert_ptr_null(c->disabled_algorithms);
    ck_assert_int_eq(c->log.destination, LOG_TO_SYSLOG);
    ck_assert_int_eq(c->log.level, LOG_LEVEL_WARNING);
}

/* With white space, comments, CRLF, a byte order mark, and keys of p11-kit and of others, which count for nothing. */
TEST(every_key_takes_what_the_manual_says)
{
    write_in_root(module_file,
                  "\xEF\xBB\xBFx-target: /usr/lib/real.so\r\n\r\n  \t \n#x-pool: on\n"
                  "x-target-init: configdir='/a b' flags=x:y\n"
                  "\t x-pool-size \t:\t 1MiB \t\r\nx-pool-max-age:500ms\n"
                  "x-pool: off\n"
                  "x-pool-threads: require\n"
                  "x-pool-on-seed: keep\n"
                  "x-pool-mix: kernel\n"
                  "x-pool-lock-memory: never\n"
                  "x-disabled-algorithms: MD5, RSA keySize < 2048\n"
                  "x-disabled-algorithms-file: /etc/list\n"
                  "x-policy: audit\n"
                  "x-statistics: off\n"
                  "module: p11-proxy.so\nmodule: twice.so\nx-init-reserved: a\nsetting.2: b\n"
                  "x-log: /var/log/p11 debug");
    A_CONFIG *c = load();
    ck_assert_str_eq(c->target, "/usr/lib/real.so");
    ck_assert_str_eq(c->target_init, "configdir='/a b' flags=x:y");
    ck_assert_str_eq(config_find(c, "x-target-init")->text, "(hidden)");
    ck_assert(!c->pool);
    ck_assert_uint_eq(c->pool_size_bytes, 1024 * 1024);
    ck_assert_uint_eq(config_find(c, "x-pool-size")->line, 6);
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
}

TEST(a_size_and_a_duration_have_their_units)
{
    static const struct {
        const char *lines;
        unsigned bytes, ms;
    } cases[] = {{"x-pool-size: 4096\nx-pool-max-age: 10ms", 4096, 10},
                 {"x-pool-size: 64 KiB\nx-pool-max-age: 10 s", 65536, 10000},
                 {"x-pool-size: 16MiB\nx-pool-max-age: 60 min", 16777216, 3600000}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        write_in_root(module_file, cases[i].lines);
        A_CONFIG *c = load();
        ck_assert_uint_eq(c->pool_size_bytes, cases[i].bytes);
        ck_assert_uint_eq(c->pool_max_age_ms, cases[i].ms);
    }
}

/* The values that are no such thing, and the message, to which each is added. */
static const struct {
    const char *key, *right;
    const char *values[12]; /* up to NULL */
} wrong[] = {
    {"x-pool-size",
     "between 4KiB and 16MiB, in bytes, KiB or MiB",
     {"", "4095", "17MiB", "-4096", "KiB", "64k", "0x1000", "4.5MiB", "4096 # bytes",
      "18014398509481985KiB", "99999999999999999999999"}},
    {"x-pool-max-age",
     "between 10ms and 60min, in ms, s or min",
     {"", "9ms", "61min", "-1s", "10", "1h", "1.5s", "10KiB", "99999999999999999999min"}},
    {"x-pool", "one of off, on", {"yes", "On", ""}},
    {"x-pool-threads", "one of auto, never, require", {"auto, never", "auto,"}},
    {"x-pool-mix", "one of none, kernel", {"xor"}},
    {"x-log",
     "off, syslog, stderr or an absolute path without blanks, alone or with one of error, warning, "
     "info, debug after it",
     {"journal", "relative/path", "syslog loud", ""}},
    {"x-disabled-algorithms-file", "an absolute path", {"list", ""}},
    /* A target is never relative to the working directory. */
    {"x-target", "an absolute path or a plain file name", {"./real.so", "a/b", ".", "..", ""}},
};

TEST_EACH(a_wrong_value_is_quoted_behind_what_would_be_right, 0, COUNT_OF(wrong))
{
    for (int i = 0; i == 0 || wrong[_i].values[i] != NULL; i++) {
        write_in_root(module_file, text_of("\n%s: %s", wrong[_i].key, wrong[_i].values[i]));
        refused(text_of("@/system/p11-proxy.module:2: %s is not %s: '%s'", wrong[_i].key,
                        wrong[_i].right, wrong[_i].values[i]));
    }
}

TEST(a_wrong_line_is_answered_with_what_would_be_right)
{
    static const char *const cases[][2] = {
        {"x-pool-mix: a\x1b]0;b\x07\xff",
         "1: x-pool-mix is not one of none, kernel: 'a\\x1b]0;b\\x07\\xff'"},
        {"x-Policy: audit", "1: unknown key 'x-Policy'; the nearest is x-policy"},
        {"x-log\x1b[2J: 1", "1: unknown key 'x-log\\x1b[2J'; the nearest is x-log"},
        /* A key that lost its x- is not another program's. */
        {"disabled-algorithms: MD5",
         "1: unknown key 'disabled-algorithms'; the nearest is x-disabled-algorithms"},
        {"x-pool: on\n\njunk here", "3: a line that is not `name: value`, starting with 'junk'"},
        {": value", "1: a line that is not `name: value`, starting with ''"},
        {"# one\nx-pool: on\nmodule: a\n\nx-pool: on", "5: x-pool is already set on line 2"},
        /* What may be a PIN is not shown. */
        {"x-target-init: pin=1234\nx-target-init: pin=5678",
         "2: x-target-init is already set on line 1"},
        {"x-target-int: pin=1234", "1: unknown key 'x-target-int'; the nearest is x-target-init"},
        {"x-target-init pin=1234",
         "1: a line that is not `name: value`, starting with 'x-target-init'"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        write_in_root(module_file, cases[i][0]);
        refused(text_of("@/system/p11-proxy.module:%s", cases[i][1]));
    }
}

/* What they say is in the tests of p11-proxy check. */
TEST(mistakes_are_told_up_to_a_bound_and_the_rest_counts)
{
    write_in_root("pkcs11.conf", "user-config: maybe\n");
    write_in_root(module_file,
                  "x-policy: audit\na\na\na\na\na\na\na\na\na\na\na\na\na\na\na\na\na\na\n");
    A_CONFIG *c = config_read(&places);
    ck_assert_uint_eq(c->mistake_count, CONFIG_MISTAKES_MOST);
    must_read(c->mistakes[0].text,
              "@/pkcs11.conf:1: user-config is not one of none, merge, only, override: 'maybe'");
    ck_assert_int_eq(c->policy, CONFIG_POLICY_AUDIT);
}

TEST(what_is_not_a_small_text_file_is_refused_at_once)
{
    static char huge[FILE_MOST_BYTES + 1];
    const char *path = in_root(module_file);
    ck_assert_int_eq(mkfifo(path, 0644), 0);
    refused("@/system/p11-proxy.module: is not a regular file");
    unlink(path);
    ck_assert_int_eq(symlink("/nowhere/at/all", path), 0);
    refused("@/system/p11-proxy.module: cannot be read: No such file or directory");
    unlink(path);
    write_bytes_in_root(module_file, "x-pool: off\0\n", 13);
    refused("@/system/p11-proxy.module: holds a NUL byte, so it is not a text file");
    memset(huge, '\n', sizeof huge);
    write_bytes_in_root(module_file, huge, sizeof huge);
    refused("@/system/p11-proxy.module: is larger than 1MiB");
    write_bytes_in_root(module_file, huge, FILE_MOST_BYTES);
    config_free(load());
}

static const char *written_meanwhile; /* to the file that is read next, NULL: nothing */

/* In place of libc's. */
ssize_t read(int fd, void *buf, size_t len_bytes)
{
    if (written_meanwhile != NULL)
        write_in_root(module_file, written_meanwhile);
    written_meanwhile = NULL;
    return syscall(SYS_read, fd, buf, len_bytes);
}

TEST_EACH(a_file_that_is_written_meanwhile_is_neither_the_old_nor_the_new_one, 0, 3)
{
    static const char *const news[] = {"x-pool: off\nx-log: off\n", "x-pool: on\n", ""};
    write_in_root(module_file, "x-pool: off\n");
    written_meanwhile = news[_i];
    refused("@/system/p11-proxy.module: is being written");
}

TEST(a_file_that_tells_no_size_is_read)
{
    ck_assert_int_eq(symlink("/proc/self/comm", in_root(module_file)), 0);
    refused("@/system/p11-proxy.module:1: a line that is not `name: value`, starting with "
            "'test_config'");
}

TEST(a_target_with_a_plain_name_is_of_the_module_directory)
{
    struct message message;
    write_in_root(module_file, "\nx-target: real.so\n");
    A_CONFIG *c = load();
    must_read(c->target, "@/targets/real.so");
    ck_assert_str_eq(config_find(c, "x-target")->text, "real.so");
    ck_assert_int_ne(config_check_target(c, &message), 0);
    must_read(message.text, "@/system/p11-proxy.module:2: x-target cannot be read (No such file or "
                            "directory): '@/targets/real.so'");
    write_in_root("targets/real.so", "");
    ck_assert_int_eq(config_check_target(c, &message), 0);
}
