/* keep_errno.h - gives the caller back the errno that it had. */
#ifndef P11_PROXY_KEEP_ERRNO_H
#define P11_PROXY_KEEP_ERRNO_H

#include <errno.h>

/* Stands among the declarations of a function, and restores errno wherever that returns. */
#define KEEP_ERRNO() __attribute__((cleanup(errno_restore), unused)) const int errno_before = errno

static inline void errno_restore(const int *before)
{
    errno = *before;
}

#endif
