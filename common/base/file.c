/* file.c - reads a whole small regular file. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Enough for a configuration. */
enum { FIRST_ROOM_BYTES = 4096 };

static int check_kind(int fd, struct stat *found, const char *path, bool secure,
                      struct message *message)
{
    if (fstat(fd, found) != 0) {
        int rc = -errno;

        message_set(message, "%s: cannot be read: %m", path);
        return rc;
    }
    struct stat st = *found;
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

/* Makes room for more. What is there may be secret, so no copy of it stays behind. */
static bool grow(char **content, size_t held_bytes, size_t *room_bytes)
{
    size_t more_bytes = *room_bytes == 0 ? FIRST_ROOM_BYTES : 2 * *room_bytes;
    char *more = malloc(more_bytes);

    if (more == NULL)
        return false;
    if (held_bytes > 0) {
        memcpy(more, *content, held_bytes);
        explicit_bzero(*content, held_bytes);
    }
    free(*content);
    *content = more;
    *room_bytes = more_bytes;
    return true;
}

/* Reads all, or one byte more than is permitted, and leaves room for a NUL. Not by st_size: a file may grow, and
 * files in /proc have size 0. *content is the caller's, whatever comes back. */
static ssize_t read_all(int fd, char **content)
{
    size_t room = 0, held = 0;

    while (held <= FILE_MOST_BYTES) {
        ssize_t n;

        if (held + 1 >= room && !grow(content, held, &room))
            return -ENOMEM;
        n = read(fd, *content + held, room - 1 - held);
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

/* Whether the file was written to since it was found like this and so many bytes were read of it. */
static bool has_changed(int fd, const struct stat *found, ssize_t len)
{
    struct stat now;

    return fstat(fd, &now) != 0 || now.st_size != found->st_size ||
           (now.st_size != 0 && len >= 0 && now.st_size != len) ||
           now.st_mtim.tv_sec != found->st_mtim.tv_sec ||
           now.st_mtim.tv_nsec != found->st_mtim.tv_nsec;
}

int file_read(char **text, const char *path, bool secure, struct message *message)
{
    char *content = NULL;
    char *fitted;
    struct stat found;
    ssize_t len;
    int rc;
    int fd;

    /* O_NONBLOCK: a FIFO in this place must not hang the program that loads the module. */
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        rc = -errno;
        message_set(message, "%s: cannot be read: %m", path);
        return rc;
    }
    rc = check_kind(fd, &found, path, secure, message);
    if (rc != 0)
        goto done;

    len = read_all(fd, &content);
    /* Half of the old text and half of the new one is neither. */
    if (has_changed(fd, &found, len) && len <= FILE_MOST_BYTES && fstat(fd, &found) == 0) {
        free(content);
        content = NULL;
        lseek(fd, 0, SEEK_SET);
        len = read_all(fd, &content);
        if (has_changed(fd, &found, len) && len <= FILE_MOST_BYTES) {
            message_set(message, "%s: is being written", path);
            rc = -EAGAIN;
            goto done;
        }
    }
    if (len < 0) {
        rc = (int)len;
        errno = -rc;
        if (rc == -ENOMEM)
            message_set(message, "%s: out of memory", path);
        else
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
