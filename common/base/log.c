/* log.c - carries a line to syslog, stderr or a file, without locks and without waiting. */
#include "base/log.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/keep_errno.h"
#include "base/words.h"

enum {
    FACILITY_AUTHPRIV = 10 << 3, /* RFC 3164; <syslog.h> has other names of the same look */
    PRIORITY_LEN = 4,            /* "<83>" */
    RECORDS = 8,
};

/* Ends with a newline. Only syslog is sent the priority at its start. */
struct line {
    size_t len;
    char text[PRIORITY_LEN + LOG_LINE_BYTES];
};

/* What was in force before stays in its place, because log_write() may be reading it: a record is
 * written again only after seven others. */
static struct log_settings records[RECORDS] = {{LOG_TO_SYSLOG, LOG_LEVEL_WARNING, ""}};
static unsigned records_used = 1; /* by log_configure() only */
static _Atomic(const struct log_settings *) in_force = &records[0];

static atomic_bool file_failure_told;

atomic_int log_threshold = LOG_LEVEL_WARNING;

/* What had number 2 when the module was loaded. */
static struct stat first_stderr;

__attribute__((constructor)) static void note_stderr(void)
{
    KEEP_ERRNO();

    if (fstat(STDERR_FILENO, &first_stderr) != 0)
        first_stderr.st_nlink = 0;
}

/* A daemon that closed its standard streams may have a file of its data under number 2, so a file
 * is stderr only if it was that from the beginning. */
static bool is_stderr_open(void)
{
    struct stat now;

    return fstat(STDERR_FILENO, &now) == 0 &&
           (!S_ISREG(now.st_mode) ||
            (first_stderr.st_nlink != 0 && now.st_dev == first_stderr.st_dev &&
             now.st_ino == first_stderr.st_ino));
}

/* write() without the signals of its errors: a pipe whose reader has gone, or a file that has reached
 * RLIMIT_FSIZE, must not end the application because of a log line. */
static bool write_without_signal(int fd, const char *text, size_t len)
{
    const struct timespec at_once = {0, 0};
    sigset_t caught, before, pending;

    /* A signal that is pending already is blocked and was meant for the application, so it must stay pending. */
    sigemptyset(&caught);
    sigpending(&pending);
    if (!sigismember(&pending, SIGPIPE))
        sigaddset(&caught, SIGPIPE);
    if (!sigismember(&pending, SIGXFSZ))
        sigaddset(&caught, SIGXFSZ);
    if (pthread_sigmask(SIG_BLOCK, &caught, &before) != 0)
        return false;

    bool written = write(fd, text, len) == (ssize_t)len;
    int failed_with = errno;
    if (!written && (failed_with == EPIPE || failed_with == EFBIG))
        (void)sigtimedwait(&caught, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = failed_with;
    return written;
}

static void to_stderr(const struct line *line)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};

    /* A pipe that is writable takes PIPE_BUF bytes without blocking, and a line is shorter. */
    if (poll(&ready, 1, /* wait_ms= */ 0) == 1 && (ready.revents & POLLOUT) != 0)
        (void)write_without_signal(STDERR_FILENO, line->text + PRIORITY_LEN,
                                   line->len - PRIORITY_LEN);
}

/*
 * Not syslog(3): its open connection and its ident belong to the application. No time stamp: every
 * daemon adds its own, and localtime() takes a lock that a forked child may find held for ever.
 */
static bool is_taken_by_syslog(const struct line *line)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return false;
    bool sent = connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
                send(fd, line->text, line->len - 1, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
    close(fd);
    return sent;
}

static void to_syslog(enum log_level level, const struct line *line)
{
    bool taken = is_taken_by_syslog(line);

    if (level == LOG_LEVEL_ERROR && is_stderr_open() && (!taken || isatty(STDERR_FILENO)))
        to_stderr(line);
}

