/* log.c - carries a line to syslog, stderr or a file, without locks and without waiting. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define IDENT "p11-proxy"

enum {
    FACILITY_AUTHPRIV = 10 << 3, /* RFC 3164; <syslog.h> would bring LOG_ names that mean else */
    SLOTS = 8,
};

/*
 * log_write() reads a slot with no lock, so a slot that was in use is not overwritten soon:
 * settings that were seen before get their old slot, new ones take the next in turn. Freeing memory
 * here could never be safe, since a thread may still log while the process exits.
 */
static struct log_settings slots[SLOTS] = {{LOG_TO_SYSLOG, LOG_LEVEL_WARNING, ""}};
static unsigned slots_filled = 1; /* written by log_configure() only */
static _Atomic(const struct log_settings *) in_force = &slots[0];

static _Atomic(const char *) syslog_socket = "/dev/log";
static atomic_bool file_failure_told;

atomic_int log_threshold = LOG_LEVEL_WARNING;

/*
 * write() without the signals that come with its errors: a pipe whose reader has gone, or a file that has
 * reached RLIMIT_FSIZE, must not kill the application over a log line.
 */
static bool write_without_signal(int fd, const char *line, size_t len)
{
    const struct timespec at_once = {0, 0};
    sigset_t ours, before, pending;
    int failed_with;
    bool written;

    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigaddset(&ours, SIGXFSZ);
    sigpending(&pending);
    if (pthread_sigmask(SIG_BLOCK, &ours, &before) != 0)
        return false;
    written = write(fd, line, len) == (ssize_t)len;
    failed_with = errno;
    /* One that was pending before is the application's. */
    if (sigismember(&pending, SIGPIPE) == 1)
        sigdelset(&ours, SIGPIPE);
    if (sigismember(&pending, SIGXFSZ) == 1)
        sigdelset(&ours, SIGXFSZ);
    if (!written && (failed_with == EPIPE || failed_with == EFBIG))
        (void)sigtimedwait(&ours, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = failed_with;
    return written;
}

static void to_stderr(const char *line, size_t len)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};

    /* A pipe that is writable takes PIPE_BUF bytes without blocking, and a line is shorter. */
    if (poll(&ready, 1, /* wait_ms= */ 0) == 1 && (ready.revents & POLLOUT) != 0)
        (void)write_without_signal(STDERR_FILENO, line, len);
}

/*
 * Not syslog(3): its open connection and its ident belong to the application. No time stamp: every
 * daemon adds its own, and localtime() takes a lock that a forked child may find held for ever.
 */
