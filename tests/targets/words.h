/* words.h - what the scripted target's random output looks like, so that every piece of it can be told apart.
 *
 * The output is a stream of 64-bit little-endian words, each made once. A word names itself, so it is
 * recognised at any alignment: of what it says, the upper 24 bits are a check of the lower 40. What it says is
 * scrambled, one to one, so that a health test takes it for random.
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
    unsigned login;   /* 0 no user, 1 the user, 2 the SO */
    unsigned slot;
};

static inline uint64_t word_check(uint64_t lower)
{
    return (lower + 1) * 0x9E3779B97F4A7C15ULL >> LOWER_BITS;
}

/* The finalizer of SplitMix64, and its inverse. */
static inline uint64_t word_scramble(uint64_t plain)
{
    plain = (plain ^ plain >> 30) * 0xbf58476d1ce4e5b9ULL;
    plain = (plain ^ plain >> 27) * 0x94d049bb133111ebULL;
    return plain ^ plain >> 31;
}

static inline uint64_t word_unscramble(uint64_t whole)
{
    whole = (whole ^ whole >> 31 ^ whole >> 62) * 0x319642b2d24d8ec3ULL;
    whole = (whole ^ whole >> 27 ^ whole >> 54) * 0x96de1b173f119089ULL;
    return whole ^ whole >> 30 ^ whole >> 60;
}

static inline uint64_t word_make(const struct word *word)
{
    uint64_t lower = word->slot % (1U << SLOT_BITS);
    lower = lower << LOGIN_BITS | word->login % (1U << LOGIN_BITS);
    lower = lower << SEED_BITS | word->seed % (1U << SEED_BITS);
    lower = lower << COUNTER_BITS | word->counter % (1U << COUNTER_BITS);
    return word_scramble(word_check(lower) << LOWER_BITS | lower);
}

/* The word that starts at bytes (WORD_BYTES of them); false if none does. */
static inline bool word_read(const uint8_t *bytes, struct word *word)
{
    uint64_t whole = 0;
    for (int i = WORD_BYTES - 1; i >= 0; i--)
        whole = whole << 8 | bytes[i];
    whole = word_unscramble(whole);
    uint64_t lower = whole & ((1ULL << LOWER_BITS) - 1);
    word->counter = lower % (1U << COUNTER_BITS);
    word->seed = (unsigned)(lower >> COUNTER_BITS) % (1U << SEED_BITS);
    word->login = (unsigned)(lower >> (COUNTER_BITS + SEED_BITS)) % (1U << LOGIN_BITS);
    word->slot = (unsigned)(lower >> (COUNTER_BITS + SEED_BITS + LOGIN_BITS));
    return word->counter != 0 && whole >> LOWER_BITS == word_check(lower);
}

#endif
