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

typedef uint64_t copy_vector __attribute__((vector_size(16), may_alias));

/* One fixed number of bytes. */
#define COPY_STEP(type, at)                                                                        \
    do {                                                                                           \
        type value_, zero_ = {0};                                                                  \
        __builtin_memcpy(&value_, from + (at), sizeof value_);                                     \
        __builtin_memcpy(to + (at), &value_, sizeof value_);                                       \
        if (SAFEGUARD(WIPE))                                                                       \
            __builtin_memcpy(from + (at), &zero_, sizeof zero_);                                   \
    } while (0)

/*
 * Copies len_bytes and wipes them at from. The two must not overlap.
 * Most requests are of 16 or 32 bytes, for which two calls to libc would cost more than the work.
 */
static inline void copy_and_wipe(uint8_t *to, uint8_t *from, size_t len_bytes)
{
    if (len_bytes == 32) {
        COPY_STEP(copy_vector, 0);
        COPY_STEP(copy_vector, 16);
    } else if (len_bytes == 16)
        COPY_STEP(copy_vector, 0);
    else {
        memcpy(to, from, len_bytes);
        if (SAFEGUARD(WIPE))
            memset(from, 0, len_bytes);
    }
    __asm__ __volatile__("" : : "r"(from) : "memory");
}

#endif
