/* find.c - which processes use the proxy: those that hold a descriptor of their own counters. */
#include "counters/counters.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "tool.h"

struct candidate {
    pid_t pid;
    int fd; /* of its directory in /proc: a later process of this PID does not appear in there */
    char program[PROGRAM_BYTES];
    struct message message; /* about COUNTERS_STRANGE */
};

/* Reads a small file of the process as text. "" if that fails. */
static void read_file(const struct candidate *candidate, const char *name, char *text,
                      size_t text_bytes)
{
    int fd = openat(candidate->fd, name, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, text_bytes - 1) : 0;
    text[len > 0 ? len : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

static void read_program(struct candidate *candidate)
{
    size_t len;
    read_file(candidate, "comm", candidate->program, sizeof candidate->program);
    /* The name may have line ends in it, or half a character at its end; the last byte is a line end. */
    len = strlen(candidate->program);
    candidate->program[len > 0 ? len - 1 : 0] = '\0';
    make_plain(candidate->program);
}

/* The process's PID as the process itself sees it: the last of those that the kernel lists. */
static uint64_t innermost_pid(const struct candidate *candidate)
{
    char status[4096], *at;
    uint64_t pid = (uint64_t)candidate->pid;
    read_file(candidate, "status", status, sizeof status);
    at = strstr(status, "\nNSpid:");
    for (at = at != NULL ? at + strlen("\nNSpid:") : status + strlen(status);
         isdigit((unsigned char)at[strspn(at, " \t")]);)
        pid = strtoull(at, &at, 10);
    return pid;
}

/* Whether a descriptor has the counters' name. errno is EACCES if that may not be known. */
static bool is_named_counters(int directory_fd, const char *name)
{
    static const char wanted[] = "/memfd:" STATISTICS_NAME " (deleted)";
    char target[sizeof wanted + 1];
    ssize_t len = readlinkat(directory_fd, name, target, sizeof target);
    return len == sizeof wanted - 1 && memcmp(target, wanted, sizeof wanted - 1) == 0;
}

/* Opens a descriptor of the process, if it is a file. The process may have put a FIFO or a leased file
 * in its place, so opening does not wait. */
static int open_counters(int directory_fd, const char *name, struct stat *file)
{
    int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || (fstat(fd, file) == 0 && S_ISREG(file->st_mode)))
        return fd;
    close(fd);
    return -1;
}

static bool is_listed(const struct counted_list *list, pid_t pid, const struct stat *file)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct counted_proxy *proxy = &list->proxies[i];
        if (proxy->pid == pid && proxy->device == file->st_dev && proxy->inode == file->st_ino)
            return true;
    }
    return false;
}

static enum counters_result inspect_counters(struct counted_list *list, struct candidate *candidate,
                                             int fd, const struct stat *file)
{
    struct counted_proxy proxy = {
        .pid = candidate->pid, .device = file->st_dev, .inode = file->st_ino};
    if (is_listed(list, proxy.pid, file))
        return COUNTERS_READ;
    enum counters_result result =
        counters_read(&proxy.counters, fd, innermost_pid(candidate), &candidate->message);
    if (result != COUNTERS_READ)
        return result;
    proxy.read_ns = clock_exact_ns();
    memcpy(proxy.program, candidate->program, sizeof proxy.program);
    void *more = realloc(list->proxies, (list->count + 1) * sizeof list->proxies[0]);
    if (more == NULL) {
        free(proxy.counters);
        return COUNTERS_GONE;
    }
    list->proxies = more;
    list->proxies[list->count++] = proxy;
    return result;
}

