/* file.h - reads a whole small file that an administrator wrote, and never waits for one. */
#ifndef P11_PROXY_FILE_H
#define P11_PROXY_FILE_H

#include "base/message.h"

enum { FILE_MOST_BYTES = 1024 * 1024 };

/*
 * Reads the regular file at path. On 0 *text is the content with a NUL after its last byte, and the
 * caller's to free().
 * secure: the process has more rights than its user, so a file that a user other than root could
 * have written is refused: root must own it, and neither group nor others may write it. (Only the
 * file itself is looked at; its folders are the administrator's business.)
 * A file that is written to while it is read is read once more.
 * Any thread. Does not wait for a FIFO or a device.
 * On failure *text is untouched and the message reads "<path>: ...":
 *   -ENOENT, -ENOTDIR  there is no such file
 *   -EACCES, -EIO ...  as open(2) and read(2) have it
 *   -EISDIR, -EINVAL   a directory; not a regular file, or holds a NUL byte
 *   -EFBIG             more than FILE_MOST_BYTES
 *   -EAGAIN            was written to while it was read, twice
 *   -EPERM             refused because of secure
 *   -ENOMEM
 */
int file_read(char **text, const char *path, bool secure, struct message *message);

#endif
