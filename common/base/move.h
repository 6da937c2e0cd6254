/* move.h - bytes that may be in one place only. */
#ifndef P11_PROXY_MOVE_H
#define P11_PROXY_MOVE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/guard.h"

/* Zeroes len_bytes at bytes; the compiler may not decide that nobody looks. */
static inline void wipe_bytes(void *bytes, size_t len_bytes)
{
    if (len_bytes == 0)
        return;
    memset(bytes, 0, len_bytes);
    __asm__ __volatile__("" : : "r"(bytes) : "memory");
}

typedef uint64_t move_vector __attribute__((vector_size(16), may_alias));

/* Makes zero what was just moved: in the register that it went through, which is then what is wiped with. */
#ifdef __x86_64__
#define FORGET_VECTOR(value) __asm__ __volatile__("pxor %0, %0" : "+x"(value))
#define FORGET_NUMBER(value) __asm__ __volatile__("xor %0, %0" : "+r"(value) : : "cc")
#else
#define FORGET_VECTOR(value) ((value) ^= (value))
#define FORGET_NUMBER(value) ((value) = 0)
#endif

/* Moves one fixed number of bytes: one register, no call. */
#define MOVE_STEP(type, forget)                                                                    \
    do {                                                                                           \
        type value_;                                                                               \
        __builtin_memcpy(&value_, from, sizeof value_);                                            \
        __builtin_memcpy(to, &value_, sizeof value_);                                              \
        forget(value_);                                                                            \
        if (GUARD(WIPE))                                                                           \
            __builtin_memcpy(from, &value_, sizeof value_);                                        \
        to += sizeof value_;                                                                       \
        from += sizeof value_;                                                                     \
        len_bytes -= sizeof value_;                                                                \
    } while (0)

/* Copies len_bytes and wipes them where they came from. The two must not overlap. Written out, since most
 * requests are of 16 or 32 bytes, for which the two calls to libc would cost more than the work. */
static inline void move_bytes(uint8_t *to, uint8_t *from, size_t len_bytes)
{
    while (len_bytes >= sizeof(move_vector))
        MOVE_STEP(move_vector, FORGET_VECTOR);
    if (len_bytes >= sizeof(uint64_t))
        MOVE_STEP(uint64_t, FORGET_NUMBER);
    if (len_bytes >= sizeof(uint32_t))
        MOVE_STEP(uint32_t, FORGET_NUMBER);
    while (len_bytes != 0)
        MOVE_STEP(uint8_t, FORGET_NUMBER);
    __asm__ __volatile__("" : : "r"(from) : "memory");
}

#endif
