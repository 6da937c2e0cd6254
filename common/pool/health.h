/* health.h - tests of every answer of a token's generator, before a caller sees any of it. */
#ifndef P11_PROXY_HEALTH_H
#define P11_PROXY_HEALTH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum health_result {
    HEALTH_GOOD,
    HEALTH_UNWRITTEN, /* the token said CKR_OK and left the bytes, or some, as they were */
    HEALTH_STUCK,     /* one value, many times in a row */
    HEALTH_BIASED,    /* one value, too often */
    HEALTH_REPEATED   /* a block came twice, or an answer begins as one of the last did */
};

enum {
    HEALTH_RECENT = 8,
    HEALTH_WINDOW_BYTES = 32 * 1024, /* a repeated block is found within so many bytes */
    HEALTH_BLOCK_BYTES = 16,
    HEALTH_PLACES = 2 * HEALTH_WINDOW_BYTES / HEALTH_BLOCK_BYTES,
    HEALTH_TABLES = 4
};

/*
 * What is remembered of one generator: keyed digests of how its last answers began, too short to tell what
 * they were. The tables to count in are here and not on a caller's stack. Lies in memory that fork wipes;
 * zero bytes are a valid, forgetful state.
 */
struct health {
    pthread_mutex_t lock; /* guards all below */
    bool remembers;
    uint64_t key[2];
    uint64_t recent[HEALTH_RECENT];
    unsigned next;
    uint8_t counts[HEALTH_TABLES][256];
    uint16_t places[HEALTH_PLACES];
};

/* Forgets, and draws a key. Keeps errno. Without a key from the kernel answers are tested, but not compared
 * with earlier ones. No other thread uses h. */
void health_start(struct health *h);

/* Writes to bytes what health_test() takes for "not written". To be called before the token writes there. */
void health_prefill(uint8_t *bytes, size_t len_bytes);

/* Tests one answer of len_bytes, written over what health_prefill() wrote. Any thread. Of fewer than 8 bytes
 * it cannot tell whether they were written, and of fewer than 16 not whether they came before. */
enum health_result health_test(struct health *h, const uint8_t *bytes, size_t len_bytes);

/* "repeats itself", for a message. */
const char *health_text(enum health_result result);

#endif
