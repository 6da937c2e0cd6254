/* health.c - tests for total failure of a token's generator.
 *
 * How often good bytes are refused, for an answer of n = 2^24 bytes, the largest:
 *   stuck     a run of 12 equal bytes begins at a given byte with 2^-88; n places: 2^-64. An answer of 9 to
 *             11 bytes is all one value with 2^-64 at most
 *   biased    one of 256 values 31 times or more in 512: 2^-77.6 (binomial, p = 1/256), n / 512 windows:
 *             2^-62.6
 *   repeated  two of 2^11 blocks of 16 bytes equal: 2^21 pairs, 2^-128 each; n / 2^15 windows: 2^-98
 *   before    8 remembered digests of 64 bits: 2^-61
 *   unwritten the first or last 8 bytes, or a block of 16, as we wrote them: 2^-63
 * Together below 2^-60.
 */
#include "pool/health.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

enum {
    STUCK_RUN = 12,
    STUCK_WHOLE = 9, /* a shorter answer than a run is stuck if it is one value from end to end */
    BIAS_WINDOW = 512,
    BIAS_COUNT = 31,
    EDGE_BYTES = 8
};

static const uint8_t untouched[HEALTH_BLOCK_BYTES] = {
    0x5a, 0xc3, 0x17, 0x9e, 0x64, 0xb8, 0x2d, 0xf1, 0x0b, 0xd6, 0x8f, 0x42, 0xe9, 0x35, 0x70, 0xac};

