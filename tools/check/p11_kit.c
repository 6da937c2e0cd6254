/* p11_kit.c - whether p11-kit knows the proxy, and the target's tokens by another module. */
#include "check/check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "registered.h"

static void report_double(struct report *report, const struct registration *entry,
                          const char *folder, const char *label, bool is_seen_by_target)
{
    char path[2 * PATH_MAX];
    bool exists;

    snprintf(path, sizeof path, "%s/%s", folder, entry->name);
    exists = access(path, F_OK) == 0;
    report_add(report, MARK_NOTE, "p11-kit",
               "p11-kit has token '%s' by another module too (%s), so programs%s%s see it twice",
               label, entry->name, entry->disabled_in[0] != '\0' ? " other than " : "",
               entry->disabled_in);
    if (is_seen_by_target)
        report_hint(report, "set x-target to the token's own module instead of p11-kit-proxy.so");
    else
        report_hint(report, "%s the line enable-in: nothing %s %s", exists ? "add" : "write",
                    exists ? "to" : "into a new file", path);
}

static void report_doubles(struct report *report, const struct config *config,
                           const struct registrations *all, const struct registration *own)
{
    /* What is hidden from a program is hidden from p11-kit's own module in it, too. */
    bool is_kit = strstr(config->target, "/p11-kit-proxy.so") != NULL;
    struct token_ids of_target, of_entry;
    size_t before = report->count;
    char label[33];

    token_ids_of(&of_target, config->target, config->target_init);
    for (size_t i = 0; i < all->count; i++) {
        const struct registration *entry = &all->entry[i];
        if (entry == own || entry->limited || entry->module[0] == '\0')
            continue;
        token_ids_of(&of_entry, entry->module, NULL);
        if (token_ids_meet(&of_target, &of_entry, label))
            report_double(report, entry, all->folder, label, is_kit);
    }
    if (report->count == before && of_target.count > 0)
        report_add(report, MARK_OK, "p11-kit",
                   "p11-kit has the target's tokens only through the proxy");
}

void check_p11_kit(struct report *report, const struct checked *checked, bool target_works)
{
    const struct registration *own;
    struct registrations all;
    struct config_places places;
    struct message message;

    config_places_default(&places, checked->module_path);
    check_p11_kit_paths(report, &places);
    if (registrations_read(&all, &places, &message) != 0) {
        report_add(report, MARK_PROBLEM, "p11-kit", "%s", message.text);
        report_hint(report, "correct that; p11-kit may refuse it too");
        return;
    }
    own = registration_of(&all, checked->module_path);
    if (own == NULL || own->limited)
        report_add(report, MARK_OK, "p11-kit",
                   "p11-kit does not %s: programs have to be pointed at %s",
                   own == NULL ? "know the proxy" : "show the proxy to all programs",
                   checked->module_path);
    else if (own->disabled_in[0] != '\0')
        report_add(report, MARK_OK, "p11-kit", "p11-kit shows the proxy to all programs but %s",
                   own->disabled_in);
    if (own != NULL && !own->limited && target_works)
        report_doubles(report, checked->config, &all, own);
    registrations_free(&all);
}
