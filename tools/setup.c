/* setup.c - p11-proxy setup: registers the proxy for a token's module with p11-kit, and takes that back. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "registered.h"

static const char help[] =
    "usage: p11-proxy setup [--dry-run] [--module PATH] TARGET\n"
    "       p11-proxy setup --undo [--dry-run] [--module PATH]\n\n"
    "Registers the proxy with p11-kit for the token's module TARGET, and hides other modules\n"
    "that p11-kit has for the same tokens. Writes new files into /etc/pkcs11/modules, or, for a\n"
    "user other than root, into ~/.config/pkcs11/modules. Changes no file of others.\n\n"
    "  --undo         remove the files that setup wrote, unless they were changed since\n"
    "  --dry-run      only show what would be done\n"
    "  --module PATH  the proxy: its file's name gives that of the configuration\n"
    "  --help         show this\n"
    "  --version      show the version\n\n"
    "Exit code: 0 done, 1 something is left to do by hand, 2 wrong usage.\n";

static const struct option options[] = {
    {"undo", no_argument, NULL, 'u'},
    {"dry-run", no_argument, NULL, 'n'},
    OPTION_MODULE,
    OPTIONS_OF_ALL,
};

enum { TEXT_BYTES = 4 * PATH_MAX };

struct setup {
    char module_path[PATH_MAX];
    char folder[PATH_MAX];     /* that is written to */
    char name[NAME_MAX + 1];   /* of the proxy's file there */
    char mark[NAME_MAX + 128]; /* the first line of each file that is written for it */
    bool dry_run;
    int code;
};

static void complain(struct setup *setup, const char *what, const char *path)
{
    fprintf(stderr, "p11-proxy setup: %s: ", what);
    put_plain(stderr, path);
    putc('\n', stderr);
    setup->code = EXIT_BAD;
}

/* Whether the text is what setup writes, with no line more. */
static bool is_own(const struct setup *setup, const char *text)
{
    static const char *const lines[] = {"module: ", "x-target: ", "enable-in: nothing",
                                        "disable-in: p11-kit-proxy"};
    size_t mark_len = strlen(setup->mark), known = 0;
    if (strncmp(text, setup->mark, mark_len) != 0)
        return false;
    for (text += mark_len; *text != '\0'; text = strchrnul(text, '\n') + 1) {
        known = 0;
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
            known += strncmp(text, lines[i], strlen(lines[i])) == 0;
        if (known == 0 || strchr(text, '\n') == NULL)
            return false;
    }
    return true;
}

/* Makes a folder and those above it. */
static void make_folder(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    mkdir(path, 0755);
}

/* Never touches a file that is there. */
static void write_new(struct setup *setup, const char *path, const char *text)
{
    size_t len = strlen(text);
    int fd;
    printf("%s %s:\n", setup->dry_run ? "would write" : "writes", path);
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1)
        printf("    %.*s\n", (int)strcspn(line, "\n"), line);
    if (setup->dry_run)
        return;
    make_folder(setup->folder);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text, len) != (ssize_t)len) {
        complain(setup, strerror(errno), path);
        if (fd >= 0)
            unlink(path);
    }
    if (fd >= 0)
        close(fd);
}

static void write_file(struct setup *setup, const char *name, const char *lines)
{
    char path[2 * PATH_MAX], text[TEXT_BYTES + sizeof setup->mark];
    struct message message;
    char *old = NULL;
    bool is_there = false;
    snprintf(path, sizeof path, "%s/%s", setup->folder, name);
    snprintf(text, sizeof text, "%s%s", setup->mark, lines);
    is_there = access(path, F_OK) == 0;
    if (is_there && file_read(&old, path, /* secure= */ false, &message) != 0)
        complain(setup, "cannot be read, so it is left alone", path);
    else if (is_there && strcmp(old, text) == 0)
        printf("%s is as it should be\n", path);
    else if (is_there) {
        complain(setup,
                 is_own(setup, old) ? "is of another target; first: p11-proxy setup --undo"
                                    : "exists already; add these lines to it by hand",
                 path);
        fputs(lines, stderr);
    } else
        write_new(setup, path, text);
    free(old);
}

