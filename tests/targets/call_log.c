/* call_log.c - appends lines. The file is opened anew for each, so that it may be moved at any time. */
#include "call_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "knobs.h"

static size_t add(char *line, size_t at, size_t most, const char *name, long number)
{
    if (number == NO_NUMBER)
        return at;
    return at + (size_t)snprintf(line + at, most - at, " %s=%ld", name, number);
}

CK_RV call_log(const char *function, long session, long slot, long len_bytes, CK_RV rv)
{
    int saved_errno = errno;
    char path[PATH_MAX];
    char line[256];
    knobs_path("COUNTING_LOG", path);
    if (path[0] == '\0')
        return rv;
    size_t len = (size_t)snprintf(line, sizeof line, "%s", function);
    len = add(line, len, sizeof line, "session", session);
    len = add(line, len, sizeof line, "slot", slot);
    len = add(line, len, sizeof line, "len", len_bytes);
    len += (size_t)snprintf(line + len, sizeof line - len, " rv=0x%lx pid=%ld tid=%ld\n", rv,
                            (long)getpid(), syscall(SYS_gettid));
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) {
        if (write(fd, line, len) != (ssize_t)len)
            errno = EIO;
        close(fd);
    }
    errno = saved_errno;
    return rv;
}
