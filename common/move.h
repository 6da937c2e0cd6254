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

/* Copies len_bytes and wipes them where they came from. The two must not overlap. */
static inline void move_bytes(uint8_t *to, uint8_t *from, size_t len_bytes)
{
    memcpy(to, from, len_bytes);
    if (GUARD(WIPE))
        wipe_bytes(from, len_bytes);
}

#endif
