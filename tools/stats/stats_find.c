/* stats_find.c - which processes use the proxy: those that have counters mapped, and own them. */
#include "stats/stats.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tool.h"

/* What looking at a process came to: the last is the most to be told. */
enum look {
    LOOK_GONE,
    LOOK_NOT_USING,
    LOOK_INHERITED,
    LOOK_STARTING,
    LOOK_STRANGE,
    LOOK_CLOSED,
    LOOK_FORBIDDEN,
    LOOK_FOUND
};

/* A process that is looked at, or was. */
struct candidate {
    pid_t pid;
    int fd; /* of its directory in /proc: what is opened there is of no later process of this PID */
    char program[STATS_PROGRAM_BYTES];
    struct message message; /* about LOOK_STRANGE */
};

static FILE *open_in(const struct candidate *candidate, const char *name)
{
    int fd = openat(candidate->fd, name, O_RDONLY | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;

    if (file == NULL && fd >= 0)
        close(fd);
    return file;
}

static void read_program(struct candidate *candidate)
{
    FILE *file = open_in(candidate, "comm");

    size_t len = 0;

    if (file != NULL) {
        len = fread(candidate->program, 1, sizeof candidate->program - 1, file);
        fclose(file);
    }
    /* Line ends may be part of the name; the last one is not. */
    candidate->program[len > 0 ? len - 1 : 0] = '\0';
    make_plain(candidate->program);
}

/* The process's PID as it itself sees it. *depth: so many PID namespaces below ours. */
static uint64_t innermost_pid(const struct candidate *candidate, unsigned *depth)
{
    uint64_t pid = (uint64_t)candidate->pid;
    FILE *file = open_in(candidate, "status");
    char *line = NULL;
    size_t room = 0;

    *depth = 0;
    while (file != NULL && getline(&line, &room, file) > 0) {
        if (strncmp(line, "NSpid:", 6) != 0)
            continue;
        char *rest = line + 6;
        pid = strtoull(rest, &rest, 10);
        for (; isdigit((unsigned char)rest[strspn(rest, " \t")]); ++*depth)
            pid = strtoull(rest, &rest, 10);
        break;
    }
    free(line);
    if (file != NULL)
        fclose(file);
    return pid;
}

static bool add(struct stats_list *list, const struct stats_proxy *proxy)
{
    struct stats_proxy *more = realloc(list->proxies, (list->count + 1) * sizeof list->proxies[0]);

    if (more == NULL) {
        stats_free(proxy->counters);
        return false;
    }
    list->proxies = more;
    list->proxies[list->count++] = *proxy;
    return true;
}

static enum look look_at_counters(struct stats_list *list, struct candidate *candidate,
                                  const struct stats_mapping *mapping, int fd)
{
    struct stats_proxy proxy = {
        .pid = candidate->pid, .device = mapping->device, .inode = mapping->inode};
    uint64_t own_pid = innermost_pid(candidate, &proxy.depth);

    if (fd < 0)
        return fd == -EPERM || fd == -EACCES ? LOOK_CLOSED : LOOK_GONE;
    switch (stats_read(&proxy.counters, fd, own_pid, &candidate->message)) {
    case STATS_READ:
        break;
    case STATS_INHERITED:
        return LOOK_INHERITED;
    case STATS_STARTING:
        return LOOK_STARTING;
    default:
        return LOOK_STRANGE;
    }
    proxy.read_ns = clock_exact_ns();
    memcpy(proxy.program, candidate->program, sizeof proxy.program);
    return add(list, &proxy) ? LOOK_FOUND : LOOK_GONE;
}

static enum look look_inside(struct stats_list *list, struct candidate *candidate)
{
    struct stats_mapping mappings[STATS_COPIES_MOST];
    int fds[STATS_COPIES_MOST];
    int count = stats_open(fds, mappings, candidate->fd);
    enum look best = LOOK_NOT_USING;

    if (count == -EACCES || count == -EPERM)
        return LOOK_FORBIDDEN;
    if (count < 0)
        return LOOK_GONE;
    for (int i = 0; i < count; i++) {
        enum look look = look_at_counters(list, candidate, &mappings[i], fds[i]);
        if (look > best)
            best = look;
    }
    stats_close(fds, count);
    return best;
}

static enum look look_at(struct stats_list *list, struct candidate *candidate)
{
    char path[32];
    enum look look;

    snprintf(path, sizeof path, "/proc/%ld", (long)candidate->pid);
    candidate->program[0] = '\0';
    candidate->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (candidate->fd < 0)
        return LOOK_GONE;
    read_program(candidate);
    look = look_inside(list, candidate);
    close(candidate->fd);
    list->forbidden += look == LOOK_FORBIDDEN;
    list->closed += look == LOOK_CLOSED;
    list->strange += look == LOOK_STRANGE;
    return look;
}

static const char *what_helps(void)
{
    return geteuid() != 0 ? "root can read it"
                          : "this root lacks a capability for it, CAP_SYS_PTRACE or "
                            "CAP_CHECKPOINT_RESTORE";
}

static void complain(FILE *complaints, const struct candidate *candidate, enum look look)
{
    if (complaints == NULL)
        return;
    fprintf(complaints, "p11-proxy stats: process %ld ", (long)candidate->pid);
    if (candidate->program[0] != '\0')
        fprintf(complaints, "(%s) ", candidate->program);
    switch (look) {
    case LOOK_GONE:
        fputs("is not there", complaints);
        break;
    case LOOK_NOT_USING:
        fputs("does not use the proxy, or has x-statistics: off; it counts from C_Initialize to "
              "C_Finalize",
              complaints);
        break;
    case LOOK_INHERITED:
        fputs("does not use the proxy: it inherited the counters of another, and has its own after "
              "a C_Initialize",
              complaints);
        break;
    case LOOK_STARTING:
        fputs("is in the midst of C_Initialize; try again", complaints);
        break;
    case LOOK_CLOSED:
        fprintf(complaints, "cannot be read: it closed the descriptor of its counters; %s",
                what_helps());
        break;
    case LOOK_FORBIDDEN:
        fprintf(complaints, "cannot be read: it is another user's, or privileged; %s",
                what_helps());
        break;
    default:
        fprintf(complaints, "cannot be read: %s", candidate->message.text);
    }
    putc('\n', complaints);
}

static bool is_named(pid_t pid, const pid_t *pids, size_t count)
{
    bool named = count == 0;

    for (size_t i = 0; i < count && !named; i++)
        named = pids[i] == pid;
    return named;
}

/* Looks at all processes but those in pids, which were looked at before. */
static void look_at_others(struct stats_list *list, const pid_t *pids, size_t count)
{
    DIR *directory = opendir("/proc");
    const struct dirent *entry;

    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        struct candidate candidate = {.pid = isdigit((unsigned char)entry->d_name[0])
                                                 ? (pid_t)strtol(entry->d_name, NULL, 10)
                                                 : 0};
        if (candidate.pid > 0 && (count == 0 || !is_named(candidate.pid, pids, count)))
            look_at(list, &candidate);
    }
    if (directory != NULL)
        closedir(directory);
}

