/* ring.c - bytes that wait to be served, oldest first. */
#include "pool/ring.h"

#include "base/copy.h"

static struct segment *segment_at(struct ring_state *state, unsigned number)
{
    return &state->segments[(state->oldest + number) % RING_SEGMENTS];
}

const struct segment *ring_oldest(const struct ring *ring)
{
    return ring->state->count != 0 ? segment_at(ring->state, 0) : NULL;
}

uint8_t *ring_open(const struct ring *ring, size_t least_bytes, size_t most_bytes,
                   size_t *open_bytes)
{
    struct ring_state *state = ring->state;
    if (state->open_bytes != 0 || state->count == RING_SEGMENTS)
        return NULL;
    uint64_t head = state->count == 0 ? state->tail : ring_oldest(ring)->start;
    if (atomic_load(&state->takes) != 0)
        head = state->takes_start;
    else if (state->count == 0)
        head = state->tail = 0;
    size_t room = ring->capacity_bytes - (size_t)(state->tail - head);
    size_t to_end = ring->capacity_bytes - (size_t)(state->tail % ring->capacity_bytes);
    /* A few bytes before the end of the memory are not worth a call to the token, so they are skipped. */
    if (to_end < most_bytes && room > to_end && room - to_end >= most_bytes) {
        state->tail += to_end;
        room -= to_end;
        to_end = ring->capacity_bytes;
    }
    size_t open = min_size(most_bytes, min_size(room, to_end));
    if (open == 0 || open < least_bytes)
        return NULL;
    *open_bytes = state->open_bytes = open;
    return ring->bytes + state->tail % ring->capacity_bytes;
}

void ring_close(const struct ring *ring, size_t len_bytes, int64_t fetched_ns)
{
    struct ring_state *state = ring->state;
    uint64_t start = state->tail;
    state->open_bytes = 0;
    if (len_bytes == 0)
        return;
    state->tail += len_bytes;
    state->held_bytes += len_bytes;
    /* Short of segments, the newest one takes in what follows it under its own, older time. Those bytes
     * expire early; none expires late. */
    struct segment *newest = segment_at(state, state->count - 1);
    if (state->count >= RING_SEGMENTS / 2 && newest->end == start &&
        start % ring->capacity_bytes != 0)
        newest->end = state->tail;
    else
        *segment_at(state, state->count++) =
            (struct segment){.start = start, .end = state->tail, .fetched_ns = fetched_ns};
}

static void remove_oldest(struct ring_state *state)
{
    state->oldest = (state->oldest + 1) % RING_SEGMENTS;
    state->count--;
}

uint8_t *ring_take(const struct ring *ring, size_t len_bytes)
{
    struct ring_state *state = ring->state;
    struct segment *oldest = segment_at(state, 0);
    uint8_t *bytes = ring->bytes + oldest->start % ring->capacity_bytes;
    if (atomic_fetch_add(&state->takes, 1) == 0)
        state->takes_start = oldest->start;
    oldest->start += len_bytes;
    state->held_bytes -= len_bytes;
    if (oldest->start == oldest->end)
        remove_oldest(state);
    return bytes;
}

void ring_taken(const struct ring *ring)
{
    atomic_fetch_sub(&ring->state->takes, 1);
}

void ring_move(const struct ring *ring, uint8_t *buf, size_t len_bytes)
{
    const struct segment *oldest;
    while (len_bytes > 0 && (oldest = ring_oldest(ring)) != NULL) {
        size_t step = min_size(len_bytes, segment_bytes(oldest));
        copy_and_wipe(buf, ring_take(ring, step), step);
        ring_taken(ring);
        buf += step;
        len_bytes -= step;
    }
}

size_t ring_drop_oldest(const struct ring *ring)
{
    const struct segment *oldest = ring_oldest(ring);
    if (oldest == NULL)
        return 0;
    size_t lost = segment_bytes(oldest);
    wipe_bytes(ring->bytes + oldest->start % ring->capacity_bytes, lost);
    ring->state->held_bytes -= lost;
    remove_oldest(ring->state);
    return lost;
}

size_t ring_shrink(const struct ring *ring, size_t keep_bytes)
{
    size_t lost = 0;
    while (ring->state->held_bytes > keep_bytes)
        lost += ring_drop_oldest(ring);
    return lost;
}
