/* ring.c - bytes that wait to be served, oldest first. */
#include "pool/ring.h"

#include "base/move.h"

static struct piece *oldest(struct ring *ring)
{
    return &ring->pieces[ring->oldest % RING_PIECES];
}

static struct piece *newest(struct ring *ring)
{
    return &ring->pieces[(ring->oldest + ring->count - 1) % RING_PIECES];
}

/* 0, too, if an end was wiped after its start was read. */
static size_t piece_bytes(uint64_t start, uint64_t end)
{
    return end > start ? (size_t)(end - start) : 0;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

bool ring_open(struct ring *ring, size_t least_bytes, size_t most_bytes, size_t *offset,
               size_t *open_bytes)
{
    size_t capacity = ring->capacity_bytes;
    if (capacity == 0 || ring->open_bytes != 0 || ring->count == RING_PIECES)
        return false;
    if (ring->count == 0)
        ring->tail = 0;

    uint64_t head = ring->count == 0 ? ring->tail : oldest(ring)->start;
    size_t room = capacity - (size_t)(ring->tail - head);
    size_t to_end = capacity - (size_t)(ring->tail % capacity);
    /* A scrap before the end of the memory is not worth a call of its own to the token. */
    if (to_end < most_bytes && room > to_end && room - to_end >= most_bytes) {
        ring->tail += to_end;
        room -= to_end;
        to_end = capacity;
    }
    size_t open = min_size(most_bytes, min_size(room, to_end));
    if (open == 0 || open < least_bytes)
        return false;
    *offset = (size_t)(ring->tail % capacity);
    *open_bytes = ring->open_bytes = open;
    return true;
}

void ring_close(struct ring *ring, size_t from, size_t upto, int64_t born_ns)
{
    uint64_t start = ring->tail + from;
    uint64_t end = ring->tail + upto;
    ring->open_bytes = 0;
    if (from >= upto)
        return;
    ring->tail = end;
    ring->held_bytes += upto - from;
    /* Short of places, the newest piece takes in what follows it, under its own, older date: those
     * bytes expire early, none expires late. */
    size_t capacity = ring->capacity_bytes; /* see ring_move() */
    bool follows =
        ring->count != 0 && capacity != 0 && newest(ring)->end == start && start % capacity != 0;
    if (follows && ring->count >= RING_PIECES / 2) {
        newest(ring)->end = end;
        return;
    }
    ring->count++;
    *newest(ring) = (struct piece){.start = start, .end = end, .born_ns = born_ns};
}

static void forget_oldest(struct ring *ring)
{
    ring->oldest = (ring->oldest + 1) % RING_PIECES;
    if (ring->count != 0)
        ring->count--;
}

int64_t ring_move(struct ring *ring, uint8_t *memory, uint8_t *buf, size_t len_bytes)
{
    /* Wiped at any moment, if a signal handler forks: then it is empty, and nothing is divided by zero. */
    size_t capacity = ring->capacity_bytes;
    int64_t born_ns = ring->count != 0 ? oldest(ring)->born_ns : 0;
    while (len_bytes > 0 && ring->count != 0 && capacity != 0) {
        struct piece *piece = oldest(ring);
        uint64_t start = piece->start;
        size_t step = min_size(len_bytes, piece_bytes(start, piece->end));
        move_bytes(buf, memory + start % capacity, step);
        piece->start = start + step;
        ring->held_bytes -= step;
        buf += step;
        len_bytes -= step;
        if (piece->start == piece->end)
            forget_oldest(ring);
    }
    return born_ns;
}

size_t ring_oldest_bytes(const struct ring *ring)
{
    const struct piece *piece = &ring->pieces[ring->oldest % RING_PIECES];
    uint64_t start = piece->start;
    return ring->count == 0 ? 0 : piece_bytes(start, piece->end);
}

int64_t ring_oldest_born_ns(const struct ring *ring)
{
    return ring->pieces[ring->oldest % RING_PIECES].born_ns;
}

size_t ring_drop_oldest(struct ring *ring, uint8_t *memory)
{
    size_t capacity = ring->capacity_bytes;
    size_t lost = ring_oldest_bytes(ring);
    if (lost == 0 || capacity == 0)
        return 0;
    wipe_bytes(memory + oldest(ring)->start % capacity, lost);
    ring->held_bytes -= lost;
    forget_oldest(ring);
    return lost;
}
