/* policy_fold.h - names compared and hashed as eight-byte words, ignoring case. */
#ifndef P11_PROXY_POLICY_FOLD_H
#define P11_PROXY_POLICY_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FOLD_BYTES      sizeof(uint64_t)
#define FOLD_EVERY_BYTE 0x0101010101010101u

/* 'A' to 'Z' become 'a' to 'z'; every other byte stays. */
static inline uint64_t fold_word(uint64_t word)
{
    uint64_t low7 = word & 0x7f * FOLD_EVERY_BYTE;
    uint64_t from_a = low7 + (0x80 - 'A') * FOLD_EVERY_BYTE;
    uint64_t beyond_z = low7 + (0x7f - 'Z') * FOLD_EVERY_BYTE;
    uint64_t upper = (from_a ^ beyond_z) & ~word & 0x80 * FOLD_EVERY_BYTE;
    return word | upper >> 2; /* 0x80 becomes the 0x20 between the cases */
}

/*
 * The first eight bytes of text, or a shorter text and zeros: then the first byte is the lowest.
 * Reads no byte outside text.
 */
static inline uint64_t fold_start(const char *text, size_t len)
{
    uint64_t word = 0;

    if (len >= FOLD_BYTES) {
        memcpy(&word, text, FOLD_BYTES);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    } else if (len >= 4) {
        /* Two reads that overlap: a copy of unknown length costs more than the whole lookup. */
        uint32_t head, tail;
        memcpy(&head, text, 4);
        memcpy(&tail, text + len - 4, 4);
        word = head | (uint64_t)tail << 8 * (len - 4);
#endif
    } else {
        for (size_t i = 0; i < len; i++)
            word |= (uint64_t)(uint8_t)text[i] << 8 * i;
    }
    return fold_word(word);
}

static inline char fold_char(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/*
 * Whether the first len bytes are the same but for case. Stops at the first that differ, so a NUL
 * ends either. Not strncasecmp(): the application's locale must not decide which algorithm is
 * meant.
 */
static inline bool fold_same(const char *left, const char *right, size_t len)
{
    size_t i = 0;

    while (i < len && fold_char(left[i]) == fold_char(right[i]))
        i++;
    return i == len;
}

static inline uint64_t fold_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u; /* 2^64 divided by the golden ratio */
    return hash ^ hash >> 29;
}

static inline uint64_t fold_hash(uint64_t start, const char *text, size_t len)
{
    uint64_t hash = fold_mix(len, start);
    for (size_t at = FOLD_BYTES; at < len; at += FOLD_BYTES)
        hash = fold_mix(hash, fold_start(text + at, len - at));
    return hash ^ hash >> 32;
}

/*
 * The top bit of each byte of word that is c. Behind such a byte other bytes may have it too: right
 * for "is there any", and never too few.
 */
static inline uint64_t fold_bytes_equal(uint64_t word, char c)
{
    uint64_t other = word ^ (uint8_t)c * FOLD_EVERY_BYTE;
    return (other - FOLD_EVERY_BYTE) & ~other & 0x80 * FOLD_EVERY_BYTE;
}

#endif
