/* ring.c - bytes that wait to be served, oldest first. */
#include "pool/ring.h"

#include "base/copy.h"

static struct segment *oldest(struct ring *ring)
{
    return &ring->segments[ring->oldest % RING_SEGMENTS];
}

static struct segment *newest(struct ring *ring)
{
    return &ring->segments[(ring->oldest + ring->count - 1) % RING_SEGMENTS];
}

uint8_t *ring_open(struct ring *ring, const struct ring_memory *memory, size_t least_bytes,
                   size_t most_bytes, size_t *open_bytes)
{
    size_t capacity = memory->capacity_bytes;
    if (ring->open_bytes != 0 || ring->count == RING_SEGMENTS)
        return NULL;
    uint64_t head = ring->count == 0 ? ring->tail : oldest(ring)->start;
    if (atomic_load(&ring->takes) != 0)
        head = ring->takes_start;
    else if (ring->count == 0)
        head = ring->tail = 0;
    size_t room = capacity - (size_t)(ring->tail - head);
    size_t to_end = capacity - (size_t)(ring->tail % capacity);
    /* A few bytes before the end of the memory are not worth a call to the token, so they are skipped. */
    if (to_end < most_bytes && room > to_end && room - to_end >= most_bytes) {
        ring->tail += to_end;
        room -= to_end;
        to_end = capacity;
    }
    size_t open = min_size(most_bytes, min_size(room, to_end));
    if (open == 0 || open < least_bytes)
        return NULL;
    *open_bytes = ring->open_bytes = open;
    return memory->bytes + ring->tail % capacity;
}

void ring_close(struct ring *ring, const struct ring_memory *memory, size_t len_bytes,
                int64_t fetched_ns)
{
    uint64_t start = ring->tail;
    ring->open_bytes = 0;
    if (len_bytes == 0)
        return;
    ring->tail += len_bytes;
    ring->held_bytes += len_bytes;
    /* Short of segments, the newest one takes in what follows it under its own, older time. Those bytes
     * expire early; none expires late. */
    bool follows =
        ring->count != 0 && newest(ring)->end == start && start % memory->capacity_bytes != 0;
    if (follows && ring->count >= RING_SEGMENTS / 2) {
        newest(ring)->end = ring->tail;
        return;
    }
    ring->count++;
    *newest(ring) = (struct segment){.start = start, .end = ring->tail, .fetched_ns = fetched_ns};
}

static void remove_oldest(struct ring *ring)
{
    ring->oldest = (ring->oldest + 1) % RING_SEGMENTS;
    ring->count--;
}

uint8_t *ring_take(struct ring *ring, const struct ring_memory *memory, size_t len_bytes)
{
    struct segment *segment = oldest(ring);
    uint8_t *bytes = memory->bytes + segment->start % memory->capacity_bytes;
    if (atomic_fetch_add(&ring->takes, 1) == 0)
        ring->takes_start = segment->start;
    segment->start += len_bytes;
    ring->held_bytes -= len_bytes;
    if (segment->start == segment->end)
        remove_oldest(ring);
    return bytes;
}

void ring_taken(struct ring *ring)
{
    atomic_fetch_sub(&ring->takes, 1);
}

void ring_move(struct ring *ring, const struct ring_memory *memory, uint8_t *buf, size_t len_bytes)
{
    while (len_bytes > 0 && ring->count != 0) {
        size_t step = min_size(len_bytes, ring_oldest_bytes(ring));
        copy_and_wipe(buf, ring_take(ring, memory, step), step);
        ring_taken(ring);
        buf += step;
        len_bytes -= step;
    }
}

size_t ring_oldest_bytes(const struct ring *ring)
{
    const struct segment *segment = &ring->segments[ring->oldest % RING_SEGMENTS];
    return ring->count == 0 ? 0 : (size_t)(segment->end - segment->start);
}

int64_t ring_oldest_ns(const struct ring *ring)
{
    return ring->count == 0 ? INT64_MAX : ring->segments[ring->oldest % RING_SEGMENTS].fetched_ns;
}

size_t ring_drop_oldest(struct ring *ring, const struct ring_memory *memory)
{
    size_t lost = ring_oldest_bytes(ring);
    if (lost == 0)
        return 0;
    wipe_bytes(memory->bytes + oldest(ring)->start % memory->capacity_bytes, lost);
    ring->held_bytes -= lost;
    remove_oldest(ring);
    return lost;
}
