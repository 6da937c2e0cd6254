/* words.h - what the counting target's random output looks like, so that every piece of it can be told apart.
 *
 * The output is a stream of 64-bit little-endian words, never zero, each made once. A word names
 * itself, so it is recognised at any alignment: the upper 24 bits are a check of the lower 40.
 */
#ifndef P11_PROXY_TEST_WORDS_H
#define P11_PROXY_TEST_WORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    WORD_BYTES = 8,
    COUNTER_BITS = 30,
    SEED_BITS = 4,
    LOGIN_BITS = 2,
    SLOT_BITS = 4,
    LOWER_BITS = COUNTER_BITS + SEED_BITS + LOGIN_BITS + SLOT_BITS
};

/* Whose word it is. */
struct word {
    uint64_t counter; /* from 1, in the order in which words were made */
    unsigned seed;    /* how often the slot's token was seeded, modulo 16 */
    unsigned login;   /* 0 nobody, 1 the user, 2 the SO */
    unsigned slot;
};

static inline uint64_t word_check(uint64_t lower)
{
    return (lower + 1) * 0x9E3779B97F4A7C15ULL >> LOWER_BITS;
}

static inline uint64_t word_make(const struct word *word)
{
    uint64_t lower = word->slot % (1U << SLOT_BITS);
    lower = lower << LOGIN_BITS | word->login % (1U << LOGIN_BITS);
    lower = lower << SEED_BITS | word->seed % (1U << SEED_BITS);
    lower = lower << COUNTER_BITS | word->counter % (1U << COUNTER_BITS);
    return word_check(lower) << LOWER_BITS | lower;
}

/* The word that starts at bytes (WORD_BYTES of them); false if none does. */
static inline bool word_read(const uint8_t *bytes, struct word *word)
{
    uint64_t whole = 0;
    for (int i = WORD_BYTES - 1; i >= 0; i--)
        whole = whole << 8 | bytes[i];
    uint64_t lower = whole & ((1ULL << LOWER_BITS) - 1);
    word->counter = lower % (1U << COUNTER_BITS);
    word->seed = (unsigned)(lower >> COUNTER_BITS) % (1U << SEED_BITS);
    word->login = (unsigned)(lower >> (COUNTER_BITS + SEED_BITS)) % (1U << LOGIN_BITS);
    word->slot = (unsigned)(lower >> (COUNTER_BITS + SEED_BITS + LOGIN_BITS));
    return word->counter != 0 && whole >> LOWER_BITS == word_check(lower);
}

#endif
