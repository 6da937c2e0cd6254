/* log.c - carries a line to syslog, stderr or a file, without locks and without waiting. */
#include "base/log.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/keep_errno.h"
#include "base/message.h"

enum {
    FACILITY_AUTHPRIV = 10 << 3, /* RFC 3164; <syslog.h> has other names of the same look */
    PRIORITY_LEN = 4,            /* "<83>", which only syslog is sent */
    PREFIX_BYTES = 48,           /* the priority, the program's name and number, and a newline */
    RECORDS = 8,
};

static const struct log_settings syslog_settings = {LOG_TO_SYSLOG, LOG_LEVEL_WARNING, ""};

/* What was in force before stays in its place, because log_write() may be reading it: a record is
 * written again only after seven others. */
static struct log_settings records[RECORDS];
static unsigned records_used; /* by log_configure() only */
static _Atomic(const struct log_settings *) in_force = &syslog_settings;

static atomic_bool file_failure_told;

/* What had number 2 when the module was loaded. */
static struct stat first_stderr;

__attribute__((constructor)) static void note_stderr(void)
{
    KEEP_ERRNO();
    (void)fstat(STDERR_FILENO, &first_stderr);
}

/* A daemon that closed its standard streams may have a file of its data under number 2, so a file
 * is stderr only if it was that from the beginning. */
static bool is_stderr_open(void)
{
    struct stat now;
    return fstat(STDERR_FILENO, &now) == 0 &&
           (!S_ISREG(now.st_mode) ||
            (now.st_dev == first_stderr.st_dev && now.st_ino == first_stderr.st_ino));
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

/* Whether all of line, from priority to newline, was taken, without waiting; if not, errno says why. */
static bool deliver(enum log_destination to, const char *path, const char *line)
{
    /* Not syslog(3): its open connection and its ident belong to the application. */
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
    /* O_NONBLOCK: a FIFO without a reader fails here instead of hanging the application. */
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    const char *text = line + PRIORITY_LEN;
    struct stat st;
    /* A pipe that is writable takes PIPE_BUF bytes without blocking, and a line is shorter. */
    if (to == LOG_TO_STDERR)
        return poll(&ready, 1, /* wait_ms= */ 0) == 1 && (ready.revents & POLLOUT) != 0 &&
               write_without_signal(STDERR_FILENO, text, strlen(text));
    int fd = to == LOG_TO_FILE ? open(path, flags, 0640)
                               : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    bool taken = false;
    if (to == LOG_TO_FILE ? fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
                          : connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        taken = to == LOG_TO_FILE ? write_without_signal(fd, text, strlen(text))
                                  : write_without_signal(fd, line, strlen(line) - 1);
    else
        errno = EINVAL;
    close(fd);
    return taken;
}

static void write_line(const struct log_settings *settings, enum log_level level,
                       const char *format, va_list args);

static void tell_syslog(enum log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(&syslog_settings, level, format, args);
    va_end(args);
}

/* Says once why the log file cannot be written, and not again for each line. */
static bool to_file(const char *path, const char *line)
{
    if (deliver(LOG_TO_FILE, path, line))
        return true;
    if (!atomic_exchange(&file_failure_told, true))
        tell_syslog(LOG_LEVEL_ERROR,
                    "the log file %s cannot be written (%m): syslog is used instead", path);
    return false;
}

/* No time stamp: every daemon adds its own, and localtime() takes a lock that a forked child may find
 * held for ever. One buffer, because the caller's stack may be the smallest. */
static void write_line(const struct log_settings *settings, enum log_level level,
                       const char *format, va_list args)
{
    static const int severity[] = {3, 4, 6, 7}; /* err, warning, info, debug */
    char line[PREFIX_BYTES + LOG_TEXT_BYTES];
    int len = snprintf(line, PREFIX_BYTES,
                       "<%d>p11-proxy[%ld]: ", FACILITY_AUTHPRIV + severity[level], (long)getpid());
    vsnprintf(line + len, LOG_TEXT_BYTES, format, args);
    /* One call, one line: nothing that came from outside may forge a second one. */
    for (char *c = line; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    strcat(line, "\n");
    if (settings->destination == LOG_TO_STDERR) {
        deliver(LOG_TO_STDERR, NULL, line);
        return;
    }
    if (settings->destination == LOG_TO_FILE && to_file(settings->path, line))
        return;
    bool taken = deliver(LOG_TO_SYSLOG, NULL, line);
    if (level == LOG_LEVEL_ERROR && is_stderr_open() && (!taken || isatty(STDERR_FILENO)))
        deliver(LOG_TO_STDERR, NULL, line);
}

void log_write(enum log_level level, const char *format, ...)
{
    KEEP_ERRNO();
    const struct log_settings *settings = atomic_load(&in_force);
    va_list args;
    if (settings->destination == LOG_TO_NOTHING || level > settings->level)
        return;
    va_start(args, format);
    write_line(settings, level, format, args);
    va_end(args);
}

void log_configure(const struct log_settings *settings)
{
    KEEP_ERRNO();
    struct log_settings *record = &records[records_used++ % RECORDS];
    *record = *settings;
    atomic_store(&file_failure_told, false);
    atomic_store(&in_force, record);
    if (settings->destination == LOG_TO_FILE)
        (void)to_file(settings->path, "<00>");
}

bool log_settings_parse(struct log_settings *settings, const char *text)
{
    static const char blanks[] = " \t";
    size_t len = strcspn(text, blanks);
    const char *behind = text + len + strspn(text + len, blanks);
    int level = *behind != '\0' ? word_number(behind, LOG_LEVEL_WORDS) : LOG_LEVEL_WARNING;
    struct log_settings parsed = {0};
    if (len >= sizeof parsed.path)
        return false;
    memcpy(parsed.path, text, len);
    int destination =
        text[0] == '/' ? LOG_TO_FILE : word_number(parsed.path, LOG_DESTINATION_WORDS);
    if (destination < 0 || level < 0)
        return false;
    parsed.level = (enum log_level)level;
    parsed.destination = (enum log_destination)destination;
    *settings = parsed;
    return true;
}