/* Reads errno for %m. */
static void make_line(struct line *line, enum log_level level, const char *format, va_list args)
{
    static const int severity[] = {3, 4, 6, 7}; /* err, warning, info, debug */
    int called_with = errno;
    int at = sprintf(line->text, "<%d>p11-proxy[%ld]: ", FACILITY_AUTHPRIV + severity[level],
                     (long)getpid());

    errno = called_with;
    if (vsnprintf(line->text + at, sizeof line->text - (size_t)at - 1, format, args) < 0)
        line->text[at] = '\0';
    /* One call, one line: nothing that came from outside may forge a second one. */
    for (char *c = line->text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    strcat(line->text, "\n");
    line->len = strlen(line->text);
}

/* Says once why the log file cannot be written, and not again for each line. Reads errno. */
__attribute__((format(printf, 1, 2))) static void tell_file_failure(const char *format, ...)
{
    struct line line;
    va_list args;

    if (atomic_exchange(&file_failure_told, true))
        return;
    va_start(args, format);
    make_line(&line, LOG_LEVEL_ERROR, format, args);
    va_end(args);
    to_syslog(LOG_LEVEL_ERROR, &line);
}

static bool to_file(const char *path, const char *text, size_t len)
{
    /* O_NONBLOCK: a FIFO without a reader fails here instead of hanging the application. */
    int fd = open(
        path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0640);
    struct stat st;
    bool written = false;

    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)))
        errno = EINVAL;
    else if (fd >= 0)
        written = write_without_signal(fd, text, len);
    if (!written)
        tell_file_failure("the log file %s cannot be written (%m): syslog is used instead", path);
    if (fd >= 0)
        close(fd);
    return written;
}

void log_write(enum log_level level, const char *format, ...)
{
    KEEP_ERRNO();
    const struct log_settings *settings = atomic_load(&in_force);
    struct line line;
    va_list args;

    if (!log_wanted(level))
        return;
    va_start(args, format);
    make_line(&line, level, format, args);
    va_end(args);

    if (settings->destination == LOG_TO_STDERR)
        to_stderr(&line);
    else if (settings->destination == LOG_TO_SYSLOG ||
             (settings->destination == LOG_TO_FILE &&
              !to_file(settings->path, line.text + PRIORITY_LEN, line.len - PRIORITY_LEN)))
        to_syslog(level, &line);
}

static const struct log_settings *record(const struct log_settings *settings)
{
    for (unsigned i = 0; i < RECORDS; i++)
        if (memcmp(&records[i], settings, sizeof *settings) == 0)
            return &records[i];
    struct log_settings *next = &records[records_used++ % RECORDS];
    *next = *settings;
    return next;
}

void log_configure(const struct log_settings *settings)
{
    KEEP_ERRNO();

    atomic_store(&file_failure_told, false);
    atomic_store(&in_force, record(settings));
    atomic_store(&log_threshold,
                 settings->destination == LOG_TO_NOTHING ? -1 : (int)settings->level);
    if (settings->destination == LOG_TO_FILE)
        (void)to_file(settings->path, "", 0);
}

bool log_settings_parse(struct log_settings *settings, const char *text)
{
    static const char blanks[] = " \t";
    size_t len = strcspn(text, blanks);
    const char *behind = text + len + strspn(text + len, blanks);
    int level = *behind != '\0' ? word_number(behind, LOG_LEVEL_WORDS) : LOG_LEVEL_WARNING;
    struct log_settings parsed = {0};

    if (len >= sizeof parsed.path || level < 0)
        return false;
    memcpy(parsed.path, text, len);
    int destination =
        text[0] == '/' ? LOG_TO_FILE : word_number(parsed.path, LOG_DESTINATION_WORDS);
    if (destination < 0)
        return false;
    if (destination != LOG_TO_FILE)
        memset(parsed.path, 0, sizeof parsed.path);
    parsed.level = (enum log_level)level;
    parsed.destination = (enum log_destination)destination;
    *settings = parsed;
    return true;
}