static uint64_t load64(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

void health_start(struct health *h)
{
    int saved_errno = errno;
    memset(h->recent, 0, sizeof h->recent);
    h->remembers = getrandom(h->key, sizeof h->key, GRND_NONBLOCK) == (ssize_t)sizeof h->key;
    errno = saved_errno;
}

void health_prefill(uint8_t *bytes, size_t len_bytes)
{
    size_t done = 0;
    for (; len_bytes - done >= sizeof untouched; done += sizeof untouched)
        memcpy(bytes + done, untouched, sizeof untouched);
    memcpy(bytes + done, untouched, len_bytes - done);
}

static bool is_unwritten(const uint8_t *bytes, size_t len_bytes)
{
    if (len_bytes < EDGE_BYTES)
        return false;
    uint8_t edge[EDGE_BYTES];
    for (size_t i = 0; i < EDGE_BYTES; i++)
        edge[i] = untouched[(len_bytes - EDGE_BYTES + i) % sizeof untouched];
    if (memcmp(bytes, untouched, EDGE_BYTES) == 0 ||
        memcmp(bytes + len_bytes - EDGE_BYTES, edge, EDGE_BYTES) == 0)
        return true;
    for (size_t i = 0; i + sizeof untouched <= len_bytes; i += sizeof untouched)
        if (load64(bytes + i) == load64(untouched) &&
            memcmp(bytes + i, untouched, sizeof untouched) == 0)
            return true;
    return false;
}

static size_t run_around(const uint8_t *bytes, size_t len_bytes, size_t at)
{
    size_t from = at;
    size_t upto = at + 1;
    while (from > 0 && bytes[from - 1] == bytes[at])
        from--;
    while (upto < len_bytes && bytes[upto] == bytes[at])
        upto++;
    return upto - from;
}

/* Every run of 12 holds four bytes, the first at a multiple of four, that equal their successors. */
static bool is_stuck(const uint8_t *bytes, size_t len_bytes)
{
    size_t i = 0;
    if (len_bytes >= STUCK_WHOLE && len_bytes < STUCK_RUN)
        return run_around(bytes, len_bytes, 0) == len_bytes;
    for (; i + 9 <= len_bytes; i += 8) {
        uint64_t difference = load64(bytes + i) ^ load64(bytes + i + 1);
        if (((uint32_t)difference == 0 || difference >> 32 == 0) &&
            (run_around(bytes, len_bytes, i) >= STUCK_RUN ||
             run_around(bytes, len_bytes, i + 4) >= STUCK_RUN))
            return true;
    }
    return i < len_bytes && run_around(bytes, len_bytes, i) >= STUCK_RUN;
}

/* Whether a byte of word is BIAS_COUNT or more; for bytes up to 127 + BIAS_COUNT. */
static uint64_t has_many(uint64_t word)
{
    const uint64_t each = 0x0101010101010101;
    return (word + (128 - BIAS_COUNT) * each) & 128 * each;
}

/* Each quarter of a window is counted in a table of its own, so that no count waits for the one before. At
 * most 128 fit a byte, and where none is many, the sum of four fits too. */
static bool is_biased(struct health *h, const uint8_t *bytes, size_t len_bytes)
{
    for (size_t start = 0; start < len_bytes; start += BIAS_WINDOW) {
        size_t end = len_bytes - start < BIAS_WINDOW ? len_bytes : start + BIAS_WINDOW;
        size_t i = start;
        if (end - start < BIAS_COUNT)
            return false;
        memset(h->counts, 0, sizeof h->counts);
        for (; i + HEALTH_TABLES <= end; i += HEALTH_TABLES) {
            h->counts[0][bytes[i]]++;
            h->counts[1][bytes[i + 1]]++;
            h->counts[2][bytes[i + 2]]++;
            h->counts[3][bytes[i + 3]]++;
        }
        for (size_t table = 0; i < end; i++, table++)
            h->counts[table][bytes[i]]++;

        uint64_t many = 0;
        for (size_t value = 0; value < 256; value += 8) {
            uint64_t a = load64(h->counts[0] + value), b = load64(h->counts[1] + value);
            uint64_t c = load64(h->counts[2] + value), d = load64(h->counts[3] + value);
            many |= has_many(a) | has_many(b) | has_many(c) | has_many(d) | has_many(a + b + c + d);
        }
        if (many != 0)
            return true;
    }
    return false;
}

static bool are_equal_blocks(const uint8_t *one, const uint8_t *other)
{
    return ((load64(one) ^ load64(other)) | (load64(one + 8) ^ load64(other + 8))) == 0;
}

/* Whether two blocks of a window are equal. A place is 0 or the number of a block that hashes there or
 * before it; at most half of the places are used. */
static bool is_repeated(struct health *h, const uint8_t *bytes, size_t len_bytes)
{
    size_t blocks = len_bytes / HEALTH_BLOCK_BYTES;
    size_t place_count = 2;
    while (place_count < 2 * blocks)
        place_count *= 2;
    memset(h->places, 0, place_count * sizeof *h->places);
    for (size_t i = 0; i < blocks; i++) {
        const uint8_t *block = bytes + i * HEALTH_BLOCK_BYTES;
        size_t place = (size_t)(load64(block) ^ load64(block + 8)) & (place_count - 1);
        for (; h->places[place] != 0; place = (place + 1) & (place_count - 1))
            if (are_equal_blocks(bytes + (size_t)(h->places[place] - 1) * HEALTH_BLOCK_BYTES,
                                 block))
                return true;
        h->places[place] = (uint16_t)(i + 1);
    }
    return false;
}

static uint64_t rotate(uint64_t word, int by)
{
    return (word << by) | (word >> (64 - by));
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
    for (size_t i = 0; i <= HEALTH_BLOCK_BYTES; i += 8) {
        uint64_t word =
            i < HEALTH_BLOCK_BYTES ? load64(block + i) : (uint64_t)HEALTH_BLOCK_BYTES << 56;
        v[3] ^= word;
        sip_rounds(v, 2);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Whether one of the last answers began with the same block. Remembers this one. */
static bool came_before(struct health *h, const uint8_t *bytes, size_t len_bytes)
{
    if (!h->remembers || len_bytes < HEALTH_BLOCK_BYTES)
        return false;
    uint64_t opening = digest(h->key, bytes);
    for (unsigned i = 0; i < HEALTH_RECENT; i++)
        if (h->recent[i] == opening)
            return true;
    h->recent[h->next++ % HEALTH_RECENT] = opening;
    return false;
}

enum health_result health_test(struct health *h, const uint8_t *bytes, size_t len_bytes)
{
    enum health_result result = is_unwritten(bytes, len_bytes) ? HEALTH_UNWRITTEN
                                : is_stuck(bytes, len_bytes)   ? HEALTH_STUCK
                                                               : HEALTH_GOOD;
    for (size_t done = 0; result == HEALTH_GOOD && done < len_bytes; done += HEALTH_WINDOW_BYTES) {
        size_t left = len_bytes - done;
        size_t window = left < HEALTH_WINDOW_BYTES ? left : HEALTH_WINDOW_BYTES;
        /* Unlocked after each window, so that a short answer does not wait for a long one. */
        pthread_mutex_lock(&h->lock);
        if (is_biased(h, bytes + done, window))
            result = HEALTH_BIASED;
        else if (is_repeated(h, bytes + done, window) ||
                 (done == 0 && came_before(h, bytes, len_bytes)))
            result = HEALTH_REPEATED;
        pthread_mutex_unlock(&h->lock);
    }
    return result;
}

const char *health_text(enum health_result result)
{
    switch (result) {
    case HEALTH_UNWRITTEN:
        return "says that it wrote bytes which it did not write";
    case HEALTH_STUCK:
        return "is stuck at one value";
    case HEALTH_BIASED:
        return "prefers one value beyond chance";
    case HEALTH_REPEATED:
        return "repeats itself";
    case HEALTH_GOOD:
        break;
    }
    return "is well";
}
