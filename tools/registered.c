/* registered.c - the modules that p11-kit's files register. */
#include "registered.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "config/config_lines.h"

static struct registration *entry_of(struct registrations *all, const char *name)
{
    struct registration *more;

    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(all->entry[i].name, name) == 0)
            return &all->entry[i];
    }
    more = realloc(all->entry, (all->count + 1) * sizeof all->entry[0]);
    if (more == NULL)
        return NULL;
    all->entry = more;
    more[all->count] = (struct registration){0};
    snprintf(more[all->count].name, sizeof more->name, "%s", name);
    return &more[all->count++];
}

static void read_file(struct registrations *all, const char *path, const char *module_directory)
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
            snprintf(entry->disabled_in, sizeof entry->disabled_in, "%s", value);
    }
    free(text);
}

static void read_folder(struct registrations *all, const char *folder, const char *module_directory)
{
    char pattern[PATH_MAX];
    glob_t matches;

    snprintf(pattern, sizeof pattern, "%.*s/*.module", PATH_MAX - 16, folder);
    if (glob(pattern, 0, NULL, &matches) == 0) {
        for (size_t i = 0; i < matches.gl_pathc; i++)
            read_file(all, matches.gl_pathv[i], module_directory);
    }
    globfree(&matches);
}

int registrations_read(struct registrations *all, const struct config_places *places,
                       struct message *message)
{
    char user_modules[PATH_MAX];
    enum config_user mode;
    int rc = config_user_mode(&mode, places, message);

    *all = (struct registrations){0};
    if (rc != 0)
        return rc;
    snprintf(user_modules, sizeof user_modules, "%.*s/modules", PATH_MAX - 16, places->user_config);
    if (mode != CONFIG_USER_ONLY) {
        read_folder(all, places->package_modules, places->target_directory);
        read_folder(all, places->system_modules, places->target_directory);
    }
    if (mode != CONFIG_USER_NONE)
        read_folder(all, user_modules, places->target_directory);
    snprintf(all->folder, sizeof all->folder, "%s",
             mode == CONFIG_USER_ONLY ? user_modules : places->system_modules);
    return 0;
}

const struct registration *registration_of(const struct registrations *all, const char *path)
{
    struct stat wanted, st;

    for (size_t i = 0; i < all->count && stat(path, &wanted) == 0; i++) {
        if (stat(all->entry[i].module, &st) == 0 && st.st_dev == wanted.st_dev &&
            st.st_ino == wanted.st_ino)
            return &all->entry[i];
    }
    return NULL;
}

void registrations_free(struct registrations *all)
{
    free(all->entry);
    *all = (struct registrations){0};
}
