/* ring.h - bytes that wait to be served, oldest first, each with the time before which it was fetched.
 *
 * The owner serialises all calls but ring_taken(). What changes is in struct ring_state, of which zero bytes are an
 * empty ring, as a forked child finds it. Positions count bytes since the ring was last empty. A byte belongs to a
 * segment, to the one open region, to a take, or to none, and then it is zero.
 */
#ifndef P11_PROXY_RING_H
#define P11_PROXY_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RING_SEGMENTS = 64 };

/* Bytes that arrived together. A segment never crosses the end of the ring's memory. */
struct segment {
    uint64_t start;
    uint64_t end;
    int64_t fetched_ns;
};

static inline size_t segment_bytes(const struct segment *segment)
{
    return (size_t)(segment->end - segment->start);
}

struct ring_state {
    size_t held_bytes;
    uint64_t tail;   /* where the next region opens */
    unsigned oldest; /* index into segments */
    unsigned count;
    size_t open_bytes;    /* of the region that a fetch owns, 0 if none is open */
    atomic_uint takes;    /* begun by ring_take() and not ended */
    uint64_t takes_start; /* where the first of them began, if there are any */
    struct segment segments[RING_SEGMENTS];
};

struct ring {
    struct ring_state *state;
    uint8_t *bytes;
    size_t capacity_bytes;
};

static inline size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Opens least_bytes to most_bytes of contiguous room behind the newest segment and returns where it is;
 * *open_bytes says how much. NULL if a region is open already or there is no such room. */
uint8_t *ring_open(const struct ring *ring, size_t least_bytes, size_t most_bytes,
                   size_t *open_bytes);

/* Closes the open region. Its first len_bytes become the newest segment; the caller has wiped the others. */
void ring_close(const struct ring *ring, size_t len_bytes, int64_t fetched_ns);

/* Moves len_bytes, of which at least so many are held, to buf and wipes them behind. */
void ring_move(const struct ring *ring, uint8_t *buf, size_t len_bytes);

/* Takes the first len_bytes of the oldest segment, at least one. The caller moves and wipes them where they are, then
 * calls ring_taken(), on any thread; until then no region opens there. */
uint8_t *ring_take(const struct ring *ring, size_t len_bytes);
void ring_taken(const struct ring *ring);

/* The oldest segment, NULL if nothing is held. */
const struct segment *ring_oldest(const struct ring *ring);

/* Wipes the oldest segment, if there is one. Returns how many bytes that lost. */
size_t ring_drop_oldest(const struct ring *ring);

/* Wipes the oldest segments until no more than keep_bytes are held. Returns how many bytes that lost. */
size_t ring_shrink(const struct ring *ring, size_t keep_bytes);

#endif
