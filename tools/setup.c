/* setup.c - p11-proxy setup: registers the proxy for a token's module with p11-kit, and takes that back. */
#include "tool.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { TEXT_BYTES = 4 * PATH_MAX };

/* Lines of a file. */
static const char not_in_kit[] = "disable-in: p11-kit-proxy\n", hidden[] = "enable-in: nothing\n";

static struct {
    struct config_places places;
    char module_path[PATH_MAX];
    char folder[PATH_MAX];     /* that is written to */
    char name[NAME_MAX + 1];   /* of the proxy's file there */
    char mark[NAME_MAX + 128]; /* the first line of each file that is written for it */
    bool undoes, dry_run;
    int code;
} setup;

static void complain(const char *what, const char *path)
{
    setup.code = say("%s: %s", what, path);
}

/* Whether the text is what setup writes, with no line more. */
static bool is_own(const char *text)
{
    const char *rest = text + strlen(setup.mark);
    int len = 0;
    if (strncmp(text, setup.mark, strlen(setup.mark)) != 0)
        return false;
    sscanf(rest, "module: %*[^\n]\nx-target: %*[^\n]\n%n", &len);
    rest += len;
    return len > 0 ? *rest == '\0' || strcmp(rest, not_in_kit) == 0 : strcmp(rest, hidden) == 0;
}

/* Makes the folder that is written to and those above it. */
static void make_folder(void)
{
    for (char *slash = strchr(setup.folder + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(setup.folder, 0755);
        *slash = '/';
    }
    mkdir(setup.folder, 0755);
}

/* Never touches a file that is there. */
static void write_file(const char *name, const char *lines)
{
    char path[2 * PATH_MAX], text[TEXT_BYTES + sizeof setup.mark], *old = NULL;
    struct message message;
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", setup.folder, name);
    snprintf(text, sizeof text, "%s%s", setup.mark, lines);
    if (access(path, F_OK) == 0) {
        bool is_read = file_read(&old, path, &message) == 0;
        if (is_read && strcmp(old, text) == 0)
            printf("%s is as it should be\n", path);
        else if (is_read && is_own(old))
            complain("is of another target; first: p11-proxy setup --undo", path);
        else {
            complain("exists already; add these lines to it by hand", path);
            fputs(lines, stderr);
        }
        free(old);
        return;
    }
    printf("%s %s:\n%s", setup.dry_run ? "would write" : "writes", path, text);
    if (setup.dry_run)
        return;
    make_folder();
    file = fopen(path, "wxe"); /* not through a link */
    bool is_written = file != NULL && fputs(text, file) >= 0;
    is_written = file != NULL && fclose(file) == 0 && is_written;
    if (!is_written)
        complain(strerror(errno), path);
    if (!is_written && file != NULL)
        unlink(path);
}

static void set_up(const char *target)
{
    char path[2 * PATH_MAX], real[PATH_MAX], lines[TEXT_BYTES], name[NAME_MAX + 16];
    struct registered registered = {.is_module = true};
    /* As x-target is looked up. */
    snprintf(path, sizeof path, "%s%s%s", target[0] == '/' ? "" : setup.places.target_directory,
             target[0] == '/' ? "" : "/", target);
    /* p11-kit's own module would load the proxy in turn. Nothing is hidden then, because it offers the other modules. */
    bool is_kit = strstr(path, "/p11-kit-proxy.so") != NULL;
    if (realpath(path, real) == NULL || access(real, R_OK) != 0)
        complain("the target cannot be read", path);
    else if (strcmp(real, setup.module_path) == 0)
        complain("the target is the proxy itself", path);
    else if (!is_kit && !registered_find(&registered, setup.module_path, path))
        complain("the target or a module that p11-kit has registered crashes or hangs", path);
    else if (!registered.is_module) /* if it starts is not asked: a token may be plugged in later */
        complain("the target cannot be loaded as a PKCS#11 module", path);
    if (setup.code != EXIT_FINE)
        return;
    snprintf(lines, sizeof lines, "module: %s\nx-target: %s\n%s", setup.module_path, path,
             is_kit ? not_in_kit : "");
    write_file(setup.name, lines);
    for (size_t i = 0; i < registered.double_count && setup.code == EXIT_FINE; i++) {
        snprintf(name, sizeof name, "%s.module", registered.doubles[i]);
        write_file(name, hidden);
    }
}

static void undo(void)
{
    char pattern[PATH_MAX + 16], *text;
    struct message message;
    size_t removed = 0;
    glob_t matches;
    snprintf(pattern, sizeof pattern, "%s/*.module", setup.folder);
    if (glob(pattern, 0, NULL, &matches) != 0)
        matches.gl_pathc = 0;
    for (size_t i = 0; i < matches.gl_pathc; i++) {
        const char *path = matches.gl_pathv[i];
        if (file_read(&text, path, &message) != 0)
            continue;
        if (is_own(text)) {
            printf("%s %s\n", setup.dry_run ? "would remove" : "removes", path);
            if (!setup.dry_run && unlink(path) != 0)
                complain(strerror(errno), path);
            removed++;
        } else if (strncmp(text, setup.mark, strlen(setup.mark)) == 0)
            complain("was changed since; remove it by hand", path);
        free(text);
    }
    if (removed == 0 && setup.code == EXIT_FINE)
        puts("there is nothing to take back");
    globfree(&matches);
}

static int run(void)
{
    char **targets = request.arguments;
    const char *path = request.module_path;
    if (setup.undoes ? targets[0] != NULL : targets[0] == NULL || targets[1] != NULL)
        usage_error(setup.undoes ? "--undo takes no target" : "it takes one target");
    if (realpath(path, setup.module_path) == NULL)
        return say("the proxy is not there; --module says where it is: %s", path);
    if (is_link_to_other(path, setup.module_path))
        return say("for another target the proxy has to be a copy, and this is a link: %s", path);
    const char *name = strrchr(setup.module_path, '/') + 1, *end = strstr(name, ".so");
    int len = (int)(end != NULL && end[3] == '\0' ? end - name : (ptrdiff_t)strlen(name));
    snprintf(setup.name, sizeof setup.name, "%.*s.module", len, name);
    snprintf(setup.mark, sizeof setup.mark,
             "# Written by p11-proxy setup for %s. p11-proxy setup --undo removes it.\n",
             setup.name);
    config_places_default(&setup.places, path);
    registered_folder(setup.folder, &setup.places);
    umask(S_IWGRP | S_IWOTH); /* all users have to read what is written */
    if (setup.undoes)
        undo();
    else
        set_up(targets[0]);
    return end_of_output(setup.code);
}

const struct command setup_command = {
    .name = "setup",
    .summary = "register the proxy with p11-kit for a token's module",
    .usage =
        "p11-proxy setup [--dry-run] [--module PATH] TARGET\n"
        "       p11-proxy setup --undo [--dry-run] [--module PATH]\n\n"
        "Registers the proxy with p11-kit for the token's module TARGET, and hides other modules\n"
        "that p11-kit has for the same tokens. Writes new files into /etc/pkcs11/modules, or,\n"
        "for a user other than root, into ~/.config/pkcs11/modules. Changes no file of others.",
    .takes_arguments = true,
    .options = {{"dry-run", "", "only show what would be done", .is_given = &setup.dry_run},
                {"undo", "", "remove the files that setup wrote, unless they were changed since",
                 .is_given = &setup.undoes},
                OPTION_MODULE},
    .exit_codes = "0 done, 1 something is left to do by hand, 2 wrong usage.",
    .run = run,
};
