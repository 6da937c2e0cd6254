/* settings.c - what is configured and where: files that others may write, the log file, the policy. */
#include "check/check.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
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

void check_writers(const char *about, const char *what, const char *path)
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

static void report_mistake(const char *about, const char *text)
{
    report_add(MARK_PROBLEM, about,
               "%s\n"
               "correct that; until then C_Initialize answers CKR_GENERAL_ERROR",
               text);
}

void check_settings(void)
{
    const struct config *config = checked.config;
    char origin[MESSAGE_BYTES];
    const char *seen = "";
    /* The rest is checked as if these lines were not there. */
    for (unsigned i = 0; i < config->mistake_count; i++)
        report_mistake("configuration", config->mistakes[i].text);
    for (int i = 0; i < CONFIG_KEYS; i++) {
        const struct config_setting *setting = &config->settings[i];
        if (setting->from == NULL)
            continue;
        report_add(MARK_OK, "configuration", "%s: %s (%s)", setting->key, setting->text,
                   config_origin(setting, origin, sizeof origin));
        if (setting->from[0] == '/' && strcmp(setting->from, seen) != 0)
            check_writers("configuration", "the configuration", setting->from);
        seen = setting->from;
    }
    report_add(MARK_OK, "configuration", "other keys have the default, see p11-proxy.module(5)");
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

void check_policy(void)
{
    const struct config *config = checked.config;
    const struct policy_rule *rule;
    struct policy *policy; /* until the program ends */
    struct message message;
    size_t items = 0, idle = 0;
    if (config->disabled_algorithms_file != NULL)
        check_writers("policy", "the list of algorithms", config->disabled_algorithms_file);
    if (policy_load(&policy, config, hear_warning, NULL, &message) != 0) {
        report_mistake("policy", message.text);
        return;
    }
    for (; (rule = policy_rule(policy, items)) != NULL; items++)
        idle += rule->no_effect != NULL;
    bool is_audit = policy_is_audit(policy);
    if (policy == NULL)
        report_add(MARK_OK, "policy", "no algorithm is disabled");
    else
        report_add(is_audit || idle > 0 ? MARK_NOTE : MARK_OK, "policy",
                   "items in the policy: %zu, without effect here: %zu%s\n"
                   "p11-proxy policy shows what each denies, or why it denies nothing",
                   items, idle, is_audit ? "; x-policy is audit, so nothing is refused" : "");
}
