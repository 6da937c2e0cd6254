/* writers.c - files that a user other than root and this one can write, or replace. */
#include "check/check.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { USERS_BYTES = 64 };

/*
 * Reports which other users may write a file, or replace those in a folder, with the commands that end that.
 * False if there is no such user. above is "" or "a folder above ".
 */
static bool report_writers(const char *about, const char *above, const char *what, const char *path)
{
    char users[USERS_BYTES] = "everybody";
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
    if (!everybody && owner)
        snprintf(users, sizeof users, "user %u", (unsigned)st.st_uid);
    else if (!everybody)
        snprintf(users, sizeof users, "group %u", (unsigned)st.st_gid);
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
