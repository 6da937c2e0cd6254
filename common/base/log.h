/* log.h - says something to the administrator: by syslog, on stderr, or in a file. */
#ifndef P11_PROXY_LOG_H
#define P11_PROXY_LOG_H

#include <stdatomic.h>
#include <stdbool.h>

/* Never a PIN, key, template or random byte at any level. Level names differ from <syslog.h>'s. */
enum log_level {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG,
};

enum log_destination {
    LOG_TO_NOTHING,
    LOG_TO_SYSLOG,
    LOG_TO_STDERR,
    LOG_TO_FILE,
};

enum {
    LOG_PATH_BYTES = 1024, /* with its NUL */
    LOG_LINE_BYTES = 1024, /* prefix and newline included; a longer line is cut */
};

struct log_settings {
    enum log_destination destination;
    enum log_level level;      /* this level and the more serious ones are written */
    char path[LOG_PATH_BYTES]; /* absolute; "" unless LOG_TO_FILE */
};

/*
 * Reads "off", "syslog", "stderr" or an absolute path without blanks, and after it an optional
 * "error", "warning" (the default), "info" or "debug".
 * Returns 0, or -EINVAL with *settings untouched. Any thread; errno is kept.
 */
int log_settings_parse(struct log_settings *settings, const char *text);

/*
 * Puts settings in force (they are copied). Until the first call it is "syslog warning".
 * A file is created now, so that a bad path shows at once; it is not kept open, so that it can be
 * rotated, and an application that closes every descriptor does no harm. If it cannot be written,
 * one error says so and lines go the way of "syslog".
 * One thread at a time; others may be in log_write(). errno is kept. Cannot fail.
 */
void log_configure(const struct log_settings *settings);

/*
 * Writes one line, "p11-proxy[pid]: " and the text, with control characters shown as '?'.
 * syslog: one datagram. An error also goes to stderr if stderr is a terminal, or if syslog did not
 * take it. A line that would make the caller wait is dropped.
 * Any thread, with no lock taken, so a child of fork() may call it too. errno is kept. Cannot fail.
 */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Where syslog listens: borrowed for good. For tests; /dev/log otherwise. */
void log_syslog_socket(const char *path);

/* Most verbose level in force, or -1; read it by log_wanted(). */
extern atomic_int log_threshold;

/* Whether log_write() would write at this level: one plain load, to ask before costly work. */
static inline bool log_wanted(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&log_threshold, memory_order_relaxed);
}

#endif
