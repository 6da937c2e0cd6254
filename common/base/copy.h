/* copy.h - copies random bytes and wipes the place that they came from. */
#ifndef P11_PROXY_COPY_H
#define P11_PROXY_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/safeguard.h"

/* Zeroes len_bytes at bytes; the compiler may not leave it out. len_bytes may be 0. */
static inline void wipe_bytes(void *bytes, size_t len_bytes)
{
    if (len_bytes == 0)
        return;
    memset(bytes, 0, len_bytes);
    __asm__ __volatile__("" : : "r"(bytes) : "memory");
}

/* As copy_and_wipe(). The compiler makes a few moves of it where len_bytes is a constant. */
static inline __attribute__((always_inline)) void copy_and_wipe_len(uint8_t *to, uint8_t *from,
                                                                    size_t len_bytes)
{
    memcpy(to, from, len_bytes);
    if (SAFEGUARD(WIPE))
        wipe_bytes(from, len_bytes);
}

/*
 * Copies len_bytes and wipes them at from. The two must not overlap.
 * Most requests are of 16 or 32 bytes, for which two calls to libc would cost more than the work.
 */
static inline void copy_and_wipe(uint8_t *to, uint8_t *from, size_t len_bytes)
{
    if (len_bytes == 32)
        copy_and_wipe_len(to, from, 32);
    else if (len_bytes == 16)
        copy_and_wipe_len(to, from, 16);
    else
        copy_and_wipe_len(to, from, len_bytes);
}

#endif
