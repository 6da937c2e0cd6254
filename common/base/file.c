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
    if (st->st_size > FILE_MOST_BYTES)
        return "is larger than 1MiB";
    return NULL;
}

/* Reads len_bytes, or less at the end of the file. Returns how many, or -1 with errno. */
static ssize_t read_all(int fd, char *content, size_t len_bytes)
{
    size_t held = 0;

    while (held < len_bytes) {
        ssize_t n = read(fd, content + held, len_bytes - held);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            return -1;
        held += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)held;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* As file_read(). *complaint stays NULL if errno tells the reason. */
static char *read_fd(int fd, bool secure, const char **complaint)
{
    struct stat before, after;
    if (fstat(fd, &before) != 0 || (*complaint = kind_complaint(&before, secure)) != NULL)
        return NULL;
    /* A file in /proc tells no size. */
    size_t most = before.st_size != 0 ? (size_t)before.st_size : FILE_MOST_BYTES + 1;
    char *content = calloc(1, most + 1);
    ssize_t held = content != NULL ? read_all(fd, content, most) : -1;
    if (held >= 0 && fstat(fd, &after) == 0) {
        /* Half of the old text and half of the new one is neither. */
        if (!is_same(&before, &after) || (after.st_size != 0 && held != after.st_size))
            *complaint = "is being written";
        else if (held > FILE_MOST_BYTES)
            *complaint = "is larger than 1MiB";
        else if (strlen(content) != (size_t)held)
            *complaint = "holds a NUL byte, so it is not a text file";
        else
            return content;
    }
    if (content != NULL)
        explicit_bzero(content, most); /* it may hold a PIN */
    free(content);
    return NULL;
}

int file_read(char **text, const char *path, bool secure, struct message *message)
{
    /* O_NONBLOCK: a FIFO in this place must not hang the program that loads the module. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    const char *complaint = NULL;
    char *content = fd >= 0 ? read_fd(fd, secure, &complaint) : NULL;
    int rc = content != NULL ? 0 : complaint != NULL ? -EINVAL : -errno;

    if (content != NULL)
        *text = content;
    else
        message_set(message, complaint != NULL ? "%s: %s" : "%s: cannot be read: %m", path,
                    complaint);
    if (fd >= 0)
        close(fd);
    return rc;
}
