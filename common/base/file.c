/* file.c - reads a whole small regular file. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Why a file of this kind, owner and mode is not read; NULL if it is. */
static const char *kind_complaint(const struct stat *st, bool secure)
{
    if (S_ISDIR(st->st_mode))
        return "is a directory, not a file";
    if (!S_ISREG(st->st_mode))
        return "is not a regular file";
    if (secure && st->st_uid != 0)
        return "is not owned by root, in a setuid or setgid program";
    if (secure && (st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return "can be written by group or others, in a setuid or setgid program";
    return NULL;
}

/* Reads all, or one byte more than is permitted; not by st_size, since a file may grow. Returns how
 * many bytes, or -1 with errno. */
static ssize_t read_all(int fd, char *content)
{
    ssize_t held = 0, n = 1;

    while (n != 0 && held <= FILE_MOST_BYTES) {
        n = pread(fd, content + held, (size_t)(FILE_MOST_BYTES + 1 - held), held);
        if (n < 0 && errno != EINTR)
            return -1;
        held += n > 0 ? n : 0;
    }
    return held;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* As file_read(), into room for FILE_MOST_BYTES + 2. *complaint stays NULL if errno tells the reason. */
static int read_fd(char *content, int fd, bool secure, const char **complaint)
{
    struct stat before, after;
    ssize_t len = 0;
    bool whole = false;

    /* Half of the old text and half of the new one is neither. A file in /proc has size 0. */
    for (int tries = 0; tries < 2 && !whole; tries++) {
        if (fstat(fd, &before) != 0)
            return -errno;
        *complaint = kind_complaint(&before, secure);
        if (*complaint != NULL)
            return -EINVAL;
        len = read_all(fd, content);
        if (len < 0 || fstat(fd, &after) != 0)
            return -errno;
        whole = len > FILE_MOST_BYTES ||
                (is_same(&before, &after) && (after.st_size == 0 || after.st_size == len));
    }
    content[len] = '\0';
    if (!whole)
        *complaint = "is being written";
    else if (len > FILE_MOST_BYTES)
        *complaint = "is larger than 1MiB";
    else if (strlen(content) != (size_t)len)
        *complaint = "holds a NUL byte, so it is not a text file";
    return *complaint != NULL ? -EINVAL : 0;
}

int file_read(char **text, const char *path, bool secure, struct message *message)
{
    /* O_NONBLOCK: a FIFO in this place must not hang the program that loads the module. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    char *content = fd >= 0 ? malloc(FILE_MOST_BYTES + 2) : NULL;
    const char *complaint = NULL;
    int rc = content != NULL ? read_fd(content, fd, secure, &complaint) : -errno;

    if (rc == 0 && (*text = strdup(content)) == NULL)
        rc = -ENOMEM;
    if (rc == 0) {
        explicit_bzero(content, strlen(content)); /* it may hold a PIN */
    } else {
        errno = -rc;
        message_set(message, complaint != NULL ? "%s: %s" : "%s: cannot be read: %m", path,
                    complaint);
    }
    free(content);
    if (fd >= 0)
        close(fd);
    return rc;
}
