/* file.c - reads a whole small regular file. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Why a text that was read between two looks at the file is not taken; NULL if it is. */
static const char *text_complaint(const char *text, size_t len, const struct stat *before,
                                  const struct stat *after)
{
    /* Half of the old text and half of the new one is neither. */
    if (before->st_size != after->st_size ||
        (after->st_size != 0 && len != (size_t)after->st_size) ||
        before->st_mtim.tv_sec != after->st_mtim.tv_sec ||
        before->st_mtim.tv_nsec != after->st_mtim.tv_nsec)
        return "is being written";
    if (len > FILE_MOST_BYTES)
        return "is larger than 1MiB";
    return strlen(text) != len ? "holds a NUL byte, so it is not a text file" : NULL;
}

/* As file_read(). *complaint stays NULL if errno tells the reason. */
static char *read_fd(int fd, const char **complaint)
{
    struct stat before, after;
    if (fstat(fd, &before) != 0)
        return NULL;
    *complaint = !S_ISREG(before.st_mode)           ? "is not a regular file"
                 : before.st_size > FILE_MOST_BYTES ? "is larger than 1MiB"
                                                    : NULL;
    if (*complaint != NULL)
        return NULL;
    /* A file in /proc tells no size. */
    size_t most = before.st_size != 0 ? (size_t)before.st_size : FILE_MOST_BYTES + 1;
    size_t len = 0;
    ssize_t part = -1;
    char *text = calloc(1, most + 1);
    while (text != NULL && len < most && (part = read(fd, text + len, most - len)) != 0) {
        if (part < 0 && errno != EINTR)
            break;
        len += part > 0 ? (size_t)part : 0;
    }
    if (part >= 0 && fstat(fd, &after) == 0 &&
        (*complaint = text_complaint(text, len, &before, &after)) == NULL)
        return text;
    if (text != NULL)
        explicit_bzero(text, len); /* it may hold a PIN */
    free(text);
    return NULL;
}

int file_read(char **text, const char *path, struct message *message)
{
    /* O_NONBLOCK: a FIFO in this place must not hang the program that loads the module. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    const char *complaint = NULL;
    char *content = fd >= 0 ? read_fd(fd, &complaint) : NULL;
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