static void set_up(struct setup *setup, const struct config_places *places, const char *target)
{
    char path[2 * PATH_MAX], real[PATH_MAX], lines[TEXT_BYTES], name[NAME_MAX + 16];
    struct registered registered;
    /* As x-target is looked up. */
    snprintf(path, sizeof path, "%s%s%s", target[0] == '/' ? "" : places->target_directory,
             target[0] == '/' ? "" : "/", target);
    if (realpath(path, real) == NULL || access(real, R_OK) != 0) {
        complain(setup, "the target cannot be read", path);
        return;
    }
    if (strcmp(real, setup->module_path) == 0) {
        complain(setup, "the target is the proxy itself", path);
        return;
    }
    /* p11-kit's own module would load the proxy in turn, and lose the modules that are hidden. */
    bool is_kit = strstr(path, "/p11-kit-proxy.so") != NULL;
    if (!is_kit && !registered_find(&registered, setup->module_path, path)) {
        complain(setup, "the target or a module that p11-kit has registered crashes or hangs",
                 path);
        return;
    }
    /* Whether it starts is not asked, because its token may be plugged in later. */
    if (!is_kit && !registered.is_module) {
        complain(setup, "the target cannot be loaded as a PKCS#11 module", path);
        return;
    }
    snprintf(lines, sizeof lines, "module: %s\nx-target: %s\n%s", setup->module_path, path,
             is_kit ? "disable-in: p11-kit-proxy\n" : "");
    write_file(setup, setup->name, lines);
    for (size_t i = 0; !is_kit && i < registered.double_count && setup->code == EXIT_FINE; i++) {
        snprintf(name, sizeof name, "%s.module", registered.doubles[i].name);
        write_file(setup, name, "enable-in: nothing\n");
    }
}

static void undo(struct setup *setup)
{
    char pattern[PATH_MAX + 16], *text;
    struct message message;
    size_t removed = 0;
    glob_t matches;
    snprintf(pattern, sizeof pattern, "%s/*.module", setup->folder);
    if (glob(pattern, 0, NULL, &matches) != 0)
        matches.gl_pathc = 0;
    for (size_t i = 0; i < matches.gl_pathc; i++) {
        const char *path = matches.gl_pathv[i];
        if (file_read(&text, path, /* secure= */ false, &message) != 0)
            continue;
        if (is_own(setup, text)) {
            printf("%s %s\n", setup->dry_run ? "would remove" : "removes", path);
            if (!setup->dry_run && unlink(path) != 0)
                complain(setup, strerror(errno), path);
            removed++;
        } else if (strncmp(text, setup->mark, strlen(setup->mark)) == 0)
            complain(setup, "was changed since; remove it by hand", path);
        free(text);
    }
    if (removed == 0 && setup->code == EXIT_FINE)
        puts("there is nothing to take back");
    globfree(&matches);
}

static int prepare(struct setup *setup, const struct config_places *places, const char *module_path)
{
    const char *name;
    size_t len;
    if (realpath(module_path, setup->module_path) == NULL) {
        complain(setup, "the proxy is not there; --module says where it is", module_path);
        return EXIT_BAD;
    }
    if (is_link_to_other(module_path, setup->module_path)) {
        complain(setup, "for another target the proxy has to be a copy, and this is a link",
                 module_path);
        return EXIT_BAD;
    }
    name = strrchr(setup->module_path, '/') + 1;
    len = strlen(name);
    len -= len > 3 && strcmp(name + len - 3, ".so") == 0 ? 3 : 0;
    snprintf(setup->name, sizeof setup->name, "%.*s.module", (int)len, name);
    snprintf(setup->mark, sizeof setup->mark,
             "# Written by p11-proxy setup for %s. p11-proxy setup --undo removes it.\n",
             setup->name);
    registered_folder(setup->folder, places);
    return EXIT_FINE;
}

int setup_command(int argc, char **argv)
{
    static struct setup setup;
    struct common_options common = {.module_path = default_module()};
    struct config_places places;
    bool undoes = false;
    int option;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        int code = GO_ON;
        if (option == 'u')
            undoes = true;
        else if (option == 'n')
            setup.dry_run = true;
        else
            code = common_option(option, argv[0], help, &common);
        if (code != GO_ON)
            return code;
    }
    if (undoes ? optind < argc : optind + 1 != argc)
        return usage_error(argv[0], undoes ? "--undo takes no target" : "it takes one target");
    umask(S_IWGRP | S_IWOTH); /* all users have to read what is written */
    config_places_default(&places, common.module_path);
    if (prepare(&setup, &places, common.module_path) != EXIT_FINE)
        return EXIT_BAD;
    if (undoes)
        undo(&setup);
    else
        set_up(&setup, &places, argv[optind]);
    return end_of_output(setup.code);
}
