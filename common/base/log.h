/* log.h - says something to the administrator: by syslog, on stderr, or in a file.
 *
 * Never a PIN, key, template or random byte at any level. All functions keep errno, take no lock, and
 * cannot fail, so a forked child may call them too.
 */
#ifndef P11_PROXY_LOG_H
#define P11_PROXY_LOG_H

#include <stdbool.h>

/* Other names than those of <syslog.h>. In the order of the words. */
enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_destination { LOG_TO_NOTHING, LOG_TO_SYSLOG, LOG_TO_STDERR, LOG_TO_FILE };
#define LOG_LEVEL_WORDS       "error, warning, info, debug"
#define LOG_DESTINATION_WORDS "off, syslog, stderr"

enum {
    LOG_PATH_BYTES = 1024, /* with its NUL */
    LOG_TEXT_BYTES = 1024, /* a longer text is cut */
};

struct log_settings {
    enum log_destination destination;
    enum log_level level;      /* this level and the more serious ones are written */
    char path[LOG_PATH_BYTES]; /* absolute, if LOG_TO_FILE */
};

/* Reads one of LOG_DESTINATION_WORDS or an absolute path without blanks, and perhaps one of
 * LOG_LEVEL_WORDS behind it. False if it is something else; then *settings is untouched. */
bool log_settings_parse(struct log_settings *settings, const char *text);

/*
 * Puts settings in force (they are copied); before that it is "syslog warning".
 * A file is created now, so that a bad path shows at once. It is not kept open, so that it can be
 * rotated, and that an application which closes all descriptors does no harm. If it cannot be
 * written, one error says so, and lines go where those of "syslog" go.
 * One thread at a time; others may be in log_write().
 */
void log_configure(const struct log_settings *settings);

/*
 * Writes one line, "p11-proxy[pid]: " and the text, with '?' for control characters. Any thread.
 * With syslog an error goes to stderr, too, if that is a terminal or if there is no syslog.
 * A line that would make the caller wait is dropped.
 */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
