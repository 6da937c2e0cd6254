/* check_writers.c - files that somebody else than root and this user can write, or replace. */
#include "check/check_parts.h"

#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WHO_BYTES = 64 };

/* Who may write a file, or put another in the place of those in a folder. */
struct writers {
    bool everybody;
    bool group;    /* one that is not root's */
    bool stranger; /* its owner is neither root nor this user, and may do as he likes */
    uid_t uid;
    gid_t gid;
};

static struct writers writers_of(const struct stat *st)
{
    /* In such a folder everybody may write, but touch his own files only. */
    bool sticky = S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) != 0;

    return (struct writers){
        .everybody = (st->st_mode & S_IWOTH) != 0 && !sticky,
        .group = (st->st_mode & S_IWGRP) != 0 && st->st_gid != 0 && !sticky,
        .stranger = st->st_uid != 0 && st->st_uid != getuid(),
        .uid = st->st_uid,
        .gid = st->st_gid,
    };
}

static void put_who(char who[WHO_BYTES], const struct writers *writers)
{
    char user[WHO_BYTES / 2] = "", group[WHO_BYTES / 2] = "";

    if (writers->stranger)
        snprintf(user, sizeof user, "user %u", (unsigned)writers->uid);
    if (writers->group)
        snprintf(group, sizeof group, "group %u", (unsigned)writers->gid);
    snprintf(who, WHO_BYTES, "%s%s%s", user, user[0] != '\0' && group[0] != '\0' ? " and " : "",
             group);
}

/* What takes the right from all of them, not only from those whom the sentence names. */
static void advise_commands(struct findings *findings, const struct writers *writers,
                            const char *path)
{
    const char *modes = writers->everybody && writers->group ? "chmod go-w "
                        : writers->everybody                 ? "chmod o-w "
                        : writers->group                     ? "chmod g-w "
                                                             : "";
    bool has_modes = modes[0] != '\0';

    advise(findings, "%s%s%s%s%s%s",
           writers->everybody ? "" : "whoever that is decides; if that is not meant: ",
           writers->stranger ? "chown root " : "", writers->stranger ? path : "",
           writers->stranger && has_modes ? " && " : "", modes, has_modes ? path : "");
}

/* False: nobody else may write it. of is "" or "the folder of ". */
static bool find_writers(struct findings *findings, const char *about, const char *of,
                         const char *what, const char *path)
{
    struct writers writers;
    char who[WHO_BYTES];
    struct stat st;

    if (stat(path, &st) != 0)
        return false;
    writers = writers_of(&st);
    put_who(who, &writers);
    if (!writers.everybody && who[0] == '\0')
        return false;
    if (writers.everybody)
        found(findings, MARK_PROBLEM, about, "everybody may write %s%s: %s", of, what, path);
    else
        found(findings, MARK_NOTE, about, "%s may write %s%s: %s", who, of, what, path);
    advise_commands(findings, &writers, path);
    return true;
}

void check_writers(struct findings *findings, const char *about, const char *what, const char *path)
{
    char place[PATH_MAX];
    const char *folder = place;

    find_writers(findings, about, "", what, path);
    /* Who may write a folder may put another file, or folder, in the place of each in it. */
    snprintf(place, sizeof place, "%s", path);
    do
        folder = dirname((char *)folder);
    while (!find_writers(findings, about, "a folder above ", what, folder) &&
           strcmp(folder, "/") != 0 && strcmp(folder, ".") != 0);
}