static bool to_syslog(enum log_level level, const char *line, size_t len)
{
    static const int severity[] = {3, 4, 6, 7}; /* err, warning, info, debug */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = atomic_load(&syslog_socket);
    char datagram[LOG_LINE_BYTES + 8];
    int header_len;
    bool sent;
    int fd;

    if (strlen(path) >= sizeof address.sun_path)
        return false;
    strcpy(address.sun_path, path);
    header_len = snprintf(datagram, sizeof datagram, "<%d>", FACILITY_AUTHPRIV + severity[level]);
    memcpy(datagram + header_len, line, len - 1); /* without the newline */

    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    sent = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
           send(fd, datagram, (size_t)header_len + len - 1, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
    close(fd);
    return sent;
}

/* What had number 2 when we were loaded. */
static struct stat first_stderr;

__attribute__((constructor)) static void note_stderr(void)
{
    int saved = errno;

    if (fstat(STDERR_FILENO, &first_stderr) != 0)
        first_stderr.st_nlink = 0;
    errno = saved;
}

/*
 * A daemon that closed its standard streams may have a file of its data under number 2. Terminals,
 * pipes and sockets are for words; a file is stderr only if it was that from the beginning.
 */
static bool stderr_is_for_words(void)
{
    struct stat now;

    if (fstat(STDERR_FILENO, &now) != 0)
        return false;
    return !S_ISREG(now.st_mode) ||
           (first_stderr.st_nlink != 0 && now.st_dev == first_stderr.st_dev &&
            now.st_ino == first_stderr.st_ino);
}

static void to_syslog_or_stderr(enum log_level level, const char *line, size_t len)
{
    bool sent = to_syslog(level, line, len);

    if (level == LOG_LEVEL_ERROR && stderr_is_for_words() && (!sent || isatty(STDERR_FILENO)))
        to_stderr(line, len);
}

/* Returns a descriptor, or -1 and errno. */
static int open_file(const char *path)
{
    struct stat st;
    int fd;

    /* O_NONBLOCK: a FIFO without a reader fails here instead of hanging the application. */
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
              0640);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

static size_t make_line(char line[LOG_LINE_BYTES], const char *format, va_list args)
{
    int called_with = errno; /* what %m means */
    int prefix = snprintf(line, LOG_LINE_BYTES, IDENT "[%ld]: ", (long)getpid());
    size_t room = LOG_LINE_BYTES - (size_t)prefix - 1; /* less the newline */
    size_t len;

    errno = called_with;
    if (vsnprintf(line + prefix, room, format, args) < 0)
        line[prefix] = '\0';
    len = strlen(line);
    /* One call, one line: nothing that came from outside may forge a second one. */
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = '?';
    line[len] = '\n';
    return len + 1;
}

/* Says why the file cannot be written: once, not at every line. Reads errno. */
__attribute__((format(printf, 1, 2))) static void tell_file_failure(const char *format, ...)
{
    char line[LOG_LINE_BYTES];
    va_list args;
    size_t len;

    if (atomic_exchange(&file_failure_told, true))
        return;
    va_start(args, format);
    len = make_line(line, format, args);
    va_end(args);
    to_syslog_or_stderr(LOG_LEVEL_ERROR, line, len);
}

static bool to_file(const char *path, const char *line, size_t len)
{
    int fd = open_file(path);
    bool written = fd >= 0 && write_without_signal(fd, line, len);

    if (!written)
        tell_file_failure("the log file %s cannot be written (%m): syslog is used instead", path);
    if (fd >= 0)
        close(fd);
    return written;
}

void log_write(enum log_level level, const char *format, ...)
{
    int saved = errno;
    const struct log_settings *settings = atomic_load(&in_force);
    char line[LOG_LINE_BYTES];
    va_list args;
    size_t len;

    if (!log_wanted(level))
        return;
    va_start(args, format);
    len = make_line(line, format, args);
    va_end(args);

    switch (settings->destination) {
    case LOG_TO_NOTHING:
        break;
    case LOG_TO_SYSLOG:
        to_syslog_or_stderr(level, line, len);
        break;
    case LOG_TO_STDERR:
        to_stderr(line, len);
        break;
    case LOG_TO_FILE:
        if (!to_file(settings->path, line, len))
            to_syslog_or_stderr(level, line, len);
        break;
    }
    errno = saved;
}

static bool same(const struct log_settings *a, const struct log_settings *b)
{
    return a->destination == b->destination && a->level == b->level &&
           strcmp(a->path, b->path) == 0;
}

static const struct log_settings *slot_for(const struct log_settings *settings)
{
    struct log_settings *slot;

    for (unsigned i = 0; i < SLOTS && i < slots_filled; i++)
        if (same(&slots[i], settings))
            return &slots[i];
    slot = &slots[slots_filled++ % SLOTS];
    *slot = *settings;
    return slot;
}

void log_configure(const struct log_settings *settings)
{
    int saved = errno;
    bool off = settings->destination == LOG_TO_NOTHING;

    atomic_store(&file_failure_told, false);
    atomic_store(&in_force, slot_for(settings));
    atomic_store(&log_threshold, off ? -1 : (int)settings->level);
    if (settings->destination == LOG_TO_FILE)
        (void)to_file(settings->path, "", 0);
    errno = saved;
}

void log_syslog_socket(const char *path)
{
    atomic_store(&syslog_socket, path);
}

static bool parse_level(enum log_level *level, const char *word)
{
    static const char *const words[] = {"error", "warning", "info", "debug"};

    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i]) == 0) {
            *level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

int log_settings_parse(struct log_settings *settings, const char *text)
{
    static const char blanks[] = " \t";
    struct log_settings parsed = {.level = LOG_LEVEL_WARNING};
    size_t first_len = strcspn(text, blanks);
    const char *second = text + first_len + strspn(text + first_len, blanks);

    if (first_len >= sizeof parsed.path)
        return -EINVAL;
    memcpy(parsed.path, text, first_len);
    if (*second != '\0' && !parse_level(&parsed.level, second))
        return -EINVAL;

    if (parsed.path[0] == '/')
        parsed.destination = LOG_TO_FILE;
    else if (strcmp(parsed.path, "off") == 0)
        parsed.destination = LOG_TO_NOTHING;
    else if (strcmp(parsed.path, "syslog") == 0)
        parsed.destination = LOG_TO_SYSLOG;
    else if (strcmp(parsed.path, "stderr") == 0)
        parsed.destination = LOG_TO_STDERR;
    else
        return -EINVAL;
    if (parsed.destination != LOG_TO_FILE)
        memset(parsed.path, 0, sizeof parsed.path);
    *settings = parsed;
    return 0;
}
