/* p11_kit.c - whether p11-kit knows the proxy, and the target's tokens by another module. */
#include "check/check.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "registered.h"

static bool are_one_file(const char *path_a, const char *path_b)
{
    struct stat a, b;

    return stat(path_a, &a) == 0 && stat(path_b, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* A registered module that is asked for its tokens. */
struct question {
    const struct registration *entry;
    const char *folder; /* where a file would hide it */
    bool is_seen_by_target;
};

static bool is_of_target(const struct report *report, const CK_TOKEN_INFO *info)
{
    for (size_t i = 0; i < report->token_count; i++) {
        if (memcmp(report->tokens[i], info, TOKEN_ID_BYTES) == 0)
            return true;
    }
    return false;
}

static void report_double(struct report *report, const struct question *question, const char *label)
{
    const struct registration *entry = question->entry;
    char path[2 * PATH_MAX];
    bool exists;

    snprintf(path, sizeof path, "%s/%s", question->folder, entry->name);
    exists = access(path, F_OK) == 0;
    report_add(report, MARK_NOTE, "p11-kit",
               "p11-kit has token '%s' by another module too (%s), so programs%s%s see it twice",
               label, entry->name, entry->disabled_in[0] != '\0' ? " other than " : "",
               entry->disabled_in);
    if (question->is_seen_by_target)
        report_hint(report, "set x-target to the token's own module instead of p11-kit-proxy.so");
    else
        report_hint(report, "%s the line enable-in: nothing %s %s", exists ? "add" : "write",
                    exists ? "to" : "into a new file", path);
}

static void compare_tokens(struct report *report, const void *context)
{
    const struct question *question = context;
    CK_SLOT_ID slots[TOKENS_MOST] = {0};
    CK_ULONG count = TOKENS_MOST;
    struct token_module module;
    struct message message;
    bool locks;

    report_stage(report, question->entry->name);
    if (token_load(&module, question->entry->module, &message) != 0 ||
        token_start(&module, NULL, &locks) != CKR_OK ||
        module.list->C_GetSlotList(CK_TRUE, slots, &count) != CKR_OK)
        return;
    for (CK_ULONG i = 0; i < count; i++) {
        CK_TOKEN_INFO info = {0};
        char label[sizeof info.label + 1];
        if (module.list->C_GetTokenInfo(slots[i], &info) != CKR_OK || !is_of_target(report, &info))
            continue;
        token_text(label, info.label, sizeof info.label);
        report_double(report, question, label);
        break; /* one line for a module is enough */
    }
    module.list->C_Finalize(NULL);
}

void check_p11_kit(struct report *report, const struct checked *checked)
{
    const struct registration *own = NULL;
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
    for (size_t i = 0; i < all.count && own == NULL; i++)
        own = are_one_file(all.entry[i].module, checked->module_path) ? &all.entry[i] : NULL;
    if (own == NULL || own->limited)
        report_add(report, MARK_OK, "p11-kit",
                   "p11-kit does not %s: programs have to be pointed at %s",
                   own == NULL ? "know the proxy" : "show the proxy to all programs",
                   checked->module_path);
    else if (own->disabled_in[0] != '\0')
        report_add(report, MARK_OK, "p11-kit", "p11-kit shows the proxy to all programs but %s",
                   own->disabled_in);
    if (own != NULL && !own->limited && report->token_count > 0) {
        /* What is hidden from a program is hidden from p11-kit's own module in it, too. */
        bool is_kit = strstr(checked->config->target, "/p11-kit-proxy.so") != NULL;
        size_t before = report->count;
        for (size_t i = 0; i < all.count; i++) {
            const struct question question = {&all.entry[i], all.folder, is_kit};
            if (&all.entry[i] != own && !all.entry[i].limited && all.entry[i].module[0] != '\0')
                report_from_child(report, MARK_NOTE, "p11-kit", compare_tokens, &question);
        }
        if (report->count == before)
            report_add(report, MARK_OK, "p11-kit",
                       "p11-kit has the target's tokens only through the proxy");
    }
    registrations_free(&all);
}
