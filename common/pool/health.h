/* health.h - tests of every answer of a token's generator, before a caller sees any of it. */
#ifndef P11_PROXY_HEALTH_H
#define P11_PROXY_HEALTH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    HEALTH_RECENT = 8,
    HEALTH_LARGE = 5,                /* of those, answers of at least */
    HEALTH_LARGE_BYTES = 256,        /* so many bytes, which many small ones must not push out */
    HEALTH_WINDOW_BYTES = 32 * 1024, /* a repeated block is found within so many bytes */
    HEALTH_BLOCK_BYTES = 16,
    HEALTH_PLACES = 2 * HEALTH_WINDOW_BYTES / HEALTH_BLOCK_BYTES,
    HEALTH_PREFILL = 0x5a
};

/* What the tests say of a token's generator. */
enum health_verdict {
    HEALTH_OK,
    HEALTH_SUSPECT, /* its last answer was bad; the next one decides */
    HEALTH_FAILED   /* twice in a row: no random bytes until C_Finalize */
};

/*
 * What is remembered of one generator: keyed digests of how its last answers began, too short to tell what
 * they were. The table to search in is here and not on a caller's stack. Lies in memory that fork wipes;
 * zero bytes are a valid, forgetful state.
 */
struct health {
    pthread_mutex_t lock; /* guards all below */
    bool remembers;
    uint64_t key[2];
    uint64_t recent[HEALTH_RECENT];
    unsigned next_small, next_large;
    uint16_t places[HEALTH_PLACES];
};

/* Forgets, and draws a key. Keeps errno. Without a key from the kernel answers are tested, but not compared
 * with earlier ones. No other thread uses h. */
void health_start(struct health *h);

/* Writes to bytes what health_test() takes for "not written". To be called before the token writes there. */
static inline void health_prefill(uint8_t *bytes, size_t len_bytes)
{
    memset(bytes, HEALTH_PREFILL, len_bytes);
}

/*
 * Tests one answer of len_bytes, written over what health_prefill() wrote. Any thread. Of fewer than 8 bytes
 * it cannot tell whether they were written, and of fewer than 16 not whether they came before.
 * Returns NULL if they are good, or what the generator did, for a message: "repeats itself".
 */
const char *health_test(struct health *h, const uint8_t *bytes, size_t len_bytes);

#endif
