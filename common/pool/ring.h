/* ring.h - bytes that wait to be served, oldest first, each with the time at which its age began.
 *
 * The owner of a ring serialises all calls. All bytes of a struct ring zero is an empty ring without
 * room: what a forked child finds when the ring lies in wiped memory. Positions count bytes since
 * the ring was last empty and only grow; a byte belongs to a piece, to the one open region, or to
 * nobody, and nobody's bytes are zero.
 */
#ifndef P11_PROXY_RING_H
#define P11_PROXY_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RING_PIECES = 64 };

/* Bytes that arrived together. Never crosses the end of the ring's memory. */
struct piece {
    uint64_t start;
    uint64_t end;
    int64_t born_ns;
};

struct ring {
    size_t capacity_bytes;
    size_t held_bytes;
    uint64_t tail;   /* where the next region opens */
    unsigned oldest; /* index into pieces */
    unsigned count;
    size_t open_bytes; /* of the region that a fill owns, 0 if none is open */
    struct piece pieces[RING_PIECES];
};

/* Opens least_bytes to most_bytes of contiguous room behind the newest piece and returns its offset
 * in the ring's memory; *open_bytes says how much it is. False if a region is open already or
 * there is no such room. */
bool ring_open(struct ring *ring, size_t least_bytes, size_t most_bytes, size_t *offset,
               size_t *open_bytes);

/* Closes the open region; its bytes from..upto become the newest piece, born at born_ns. The
 * caller has wiped all others. */
void ring_close(struct ring *ring, size_t from, size_t upto, int64_t born_ns);

/* Moves len_bytes out of memory into buf and wipes them behind. The caller made sure that they are held.
 * Returns when the oldest of them was born. */
int64_t ring_move(struct ring *ring, uint8_t *memory, uint8_t *buf, size_t len_bytes);

/* Bytes in the oldest piece, 0 if empty. */
size_t ring_oldest_bytes(const struct ring *ring);

/* When the oldest piece was born. The ring must not be empty. */
int64_t ring_oldest_born_ns(const struct ring *ring);

/* Wipes the oldest piece. Returns how many bytes that lost, 0 if there is none. */
size_t ring_drop_oldest(struct ring *ring, uint8_t *memory);

#endif
