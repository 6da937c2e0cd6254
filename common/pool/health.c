/* health.c - tests for total failure of a token's generator: the two of SP 800-90B, 4.4, and three of repetition.
 *
 * How often good bytes are refused, for an answer of n = 2^24 bytes, the largest:
 *   unwritten the first or last 8 bytes as they were before: 2^-63
 *   stuck     a run of 12 equal bytes begins at a given byte with 2^-88; n places: 2^-64. An answer of 9 to
 *             11 bytes is all one value with 2^-64 at most
 *   biased    one of 256 values 31 times or more in 512: 2^-77.6 (binomial, p = 1/256), n / 512 windows:
 *             2^-62.6
 *   repeated  two of 2^11 blocks of 16 bytes equal: 2^21 pairs, 2^-128 each; n / 2^15 windows: 2^-98
 *   before    8 remembered digests of 64 bits: 2^-61
 * Together below 2^-60.
 */
#include "pool/health.h"

#include <sys/random.h>

#include "base/keep_errno.h"
#include "base/lock.h"

enum { STUCK_RUN = 12, STUCK_WHOLE = 9, BIAS_WINDOW = 512, BIAS_COUNT = 31, EDGE_BYTES = 8 };

static uint64_t load64(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

void health_start(struct health *h)
{
    KEEP_ERRNO();
    memset(h->recent, 0, sizeof h->recent);
    h->remembers = getrandom(h->key, sizeof h->key, GRND_NONBLOCK) == (ssize_t)sizeof h->key;
}

/* A gap in the middle is found as a run. */
static bool is_unwritten(const uint8_t *bytes, size_t len_bytes)
{
    uint8_t before[EDGE_BYTES];
    health_prefill(before, sizeof before);
    return len_bytes >= EDGE_BYTES &&
           (memcmp(bytes, before, EDGE_BYTES) == 0 ||
            memcmp(bytes + len_bytes - EDGE_BYTES, before, EDGE_BYTES) == 0);
}

static uint64_t rotate(uint64_t word, int by)
{
    return (word << by) | (word >> (64 - by));
}

/* The repetition count test. A shorter answer than a run is stuck if it is one value from end to end. A run has eight
 * equal bytes at a multiple of STUCK_RUN - 8; only around such is it looked for, because this and is_biased() cost more
 * than a fast token's call for the same bytes. */
static bool is_stuck(const uint8_t *bytes, size_t len_bytes)
{
    bool is_short = len_bytes >= STUCK_WHOLE && len_bytes < STUCK_RUN;
    size_t longest = is_short ? len_bytes : STUCK_RUN;
    for (size_t i = 0; i + 8 <= len_bytes; i += STUCK_RUN - 8) {
        uint64_t word = load64(bytes + i);
        size_t start = i, end = i + 8;
        if (word != rotate(word, 8))
            continue;
        while (start > 0 && bytes[start - 1] == bytes[i])
            start--;
        while (end < len_bytes && bytes[end] == bytes[i])
            end++;
        if (end - start >= longest)
            return true;
    }
    return false;
}

/* The adaptive proportion test, for every value. */
static bool is_biased(const uint8_t *bytes, size_t len_bytes)
{
    for (const uint8_t *end = bytes + len_bytes; end - bytes >= BIAS_COUNT;) {
        const uint8_t *window_end = end - bytes > BIAS_WINDOW ? bytes + BIAS_WINDOW : end;
        uint16_t counts[256] = {0}, most = 0;
        while (bytes < window_end)
            counts[*bytes++]++;
        for (unsigned value = 0; value < 256; value++)
            most = counts[value] > most ? counts[value] : most;
        if (most >= BIAS_COUNT)
            return true;
    }
    return false;
}

/* Whether two blocks of a window are equal. A place is 0 or the number of a block that hashes there or
 * before it; at most half of the places are used. */
static bool is_repeated_locked(struct health *h, const uint8_t *bytes, size_t len_bytes)
{
    size_t blocks = len_bytes / HEALTH_BLOCK_BYTES;
    size_t place_count = 2;
    while (place_count < 2 * blocks)
        place_count *= 2;
    memset(h->places, 0, place_count * sizeof *h->places);
    for (size_t i = 0; i < blocks; i++) {
        const uint8_t *block = bytes + i * HEALTH_BLOCK_BYTES;
        size_t place = (size_t)(load64(block) ^ load64(block + 8)) & (place_count - 1);
        for (; h->places[place] != 0; place = (place + 1) & (place_count - 1)) {
            const uint8_t *other = bytes + (size_t)(h->places[place] - 1) * HEALTH_BLOCK_BYTES;
            if (memcmp(other, block, HEALTH_BLOCK_BYTES) == 0)
                return true;
        }
        h->places[place] = (uint16_t)(i + 1);
    }
    return false;
}

static void sip_rounds(uint64_t v[4], int rounds)
{
    for (int i = 0; i < rounds; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

/* SipHash-2-4 of one block. */
static uint64_t digest(const uint64_t key[2], const uint8_t *block)
{
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                     key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
    /* Loaded one by one, because an array of them would leave the block on the stack. */
    for (size_t at = 0; at <= HEALTH_BLOCK_BYTES; at += sizeof(uint64_t)) {
        uint64_t word =
            at < HEALTH_BLOCK_BYTES ? load64(block + at) : (uint64_t)HEALTH_BLOCK_BYTES << 56;
        v[3] ^= word;
        sip_rounds(v, 2);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Whether one of the last answers began with the same block. Remembers this one. */
static bool came_before_locked(struct health *h, const uint8_t *bytes, size_t len_bytes)
{
    if (!h->remembers || len_bytes < HEALTH_BLOCK_BYTES)
        return false;
    uint64_t opening = digest(h->key, bytes);
    for (unsigned i = 0; i < HEALTH_RECENT; i++)
        if (h->recent[i] == opening)
            return true;
    unsigned place = len_bytes >= HEALTH_LARGE_BYTES
                         ? h->next_large++ % HEALTH_LARGE
                         : HEALTH_LARGE + h->next_small++ % (HEALTH_RECENT - HEALTH_LARGE);
    h->recent[place] = opening;
    return false;
}

const char *health_test(struct health *h, const uint8_t *bytes, size_t len_bytes)
{
    if (is_unwritten(bytes, len_bytes))
        return "says that it wrote bytes which it did not write";
    if (is_stuck(bytes, len_bytes))
        return "is stuck at one value";
    if (is_biased(bytes, len_bytes))
        return "prefers one value beyond chance";
    for (size_t done = 0; done < len_bytes; done += HEALTH_WINDOW_BYTES) {
        size_t left = len_bytes - done;
        /* Unlocked after each window, so that a short answer does not wait for a long one. */
        HOLD(&h->lock);
        if (is_repeated_locked(h, bytes + done,
                               left < HEALTH_WINDOW_BYTES ? left : HEALTH_WINDOW_BYTES) ||
            (done == 0 && came_before_locked(h, bytes, len_bytes)))
            return "repeats itself";
    }
    return NULL;
}
