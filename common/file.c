/* file.c - reads a whole small regular file. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_kind(int fd, const char *path, bool secure, struct message *message)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        int rc = -errno;

        message_set(message, "%s: cannot be read: %m", path);
        return rc;
    }
    if (S_ISDIR(st.st_mode)) {
        message_set(message, "%s: is a directory, not a file", path);
        return -EISDIR;
    }
    if (!S_ISREG(st.st_mode)) {
        message_set(message, "%s: is not a regular file", path);
        return -EINVAL;
    }
    if (secure && st.st_uid != 0) {
        message_set(message, "%s: is not owned by root, in a setuid or setgid program", path);
        return -EPERM;
    }
    if (secure && (st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        message_set(message, "%s: can be written by group or others, in a setuid or setgid program",
                    path);
        return -EPERM;
    }
    return 0;
}

/* Reads up to most bytes. Not by st_size: a file may grow, and files in /proc have size 0. */
static ssize_t read_all(int fd, char *into, size_t most)
{
    size_t held = 0;

    while (held < most) {
        ssize_t n = read(fd, into + held, most - held);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        held += (size_t)n;
    }
    return (ssize_t)held;
}

int file_read(char **text, const char *path, bool secure, struct message *message)
{
    char *content = NULL;
    char *fitted;
    ssize_t len;
    int rc;
    int fd;

    /* O_NONBLOCK: a FIFO in this place must not hang whoever loads the module. */
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        rc = -errno;
        message_set(message, "%s: cannot be read: %m", path);
        return rc;
    }
    rc = check_kind(fd, path, secure, message);
    if (rc != 0)
        goto done;

    content = malloc(FILE_MOST_BYTES + 2);
    if (content == NULL) {
        message_set(message, "%s: out of memory", path);
        rc = -ENOMEM;
        goto done;
    }
    len = read_all(fd, content, FILE_MOST_BYTES + 1);
    if (len < 0) {
        rc = (int)len;
        errno = -rc;
        message_set(message, "%s: cannot be read: %m", path);
        goto done;
    }
    if (len > FILE_MOST_BYTES) {
        message_set(message, "%s: is larger than 1MiB", path);
        rc = -EFBIG;
        goto done;
    }
    if (memchr(content, '\0', (size_t)len) != NULL) {
        message_set(message, "%s: holds a NUL byte, so it is not a text file", path);
        rc = -EINVAL;
        goto done;
    }
    content[len] = '\0';
    fitted = realloc(content, (size_t)len + 1);
    *text = fitted != NULL ? fitted : content; /* the caller's */
    content = NULL;
done:
    free(content);
    close(fd);
    return rc;
}
