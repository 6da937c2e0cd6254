/* counters.c - finds the processes that hold a descriptor of counters of their own, and copies those. */
#include "counters/counters.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

/* Reads a small file of the process as text. "" if that fails. */
static void read_text(int fds, const char *name, char *text, size_t text_bytes)
{
    int fd = openat(fds, name, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, text_bytes - 1) : 0;
    text[len > 0 ? len : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* The process's PID as the process itself sees it: the last of those that the kernel lists. */
static uint64_t innermost_pid(int fds, pid_t pid)
{
    char status[4096];
    read_text(fds, "../status", status, sizeof status);
    char *line = strstr(status, "\nNSpid:"), *end = line != NULL ? strchr(line + 1, '\n') : NULL;
    if (end == NULL)
        return (uint64_t)pid;
    *end = '\0';
    return strtoull(strrchr(line, '\t') + 1, NULL, 10);
}

/* Ends a text, and makes it printable. */
static void clean_text(char *text, size_t text_bytes)
{
    text[text_bytes - 1] = '\0';
    make_plain(text);
}

static void clean(struct statistics *all)
{
    clean_text(all->version, sizeof all->version);
    clean_text(all->module, sizeof all->module);
    clean_text(all->target, sizeof all->target);
    for (uint64_t i = 0; i < all->slot_count; i++) {
        clean_text(all->slots[i].token, sizeof all->slots[i].token);
        statistics_add_up(&all->slots[i]);
    }
    for (uint64_t i = 0; i < all->refusal_count; i++) {
        clean_text(all->refusals[i].file, sizeof all->refusals[i].file);
        clean_text(all->refusals[i].rule, sizeof all->refusals[i].rule);
    }
}

/* Copies into *all what is in use. A forked child has inherited counters, whose PID is another's. */
static enum counted read_counters(struct statistics *all, int fd, uint64_t own_pid)
{
    const size_t slots_at = offsetof(struct statistics, slots);
    if (pread(fd, all, slots_at, 0) != (ssize_t)slots_at)
        return COUNTED_STRANGE;
    if (all->magic[0] == '\0')
        return COUNTED_UNUSED; /* C_Initialize is under way: the module sets this byte last */
    if (memcmp(all->magic, STATISTICS_MAGIC, sizeof STATISTICS_MAGIC) != 0 ||
        all->layout != STATISTICS_LAYOUT || all->size_bytes != sizeof *all)
        return COUNTED_STRANGE;
    if (all->slot_count > STATISTICS_SLOTS)
        all->slot_count = STATISTICS_SLOTS;
    if (all->refusal_count > STATISTICS_REFUSALS)
        all->refusal_count = STATISTICS_REFUSALS;
    const size_t slots_bytes = all->slot_count * sizeof all->slots[0];
    if (pread(fd, all->slots, slots_bytes, (off_t)slots_at) != (ssize_t)slots_bytes)
        return COUNTED_STRANGE;
    clean(all);
    return all->pid == own_pid ? COUNTED : COUNTED_UNUSED;
}

/* Adds the proxy of which fd has the counters; fds is the directory of the process's descriptors. */
static enum counted add_proxy(struct counted_list *list, pid_t pid, int fds, int fd)
{
    struct counted_proxy **last = &list->first;
    struct counted_proxy *proxy = aligned_alloc(_Alignof(struct counted_proxy), sizeof *proxy);
    enum counted outcome =
        proxy != NULL ? read_counters(&proxy->counters, fd, innermost_pid(fds, pid)) : COUNTED_GONE;
    if (outcome != COUNTED) {
        free(proxy);
        return outcome;
    }
    proxy->pid = pid;
    proxy->next = NULL;
    read_text(fds, "../comm", proxy->program, sizeof proxy->program);
    /* The name may have line ends in it, or half a character at its end; the last byte is a line end. */
    size_t len = strlen(proxy->program);
    proxy->program[len > 0 ? len - 1 : 0] = '\0';
    make_plain(proxy->program);
    while (*last != NULL)
        last = &(*last)->next;
    *last = proxy;
    return COUNTED;
}

static enum counted inspect_descriptor(struct counted_list *list, pid_t pid, int fds,
                                       const char *name)
{
    static const char wanted[] = "/memfd:" STATISTICS_NAME " (deleted)";
    char target[sizeof wanted + 1];
    ssize_t len = readlinkat(fds, name, target, sizeof target);
    if (len < 0 && errno == EACCES)
        return COUNTED_FORBIDDEN;
    if (len != sizeof wanted - 1 || memcmp(target, wanted, sizeof wanted - 1) != 0)
        return COUNTED_UNUSED;
    /* The process may have put a FIFO or a leased file in its place, so opening does not wait. */
    int fd = openat(fds, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return errno == EACCES ? COUNTED_FORBIDDEN : COUNTED_UNUSED;
    enum counted outcome = add_proxy(list, pid, fds, fd);
    close(fd);
    return outcome;
}

enum counted counters_add(struct counted_list *list, pid_t pid)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
    /* A later process of this PID does not appear in the open directory, nor in the one above. */
    DIR *directory = opendir(path);
    const struct dirent *entry;
    enum counted best = directory != NULL ? COUNTED_UNUSED
                        : errno == EACCES ? COUNTED_FORBIDDEN
                                          : COUNTED_GONE;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        enum counted outcome = inspect_descriptor(list, pid, dirfd(directory), entry->d_name);
        best = outcome > best ? outcome : best;
    }
    if (directory != NULL)
        closedir(directory);
    list->processes[best]++;
    return best;
}

void counters_add_all(struct counted_list *list)
{
    DIR *directory = opendir("/proc");
    const struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0]))
            counters_add(list, (pid_t)strtol(entry->d_name, NULL, 10));
    }
    if (directory != NULL)
        closedir(directory);
}

void counters_free(struct counted_list *list)
{
    while (list->first != NULL) {
        struct counted_proxy *proxy = list->first;
        list->first = proxy->next;
        free(proxy);
    }
    *list = (struct counted_list){0};
}
