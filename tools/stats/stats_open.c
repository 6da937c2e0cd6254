/* stats_open.c - where another process, which may be hostile, keeps its counters. */
#include "stats/stats.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define LINK_NAME "/memfd:" STATISTICS_NAME " (deleted)"

enum {
    LINK_BYTES = 64,
    PATH_BYTES = 64,
    LOOKS_MOST = 8 /* at one that changes all the time */
};

static const char link_name[] = LINK_NAME;

static FILE *open_maps(int process_fd)
{
    int fd = openat(process_fd, "maps", O_RDONLY | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;

    if (file == NULL && fd >= 0)
        close(fd);
    return file;
}

static bool is_among(const struct stats_mapping *mapping, const struct stats_mapping of[],
                     int count)
{
    bool among = false;

    for (int i = 0; i < count && !among; i++)
        among = of[i].device == mapping->device && of[i].inode == mapping->inode;
    return among;
}

/* What is mapped of counters: one for each copy of the proxy. -errno if we may not look. */
static int read_mappings(int process_fd, struct stats_mapping mappings[STATS_COPIES_MOST])
{
    static const char path[] = " " LINK_NAME "\n";
    FILE *file = open_maps(process_fd);
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    int count = 0;

    if (file == NULL)
        return -errno;
    while (count < STATS_COPIES_MOST && (len = getline(&line, &room, file)) > 0) {
        struct stats_mapping *mapping = &mappings[count];
        unsigned major_number, minor_number;
        uintmax_t inode;
        if ((size_t)len < sizeof path ||
            strcmp(line + len - (ssize_t)(sizeof path - 1), path) != 0 ||
            sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %x:%x %ju", &mapping->begin,
                   &mapping->end, &major_number, &minor_number, &inode) != 5)
            continue;
        mapping->device = makedev(major_number, minor_number);
        mapping->inode = (ino_t)inode;
        count += !is_among(mapping, mappings, count);
    }
    if (count == 0 && ferror(file))
        count = -errno;
    free(line);
    fclose(file);
    return count;
}

/*
 * Opens the file at path for reading if it is the one that is mapped; else a negative errno value.
 * First without touching it: the process may put a tape or a FIFO in its place at any moment.
 */
static int open_same(int directory_fd, const char *path, const struct stats_mapping *mapping)
{
    struct stat file;
    char itself[PATH_BYTES];
    int fd = -ENOENT;
    int place_fd = openat(directory_fd, path, O_PATH | O_CLOEXEC);

    if (place_fd < 0)
        return -errno;
    snprintf(itself, sizeof itself, "/proc/self/fd/%d", place_fd);
    if (fstat(place_fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_dev == mapping->device &&
        file.st_ino == mapping->inode) {
        fd = open(itself, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            fd = -errno;
    }
    close(place_fd);
    return fd;
}

static bool is_ours(int directory_fd, const char *name)
{
    char target[LINK_BYTES];
    ssize_t bytes = readlinkat(directory_fd, name, target, sizeof target);

    return bytes == sizeof link_name - 1 && memcmp(target, link_name, (size_t)bytes) == 0;
}

/* The one that a descriptor leads to, if it is not open yet. What is looked at is not touched. */
static void open_by_descriptor(int fds[], int directory_fd, const char *name,
                               const struct stats_mapping *mappings, int count)
{
    struct stat file;

    if (!is_ours(directory_fd, name) || fstatat(directory_fd, name, &file, 0) != 0)
        return;
    for (int i = 0; i < count; i++) {
        if (fds[i] < 0 && mappings[i].device == file.st_dev && mappings[i].inode == file.st_ino)
            fds[i] = open_same(directory_fd, name, &mappings[i]);
    }
}

/* In one look at them all, since a process may have very many. */
static void open_by_descriptors(int fds[], int process_fd, const struct stats_mapping *mappings,
                                int count)
{
    int directory_fd = openat(process_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = directory_fd >= 0 ? fdopendir(directory_fd) : NULL;
    const struct dirent *entry;

    if (directory == NULL) {
        if (directory_fd >= 0)
            close(directory_fd);
        return;
    }
    while ((entry = readdir(directory)) != NULL)
        open_by_descriptor(fds, directory_fd, entry->d_name, mappings, count);
    closedir(directory);
}

/* The application closed the descriptor; the kernel lets root open what is mapped. */
static int open_by_mapping(int process_fd, const struct stats_mapping *mapping)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "map_files/%" PRIx64 "-%" PRIx64, mapping->begin, mapping->end);
    return open_same(process_fd, path, mapping);
}

static void open_all(int fds[], int process_fd, const struct stats_mapping *mappings, int count)
{
    for (int i = 0; i < count; i++)
        fds[i] = -ENOENT;
    open_by_descriptors(fds, process_fd, mappings, count);
    for (int i = 0; i < count; i++) {
        if (fds[i] < 0)
            fds[i] = open_by_mapping(process_fd, &mappings[i]);
    }
}

void stats_close(const int fds[], int count)
{
    for (int i = 0; i < count; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
}

/* Whether those that could not be opened are mapped still. */
static bool are_still_mapped(int process_fd, const struct stats_mapping mappings[], const int fds[],
                             int count)
{
    struct stats_mapping now[STATS_COPIES_MOST];
    int now_count = 0;
    bool mapped = true;

    for (int i = 0; i < count && mapped; i++) {
        if (fds[i] >= 0)
            continue;
        if (now_count == 0)
            now_count = read_mappings(process_fd, now);
        mapped = is_among(&mappings[i], now, now_count);
    }
    return mapped;
}

/*
 * Opens all that is mapped. One that has vanished by then was not closed under the proxy: its owner
 * is in C_Finalize, or ends, or calls exec(), and so it is looked at once more.
 */
int stats_open(int fds[STATS_COPIES_MOST], struct stats_mapping mappings[STATS_COPIES_MOST],
               int process_fd)
{
    for (int looks = 1;; looks++) {
        int count = read_mappings(process_fd, mappings);
        if (count <= 0)
            return count;
        open_all(fds, process_fd, mappings, count);
        if (looks == LOOKS_MOST || are_still_mapped(process_fd, mappings, fds, count))
            return count;
        stats_close(fds, count);
    }
}
