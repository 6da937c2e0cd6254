/* move.h - bytes that may be in one place only. */
#ifndef P11_PROXY_MOVE_H
#define P11_PROXY_MOVE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "guard.h"

/* Zeroes len_bytes at bytes; the compiler may not decide that nobody looks. */
static inline void wipe_bytes(void *bytes, size_t len_bytes)
{
    if (len_bytes == 0)
        return;
    memset(bytes, 0, len_bytes);
    __asm__ __volatile__("" : : "r"(bytes) : "memory");
}

/* Moves one fixed number of bytes: registers, no call. */
#define MOVE_STEP(bytes)                                                                           \
    do {                                                                                           \
        __builtin_memcpy(to, from, bytes);                                                         \
        if (GUARD(WIPE))                                                                           \
            __builtin_memset(from, 0, bytes);                                                      \
        to += (bytes);                                                                             \
        from += (bytes);                                                                           \
        len_bytes -= (bytes);                                                                      \
    } while (0)

/* Copies len_bytes and wipes them where they came from. The two must not overlap. Written out, since most
 * requests are of 16 or 32 bytes, for which the two calls to libc would cost more than the work. */
static inline void move_bytes(uint8_t *to, uint8_t *from, size_t len_bytes)
{
    while (len_bytes >= 16)
        MOVE_STEP(16);
    if (len_bytes >= 8)
        MOVE_STEP(8);
    if (len_bytes >= 4)
        MOVE_STEP(4);
    while (len_bytes != 0)
        MOVE_STEP(1);
    __asm__ __volatile__("" : : "r"(from) : "memory");
}

#endif