static bool any_nested(const struct stats_list *list)
{
    bool nested = false;

    for (size_t i = 0; i < list->count && !nested; i++)
        nested = list->proxies[i].depth > 0;
    return nested;
}

/*
 * Whether the counters of a are b's, and a has but inherited them, with the same PID in a namespace
 * of its own. That lies deeper: a process enters none that is not below its own.
 */
static bool is_child_of(const struct stats_proxy *a, const struct stats_proxy *b)
{
    return a->device == b->device && a->inode == b->inode && a->depth > b->depth;
}

static bool is_owner(const struct stats_list *list, const struct stats_proxy *proxy)
{
    bool owner = true;

    for (size_t i = 0; i < list->count && owner; i++)
        owner = !is_child_of(proxy, &list->proxies[i]);
    return owner;
}

static void say_inherited(FILE *complaints, const struct stats_proxy *proxy)
{
    struct candidate candidate = {.pid = proxy->pid};

    memcpy(candidate.program, proxy->program, sizeof candidate.program);
    complain(complaints, &candidate, LOOK_INHERITED);
}

/* Leaves out who owns no counters, and who is not in pids. False if one in pids owns none. */
static bool keep_owners(struct stats_list *list, const pid_t *pids, size_t count, FILE *complaints)
{
    bool *owner = calloc(list->count + 1, sizeof *owner);
    bool all_kept = true;
    size_t kept = 0;

    for (size_t i = 0; owner != NULL && i < list->count; i++)
        owner[i] = is_owner(list, &list->proxies[i]);
    for (size_t i = 0; owner != NULL && i < list->count; i++) {
        struct stats_proxy *proxy = &list->proxies[i];
        bool named = is_named(proxy->pid, pids, count);
        if (named && owner[i]) {
            list->proxies[kept++] = *proxy;
            continue;
        }
        if (named && count > 0) {
            say_inherited(complaints, proxy);
            all_kept = false;
        }
        stats_free(proxy->counters);
    }
    if (owner != NULL)
        list->count = kept;
    free(owner);
    return all_kept;
}

static int by_pid(const void *a, const void *b)
{
    const struct stats_proxy *one = a, *other = b;

    if (one->pid != other->pid)
        return one->pid < other->pid ? -1 : 1;
    return strcmp(one->counters->module, other->counters->module);
}

bool stats_find(struct stats_list *list, const pid_t *pids, size_t count, FILE *complaints)
{
    bool all_shown = true;

    *list = (struct stats_list){.count = 0};
    for (size_t i = 0; i < count; i++) {
        struct candidate candidate = {.pid = pids[i]};
        if (is_named(pids[i], pids, i) && i > 0)
            continue; /* twice on the command line */
        enum look look = look_at(list, &candidate);
        if (look == LOOK_FOUND)
            continue;
        all_shown = false;
        complain(complaints, &candidate, look);
    }
    if (count == 0 || any_nested(list))
        look_at_others(list, pids, count);
    if (!keep_owners(list, pids, count, complaints))
        all_shown = false;
    if (list->count > 0)
        qsort(list->proxies, list->count, sizeof list->proxies[0], by_pid);
    return all_shown;
}

void stats_list_free(struct stats_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        stats_free(list->proxies[i].counters);
    free(list->proxies);
    *list = (struct stats_list){.count = 0};
}

static void put_note(FILE *out, const char *prefix, size_t count, const char *what)
{
    if (count > 0)
        fprintf(out, "%s%zu process%s %s\n", prefix, count, count == 1 ? "" : "es", what);
}

void stats_put_notes(FILE *out, const char *prefix, const struct stats_list *list)
{
    if (list->count == 0)
        fprintf(out, "%sno process that we may read uses the proxy\n", prefix);
    if (list->count == 0 && geteuid() != 0)
        put_note(out, prefix, list->forbidden, "of other users could not be looked at; root could");
    else if (list->count == 0)
        put_note(out, prefix, list->forbidden,
                 "could not be looked at, for lack of CAP_SYS_PTRACE");
    put_note(out, prefix, list->closed,
             geteuid() != 0 ? "closed the descriptor of the counters; root can read them"
                            : "closed the descriptor of the counters; CAP_CHECKPOINT_RESTORE is "
                              "missing to read them");
    put_note(out, prefix, list->strange,
             "with counters that cannot be read; name one to learn why");
}
