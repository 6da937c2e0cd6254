/* file.h - reads a whole small file that an administrator wrote. */
#ifndef P11_PROXY_FILE_H
#define P11_PROXY_FILE_H

#include "base/message.h"

enum { FILE_MOST_BYTES = 1024 * 1024 };

/*
 * Reads the regular file at path, and never waits for a FIFO or a device. Any thread.
 * A file that is written to meanwhile is not fit.
 * Returns 0 and *text with a NUL behind it, which the caller frees; or, with a message that reads
 * "<path>: ...", the error of open(2) or read(2), or -EINVAL for a file that is not fit.
 */
int file_read(char **text, const char *path, struct message *message);

#endif