static enum counters_result inspect_descriptors(struct counted_list *list,
                                                struct candidate *candidate)
{
    int directory_fd = openat(candidate->fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = directory_fd >= 0 ? fdopendir(directory_fd) : NULL;
    enum counters_result best = COUNTERS_UNUSED;
    const struct dirent *entry;
    if (directory == NULL)
        return errno == EACCES || errno == EPERM ? COUNTERS_FORBIDDEN : COUNTERS_GONE;
    while ((entry = readdir(directory)) != NULL) {
        struct stat file;
        errno = 0;
        int fd = is_named_counters(directory_fd, entry->d_name)
                     ? open_counters(directory_fd, entry->d_name, &file)
                     : -1;
        if (errno == EACCES && best == COUNTERS_UNUSED)
            best = COUNTERS_FORBIDDEN;
        if (fd < 0)
            continue;
        enum counters_result result = inspect_counters(list, candidate, fd, &file);
        best = result > best ? result : best;
        close(fd);
    }
    closedir(directory);
    return best;
}

static enum counters_result inspect(struct counted_list *list, struct candidate *candidate)
{
    enum counters_result result;
    char path[32];
    snprintf(path, sizeof path, "/proc/%ld", (long)candidate->pid);
    candidate->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (candidate->fd < 0)
        return COUNTERS_GONE;
    read_program(candidate);
    result = inspect_descriptors(list, candidate);
    close(candidate->fd);
    list->forbidden += result == COUNTERS_FORBIDDEN;
    list->strange += result == COUNTERS_STRANGE;
    return result;
}

static void complain(FILE *complaints, const struct candidate *candidate,
                     enum counters_result result)
{
    static const char *const reasons[] = {
        [COUNTERS_GONE] = "does not exist",
        [COUNTERS_UNUSED] = "does not use the proxy, has x-statistics: off, or has closed its "
                            "descriptors; it counts from C_Initialize to C_Finalize",
        [COUNTERS_INHERITED] = "does not use the proxy: it inherited the counters of another "
                               "process, and has its own after a C_Initialize",
        [COUNTERS_STARTING] = "is in C_Initialize; try again",
        [COUNTERS_FORBIDDEN] = "cannot be read: it belongs to another user, or is privileged; "
                               "root can read it",
    };
    fprintf(complaints, "p11-proxy stats: process %ld ", (long)candidate->pid);
    if (candidate->program[0] != '\0')
        fprintf(complaints, "(%s) ", candidate->program);
    if (result == COUNTERS_STRANGE)
        fprintf(complaints, "cannot be read: %s\n", candidate->message.text);
    else
        fprintf(complaints, "%s\n", reasons[result]);
}

static void inspect_all(struct counted_list *list)
{
    DIR *directory = opendir("/proc");
    const struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        struct candidate candidate = {.pid = (pid_t)strtol(entry->d_name, NULL, 10)};
        if (candidate.pid > 0)
            inspect(list, &candidate);
    }
    if (directory != NULL)
        closedir(directory);
}

static int by_pid(const void *a, const void *b)
{
    const struct counted_proxy *one = a, *other = b;
    if (one->pid != other->pid)
        return one->pid < other->pid ? -1 : 1;
    return strcmp(one->counters->module, other->counters->module);
}

bool counters_find(struct counted_list *list, const pid_t *pids, size_t count, FILE *complaints)
{
    bool all_shown = true;
    *list = (struct counted_list){.count = 0};
    if (count == 0)
        inspect_all(list);
    for (size_t i = 0; i < count; i++) {
        struct candidate candidate = {.pid = pids[i]};
        enum counters_result result = inspect(list, &candidate);
        if (result == COUNTERS_READ)
            continue;
        all_shown = false;
        if (complaints != NULL)
            complain(complaints, &candidate, result);
    }
    if (list->count > 0)
        qsort(list->proxies, list->count, sizeof list->proxies[0], by_pid);
    return all_shown;
}

void counters_free(struct counted_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->proxies[i].counters);
    free(list->proxies);
    *list = (struct counted_list){.count = 0};
}

void counters_put_notes(FILE *out, const char *prefix, const struct counted_list *list)
{
    if (list->count == 0)
        fprintf(out, "%sno process that may be read uses the proxy\n", prefix);
    if (list->count == 0 && list->forbidden > 0)
        fprintf(out, "%s%zu process%s could not be read; %s\n", prefix, list->forbidden,
                list->forbidden == 1 ? "" : "es",
                geteuid() != 0 ? "root can read all" : "this needs CAP_SYS_PTRACE");
    if (list->strange > 0)
        fprintf(out, "%s%zu process%s with counters that cannot be read; name one to learn why\n",
                prefix, list->strange, list->strange == 1 ? "" : "es");
}
