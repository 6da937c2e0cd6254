/* policy_file.c - reads the whole of a list file, or says why not. */
#include "policy/policy_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(struct list_problem *problem, int rc, const char *should, int errnum)
{
    *problem = (struct list_problem){0, should, errnum};
    return rc;
}

/* Whether nobody wrote to the file between two looks at it. */
static bool unchanged(const struct stat *before, const struct stat *after, size_t read_bytes)
{
    return before->st_size == after->st_size && (size_t)after->st_size == read_bytes &&
           before->st_mtim.tv_sec == after->st_mtim.tv_sec &&
           before->st_mtim.tv_nsec == after->st_mtim.tv_nsec;
}

static int read_all(int fd, char **text, size_t *len, struct list_problem *problem)
{
    struct stat before, after;

    if (fstat(fd, &before) != 0)
        return fail(problem, -errno, "is not a file that can be read", errno);
    if (!S_ISREG(before.st_mode))
        return fail(problem, -EINVAL, "is not a regular file", 0);
    if (before.st_size > LIST_FILE_BYTES_MAX)
        return fail(problem, -EINVAL, "is not a file of at most 1 MiB", 0);

    /* One byte of room to see a file grow, one for the NUL. */
    size_t room = (size_t)before.st_size + 1, got = 0;
    char *all = malloc(room + 1);
    if (!all)
        return fail(problem, -ENOMEM, "does not fit into memory", 0);
    while (got < room) {
        ssize_t n = read(fd, all + got, room - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int errnum = errno;
            free(all);
            return fail(problem, -errnum, "is not a file that can be read", errnum);
        }
        if (n == 0)
            break;
        got += (size_t)n;
    }
    all[got] = '\0';

    if (fstat(fd, &after) != 0 || !unchanged(&before, &after, got)) {
        free(all);
        return fail(problem, -EINVAL, "is not a finished file, it is being written", 0);
    }
    if (memchr(all, '\0', got)) {
        free(all);
        return fail(problem, -EINVAL, "is not a text file, it holds a NUL byte", 0);
    }
    *text = all;
    *len = got;
    return 0;
}

int list_file_read(const char *path, char **text, size_t *len, struct list_problem *problem)
{
    /* O_NONBLOCK: a FIFO without a writer would hold the program here for good. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fail(problem, -errno, "is not a file that can be read", errno);
    int rc = read_all(fd, text, len, problem);
    close(fd);
    return rc;
}
