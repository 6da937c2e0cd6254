/* check_p11_kit.c - whether p11-kit knows the proxy, and the token's own module beside it. */
#include "check/check_parts.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config_lines.h"
#include "base/file.h"

enum { REGISTRATIONS_MOST = 64 };

/* What all files of one name say together; p11-kit reads them key by key, as we do. */
struct registration {
    char name[NAME_MAX + 1]; /* of the file */
    char module[PATH_MAX];   /* absolute; "": no file says */
    bool limited;            /* enable-in: only the programs that it names see the module */
    char kept_from[256]; /* disable-in: all but the programs that it names; "": it is not there */
};

struct registrations {
    struct registration *entry;
    size_t count;
};

static struct registration *entry_of(struct registrations *all, const char *name)
{
    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(all->entry[i].name, name) == 0)
            return &all->entry[i];
    }
    if (all->count == REGISTRATIONS_MOST)
        return NULL;
    struct registration *new = &all->entry[all->count++];
    *new = (struct registration){0};
    snprintf(new->name, sizeof new->name, "%s", name);
    return new;
}

static void read_registration(struct registrations *all, const char *path,
                              const char *module_directory)
{
    struct registration *entry = entry_of(all, strrchr(path, '/') + 1);
    struct config_lines lines = {0};
    struct message ignored;
    char *text, *name, *value;

    if (entry == NULL || file_read(&text, path, /* secure= */ false, &ignored) != 0)
        return; /* p11-kit goes on without it, too */
    lines.rest = text;
    while (config_lines_next(&lines, &name, &value, &ignored) > 0) {
        if (strcmp(name, "module") == 0)
            snprintf(entry->module, sizeof entry->module, "%s%s%s",
                     value[0] == '/' ? "" : module_directory, value[0] == '/' ? "" : "/", value);
        else if (strcmp(name, "enable-in") == 0)
            entry->limited = true;
        else if (strcmp(name, "disable-in") == 0)
            snprintf(entry->kept_from, sizeof entry->kept_from, "%s", value);
    }
    free(text);
}

static void read_folder(struct registrations *all, const char *folder, const char *rest,
                        const char *module_directory)
{
    char pattern[PATH_MAX];
    glob_t matches;

    if (snprintf(pattern, sizeof pattern, "%s%s/*.module", folder, rest) >= (int)sizeof pattern)
        return;
    if (glob(pattern, 0, NULL, &matches) == 0) {
        for (size_t i = 0; i < matches.gl_pathc; i++)
            read_registration(all, matches.gl_pathv[i], module_directory);
    }
    globfree(&matches);
}

static bool are_one_file(const char *path_a, const char *path_b)
{
    struct stat a, b;

    return path_a != NULL && path_b != NULL && stat(path_a, &a) == 0 && stat(path_b, &b) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* The registration of a module, from *from on; NULL if there is no more. */
static const struct registration *registered(const struct registrations *all, const char *path,
                                             size_t *from)
{
    while (*from < all->count) {
        const struct registration *entry = &all->entry[(*from)++];
        if (entry->module[0] != '\0' && are_one_file(entry->module, path))
            return entry;
    }
    return NULL;
}

static void find_doubles(struct findings *findings, const struct registrations *all,
                         const char *target, const char *folder)
{
    const struct registration *entry;
    bool once = true;

    for (size_t from = 0; (entry = registered(all, target, &from)) != NULL;) {
        char path[2 * PATH_MAX];
        if (entry->limited)
            continue;
        once = false;
        snprintf(path, sizeof path, "%s/%s", folder, entry->name);
        found(findings, MARK_NOTE, "p11-kit",
              "p11-kit knows the token's own module too (%s), so programs%s%s see the token twice",
              entry->name, entry->kept_from[0] != '\0' ? " other than " : "", entry->kept_from);
        advise(findings, "%s the line enable-in: nothing %s %s",
               access(path, F_OK) == 0 ? "add" : "write",
               access(path, F_OK) == 0 ? "to" : "into a new file", path);
    }
    if (once)
        found(findings, MARK_OK, "p11-kit",
              "p11-kit knows the proxy, and the token only through it");
}

void check_p11_kit(struct findings *findings, const struct config *config, const char *module_path)
{
    static struct registration entries[REGISTRATIONS_MOST];
    struct registrations all = {entries, 0};
    struct config_places places;
    char user_modules[PATH_MAX + sizeof "/modules"];
    const char *folder;
    const struct registration *ours;
    enum config_user mode;
    struct message message;
    size_t from = 0;

    config_places_default(&places, module_path);
    check_p11_kit_paths(findings, &places);
    if (config_user_mode(&mode, &places, &message) != 0) {
        found(findings, MARK_PROBLEM, "p11-kit", "%s", message.text);
        advise(findings, "mend that; p11-kit may refuse it too");
        return;
    }
    if (mode != CONFIG_USER_ONLY) {
        read_folder(&all, places.package_modules, "", places.target_directory);
        read_folder(&all, places.system_modules, "", places.target_directory);
    }
    if (mode != CONFIG_USER_NONE)
        read_folder(&all, places.user_config, "/modules", places.target_directory);

    /* The system's folder is for all users, and does not count where the user's own alone does. */
    snprintf(user_modules, sizeof user_modules, "%s/modules", places.user_config);
    folder = mode == CONFIG_USER_ONLY ? user_modules : places.system_modules;
    ours = registered(&all, module_path, &from);
    if (ours == NULL || ours->limited)
        found(findings, MARK_OK, "p11-kit",
              "p11-kit does not %s: programs have to be pointed at %s",
              ours == NULL ? "know the proxy" : "show the proxy to all", module_path);
    else if (ours->kept_from[0] != '\0')
        found(findings, MARK_OK, "p11-kit", "p11-kit shows the proxy to all programs but %s",
              ours->kept_from);
    if (ours != NULL && !ours->limited && config != NULL && config->target != NULL)
        find_doubles(findings, &all, config->target, folder);
}
