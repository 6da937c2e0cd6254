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

#define COPY_STEP(type)                                                                            \
    do {                                                                                           \
        type value_, zero_ = {0};                                                                  \
        __builtin_memcpy(&value_, from, sizeof value_);                                            \
        __builtin_memcpy(to, &value_, sizeof value_);                                              \
        if (SAFEGUARD(WIPE))                                                                       \
            __builtin_memcpy(from, &zero_, sizeof zero_);                                          \
        to += sizeof value_;                                                                       \
        from += sizeof value_;                                                                     \
        len_bytes -= sizeof value_;                                                                \
    } while (0)

/*
 * Copies len_bytes and wipes them at from. The two must not overlap.
 * Written out, because most requests are of 16 or 32 bytes and two calls to libc cost more than that.
 */
static inline void copy_and_wipe(uint8_t *to, uint8_t *from, size_t len_bytes)
{
    while (len_bytes >= sizeof(copy_vector))
        COPY_STEP(copy_vector);
    if (len_bytes >= sizeof(uint64_t))
        COPY_STEP(uint64_t);
    while (len_bytes != 0)
        COPY_STEP(uint8_t);
    __asm__ __volatile__("" : : "r"(from) : "memory");
}

#endif
