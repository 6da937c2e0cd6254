/* settings.c - what is configured, which files others may write, and what protects the pool here. */
#include "check/check.h"

#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/wipeonfork.h"

enum { CPU_FLAGS_BYTES = 8192 };

void check_writers(const char *about, const char *what, const char *path)
{
    char place[PATH_MAX], users[64];
    const char *at = place, *above = "";
    struct stat st;
    snprintf(place, sizeof place, "%s", path);
    /* The right to write a folder is the right to replace each file and folder in it. */
    for (; stat(at, &st) == 0; at = dirname((char *)at), above = "a folder above ") {
        /* In such a folder all may write, but each user can remove only files of his own. */
        bool sticky = S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX) != 0;
        bool everybody = (st.st_mode & S_IWOTH) != 0 && !sticky;
        bool group = (st.st_mode & S_IWGRP) != 0 && st.st_gid != 0 && !sticky;
        bool owner = st.st_uid != 0 && st.st_uid != getuid();
        snprintf(users, sizeof users, owner ? "user %u" : "group %u",
                 (unsigned)(owner ? st.st_uid : st.st_gid));
        if (everybody || group || owner)
            report_add(everybody ? MARK_PROBLEM : MARK_NOTE, about,
                       "%s may write %s%s: %s\n%s%s%s%schmod go-w %s",
                       everybody ? "everybody" : users, above, what, at,
                       everybody ? "" : "if that is not intended: ", owner ? "chown root " : "",
                       owner ? at : "", owner ? " && " : "", at);
        if (strcmp(at, "/") == 0 || strcmp(at, ".") == 0)
            return;
    }
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
}

static void hear_warning(const char *message)
{
    report_add(MARK_NOTE, "policy",
               "%s\n"
               "remove it, or correct it if it was meant to refuse something",
               message);
}

void check_policy(void)
{
    const struct config *config = checked.config;
    struct policy *policy; /* until the program ends */
    struct message message;
    if (config->disabled_algorithms_file != NULL)
        check_writers("policy", "the list of algorithms", config->disabled_algorithms_file);
    if (policy_load(&policy, config, hear_warning, &message) != 0) {
        report_mistake("policy", message.text);
        return;
    }
    struct policy_counts counts = policy_count(policy);
    bool is_audit = policy_is_audit(policy);
    if (policy == NULL)
        report_add(MARK_OK, "policy", "no algorithm is disabled");
    else
        report_add(is_audit || counts.no_effect > 0 ? MARK_NOTE : MARK_OK, "policy",
                   "items in the policy: %zu, without effect here: %zu%s\n"
                   "p11-proxy policy shows what each denies, or why it denies nothing",
                   counts.items, counts.no_effect,
                   is_audit ? "; x-policy is audit, so nothing is refused" : "");
}

/* Whether the processor says that it is a virtual one; on ARM and others the device tree does. */
static bool is_virtual(void)
{
    char line[CPU_FLAGS_BYTES];
    bool is = access("/sys/hypervisor/type", F_OK) == 0 ||
              access("/proc/device-tree/hypervisor", F_OK) == 0;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file != NULL && !is && fgets(line, sizeof line, file) != NULL)
        is = strncmp(line, "flags", 5) == 0 && strstr(line, " hypervisor") != NULL;
    if (file != NULL)
        fclose(file);
    return is;
}

void check_machine(void)
{
    const struct config *config = checked.config;
    void *page = NULL;
    if (!config->pool)
        return; /* there is nothing to protect */
    if (wipeonfork_map(&page, 1) == 0)
        report_add(MARK_OK, "machine", "the kernel wipes the pool in a forked child");
    else
        report_add(MARK_PROBLEM, "machine",
                   "the kernel does not prove that it wipes memory on fork, so there is no pool: "
                   "every request goes to the token\n"
                   "use Linux 4.14 or later, and no user-mode emulator");
    wipeonfork_unmap(page, 1);
    if (config->pool_mix == CONFIG_MIX_KERNEL)
        report_add(MARK_OK, "machine",
                   "x-pool-mix: kernel makes the bytes of cloned machines differ");
    else if (is_virtual())
        report_add(MARK_NOTE, "machine",
                   "this is a virtual machine: clones of it, and a snapshot that is resumed twice, "
                   "serve the same bytes, for up to x-pool-max-age\n"
                   "set x-pool-mix: kernel, unless it is never cloned or snapshotted while it "
                   "runs");
}
