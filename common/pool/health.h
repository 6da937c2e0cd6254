/* health.h - tells bytes that a token cannot have meant from random ones.
 *
 * Catches total failure: nothing written, too little written, stuck, repeating, biased beyond chance.
 * It says nothing about bytes that look random and are not. The chance that it refuses good bytes is
 * below 2^-60 for a chunk of up to 8 MiB; health.c derives it.
 */
#ifndef P11_PROXY_HEALTH_H
#define P11_PROXY_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum health {
    HEALTH_GOOD,
    HEALTH_UNWRITTEN, /* bytes are as health_prefill() left them */
    HEALTH_STUCK,     /* one value, many times in a row */
    HEALTH_BIASED,    /* one value, too often */
    HEALTH_REPEATED   /* a block came twice */
};

enum {
    HEALTH_RECENT = 8,
    HEALTH_WINDOW_BYTES = 32 * 1024, /* a block is looked for in so many bytes */
    HEALTH_BLOCK_BYTES = 16,
    HEALTH_PLACES = 2 * HEALTH_WINDOW_BYTES / HEALTH_BLOCK_BYTES
};

/* What earlier chunks began with, as keyed digests too short to tell what it was, and room to work in. All
 * zero is fine, but remembers nothing: see health_remember(). Calls on one of these one at a time. */
struct health_memory {
    bool remembers;
    uint64_t key[2];
    uint64_t recent[HEALTH_RECENT];
    unsigned next;
    uint16_t places[HEALTH_PLACES];
};

/* Draws a key, so that memory->recent tells nothing without it. Keeps errno. Without a key from the kernel
 * chunks are tested, but not compared with earlier ones. */
void health_remember(struct health_memory *memory);

/* Writes what health_test() takes for "not written" to bytes, before the token does. */
void health_prefill(uint8_t *bytes, size_t len_bytes);

/* Tests len_bytes that the token wrote over health_prefill()'s. Needs at least 8 of them to tell that
 * they were not written, and says HEALTH_GOOD of fewer that are not plainly stuck. memory NULL: the
 * chunk (of at most 1024 bytes then) is not compared with earlier ones. */
enum health health_test(struct health_memory *memory, const uint8_t *bytes, size_t len_bytes);

/* "repeats itself", for a message. */
const char *health_words(enum health health);

#endif
