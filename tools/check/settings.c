/* settings.c - what is configured and where: files that others may write, the log file, policy, target's file. */
#include "check/check.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Reports which users other than root and this one may write a file, or replace those in a folder, with the
 * commands that end that. False if there is no such user. above is "" or "a folder above ".
 */
static bool report_writers(const char *about, const char *above, const char *what, const char *path)
{
    char users[64] = "everybody";
    struct stat st;
    if (stat(path, &st) != 0)
        return false;
    /* In such a folder all may write, but each user can remove only files of his own. */
    bool sticky = S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX) != 0;
    bool everybody = (st.st_mode & S_IWOTH) != 0 && !sticky;
    bool group = (st.st_mode & S_IWGRP) != 0 && st.st_gid != 0 && !sticky;
    bool owner = st.st_uid != 0 && st.st_uid != getuid();
    if (!everybody && !group && !owner)
        return false;
    if (!everybody)
        snprintf(users, sizeof users, owner ? "user %u" : "group %u",
                 (unsigned)(owner ? st.st_uid : st.st_gid));
    report_add(everybody ? MARK_PROBLEM : MARK_NOTE, about,
               "%s may write %s%s: %s\n%s%s%s%schmod go-w %s", users, above, what, path,
               everybody ? "" : "if that is not intended: ", owner ? "chown root " : "",
               owner ? path : "", owner ? " && " : "", path);
    return true;
}

/* what names the file in the sentence. */
static void check_writers(const char *about, const char *what, const char *path)
{
    char place[PATH_MAX];
    const char *folder = place;
    report_writers(about, "", what, path);
    /* The right to write a folder is the right to replace each file and folder in it. */
    snprintf(place, sizeof place, "%s", path);
    do
        folder = dirname((char *)folder);
    while (!report_writers(about, "a folder above ", what, folder) && strcmp(folder, "/") != 0 &&
           strcmp(folder, ".") != 0);
}

/* Whether the log file could be written, or made as the log makes it; errno says why not. It is not made. */
static bool can_be_logged_to(const char *path)
{
    char folder[PATH_MAX];
    int fd = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 || errno != ENOENT)
        return fd >= 0;
    snprintf(folder, sizeof folder, "%s", path);
    return faccessat(AT_FDCWD, dirname(folder), W_OK | X_OK, AT_EACCESS) == 0;
}

void check_settings(const struct config *config)
{
    char origin[MESSAGE_BYTES];
    const char *seen = ""; /* the files come one after the other, but keys as in the manual */
    int defaults = 0;
    for (int i = 0; i < CONFIG_KEYS; i++) {
        const struct config_setting *setting = &config->settings[i];
        if (setting->from == NULL) {
            defaults++;
            continue;
        }
        report_add(MARK_OK, "configuration", "%s: %s (%s)", setting->key, setting->text,
                   config_origin(setting, origin, sizeof origin));
        if (setting->from[0] == '/' && strcmp(setting->from, seen) != 0)
            check_writers("configuration", "the configuration", setting->from);
        seen = setting->from;
    }
    report_add(MARK_OK, "configuration", "%d %s the default, see p11-proxy.module(5)", defaults,
               defaults == 1 ? "key has" : "keys have");
    if (!config->pool)
        report_add(MARK_NOTE, "configuration",
                   "the pool is off: every request goes to the token\n"
                   "remove x-pool: off if that is not intended");
    if (config->log.destination == LOG_TO_FILE && !can_be_logged_to(config->log.path))
        report_add(MARK_NOTE, "configuration",
                   "user %u cannot write the log file (%m): %s; syslog gets the lines instead\n"
                   "let all users of the token write it, or set x-log: syslog",
                   (unsigned)geteuid(), config->log.path);
}

static void hear_warning(void *unused, const char *message)
{
    (void)unused;
    report_add(MARK_NOTE, "policy",
               "%s\n"
               "remove it, or correct it if it was meant to refuse something",
               message);
}

void check_policy(struct checked *checked)
{
    const struct config *config = checked->config;
    const struct policy_rule *rule;
    struct message message;
    size_t items = 0, idle = 0;
    if (config->disabled_algorithms_file != NULL)
        check_writers("policy", "the list of algorithms", config->disabled_algorithms_file);
    if (policy_load(&checked->policy, config, hear_warning, NULL, &message) != 0) {
        report_add(MARK_PROBLEM, "policy",
                   "%s\ncorrect that; until then C_Initialize answers CKR_GENERAL_ERROR",
                   message.text);
        return;
    }
    if (checked->policy == NULL) {
        report_add(MARK_OK, "policy", "no algorithm is disabled");
        return;
    }
    for (; (rule = policy_rule(checked->policy, items)) != NULL; items++)
        idle += policy_no_effect(rule) != NULL;
    if (policy_is_audit(checked->policy))
        report_add(MARK_NOTE, "policy",
                   "x-policy is audit: nothing is refused; the list has %zu item%s\n"
                   "set x-policy: enforce once the log shows nothing that must go on working",
                   items, items == 1 ? "" : "s");
    else
        report_add(MARK_OK, "policy", "a policy of %zu item%s is in force, see p11-proxy policy",
                   items, items == 1 ? "" : "s");
    if (idle > 0)
        report_add(MARK_NOTE, "policy",
                   "%zu item%s no effect here\np11-proxy policy shows which, and why", idle,
                   idle == 1 ? " has" : "s have");
}

/* Whether two files are one, or one is a copy of the other. */
static bool are_alike(const char *path_a, const char *path_b)
{
    FILE *a = fopen(path_a, "re"), *b = fopen(path_b, "re");
    int byte = a != NULL && b != NULL ? 0 : EOF;
    bool alike = byte != EOF;
    while (alike && byte != EOF)
        alike = (byte = getc(a)) == getc(b);
    if (a != NULL)
        fclose(a);
    if (b != NULL)
        fclose(b);
    return alike;
}

bool check_target(const struct checked *checked)
{
    const struct config *config = checked->config;
    struct message message;
    char real[PATH_MAX];
    if (config_check_target(config, &message) != 0) {
        report_add(MARK_PROBLEM, "target",
                   "%s\n"
                   "p11-proxy setup PATH writes it, with the path of the token's own PKCS#11 "
                   "module; or write x-target: PATH into %s",
                   message.text, config->expected_file);
        return false;
    }
    if (are_alike(config->target, checked->module_path)) {
        report_add(MARK_PROBLEM, "target",
                   "the target is this proxy itself, or a copy: %s\n"
                   "set x-target to the token's own PKCS#11 module",
                   config->target);
        return false;
    }
    /* Of the file, not of a link to it. */
    check_writers("target", "the target",
                  realpath(config->target, real) != NULL ? real : config->target);
    return true;
}
