/* sessions.c - a hash table of live session handles that is read without a lock. */
#include "state/sessions.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/wipeonfork.h"
#include "state/memory.h"

enum { FIRST_PLACES = 512, FIRST_ENTRIES = 64 };

typedef _Atomic(struct session *) session_place;

/* Open addressing with linear probing; at most half of the places, a power of two, are used. What never changes
 * lies here, the places in memory that fork wipes. An outgrown index is kept, because a reader may be in it. */
struct session_index {
    size_t mask;
    session_place *places;
    struct session_index *outgrown;
};

/* Entries are reached through an index only, so a forked child does not see those of its parent. */
struct session_segment {
    struct session_segment *earlier;
    struct session entries[];
};

struct sessions {
    pthread_mutex_t lock;                  /* guards changes */
    _Atomic(struct session_index *) index; /* NULL: the first one */
    struct session *free_entry;
    size_t entries; /* free ones included */
    atomic_uint closings_begun, closings_ended;
    session_place first_places[FIRST_PLACES];
};

static struct sessions *state;
static struct session_index first_index = {.mask = FIRST_PLACES - 1};
static struct session_index *all_indexes;
static struct session_segment *all_segments;

void sessions_prepare(void)
{
    state = memory_part(sizeof *state);
    first_index.places = state->first_places;
}

static inline struct session_index *current_index(void)
{
    struct session_index *index = atomic_load_explicit(&state->index, memory_order_acquire);
    return index != NULL ? index : &first_index;
}

static inline size_t home_of(CK_SESSION_HANDLE handle, size_t mask)
{
    return (size_t)(((uint64_t)handle * 0x9E3779B97F4A7C15ULL) >> 32) & mask;
}

__attribute__((always_inline)) static inline struct session *find(CK_SESSION_HANDLE handle)
{
    const struct session_index *index = current_index();
    size_t mask = index->mask;
    size_t at = home_of(handle, mask);
    for (size_t steps = 0; steps <= mask; steps++, at = (at + 1) & mask) {
        struct session *session = atomic_load_explicit(&index->places[at], memory_order_acquire);
        if (session == NULL)
            break;
        if (atomic_load_explicit(&session->handle, memory_order_acquire) == handle)
            return handle != CK_INVALID_HANDLE ? session : NULL;
    }
    return NULL;
}

struct session *session_find(CK_SESSION_HANDLE handle)
{
    return find(handle);
}

struct slot *session_pooled_slot(CK_SESSION_HANDLE handle, unsigned *number)
{
    const struct session *session = find(handle);
    if (session == NULL)
        return NULL;
    struct slot *slot = atomic_load_explicit(&session->slot, memory_order_relaxed);
    unsigned generation = atomic_load_explicit(&session->generation, memory_order_relaxed);
    if (generation != atomic_load_explicit(&slot->generation, memory_order_relaxed))
        return NULL;
    *number = session->number;
    /* Closed meanwhile, and the entry given to a session of another slot? */
    return atomic_load_explicit(&session->handle, memory_order_acquire) == handle ? slot : NULL;
}

struct slot *session_slot(CK_SESSION_HANDLE handle)
{
    struct session *session = session_find(handle);
    struct slot *slot = session != NULL ? atomic_load(&session->slot) : NULL;
    return slot != NULL && atomic_load(&session->handle) == handle ? slot : NULL;
}

static void index_put(struct session_index *index, struct session *session)
{
    size_t at = home_of(atomic_load(&session->handle), index->mask);
    while (atomic_load_explicit(&index->places[at], memory_order_relaxed) != NULL)
        at = (at + 1) & index->mask;
    atomic_store_explicit(&index->places[at], session, memory_order_release);
}

static void index_remove(struct session_index *index, const struct session *session)
{
    size_t mask = index->mask;
    size_t hole = home_of(atomic_load(&session->handle), mask);
    while (atomic_load_explicit(&index->places[hole], memory_order_relaxed) != session)
        hole = (hole + 1) & mask;
    /* Close the gap, so that what was put further on because of it is still found. */
    for (size_t next = (hole + 1) & mask;; next = (next + 1) & mask) {
        struct session *moved = atomic_load_explicit(&index->places[next], memory_order_relaxed);
        if (moved == NULL)
            break;
        size_t home = home_of(atomic_load(&moved->handle), mask);
        if (((next - home) & mask) >= ((next - hole) & mask)) {
            atomic_store_explicit(&index->places[hole], moved, memory_order_release);
            hole = next;
        }
    }
    atomic_store_explicit(&index->places[hole], NULL, memory_order_release);
}

/* An index of twice the size. Expects the lock held. */
static bool grow_index_locked(void)
{
    struct session_index *old = current_index();
    struct session_index *index = malloc(sizeof *index);
    size_t count = (old->mask + 1) * 2;
    void *places;
    if (index == NULL || wipeonfork_map(&places, count * sizeof(session_place)) != 0) {
        free(index);
        return false;
    }
    *index = (struct session_index){.mask = count - 1, .places = places, .outgrown = all_indexes};
    all_indexes = index;
    for (size_t i = 0; i <= old->mask; i++) {
        struct session *session = atomic_load(&old->places[i]);
        if (session != NULL)
            index_put(index, session);
    }
    atomic_store_explicit(&state->index, index, memory_order_release);
    return true;
}

static bool add_entries_locked(size_t count)
{
    struct session_segment *segment = calloc(1, sizeof *segment + count * sizeof(struct session));
    if (segment == NULL)
        return false;
    segment->earlier = all_segments;
    all_segments = segment;
    for (size_t i = 0; i < count; i++) {
        segment->entries[i].number = (unsigned)(state->entries + i);
        segment->entries[i].next_free = state->free_entry;
        state->free_entry = &segment->entries[i];
    }
    state->entries += count;
    return true;
}

/* An entry to use, and room for it in the index; NULL if memory is short. */
static struct session *new_entry_locked(void)
{
    if (state->free_entry == NULL) {
        size_t more = state->entries == 0 ? FIRST_ENTRIES : state->entries;
        bool fits = (state->entries + more) * 2 <= current_index()->mask + 1;
        if ((!fits && !grow_index_locked()) || !add_entries_locked(more))
            return NULL;
    }
    struct session *session = state->free_entry;
    state->free_entry = session->next_free;
    return session;
}

static void remove_locked(struct session *session)
{
    struct slot *slot = atomic_load(&session->slot);
    index_remove(current_index(), session);
    if (atomic_exchange(&session->operating, false))
        atomic_fetch_sub(&slot->operations, 1);
    atomic_store_explicit(&session->handle, CK_INVALID_HANDLE, memory_order_release);
    atomic_fetch_sub(&slot->sessions, 1);
    session->next_free = state->free_entry;
    state->free_entry = session;
}

unsigned sessions_closings(void)
{
    return atomic_load(&state->closings_ended);
}

static void open_locked(CK_SESSION_HANDLE handle, struct slot *slot, bool never_pooled,
                        unsigned digest_info)
{
    struct session *stale = session_find(handle);
    if (stale != NULL)
        remove_locked(stale);
    struct session *session = new_entry_locked();
    if (session == NULL)
        return;
    atomic_store(&session->slot, slot);
    atomic_store(&session->never_pooled, never_pooled);
    atomic_store(&session->digest_info, digest_info);
    atomic_store(&session->generation,
                 never_pooled ? SESSION_NEVER_POOLED : atomic_load(&slot->generation));
    atomic_store_explicit(&session->handle, handle, memory_order_release);
    index_put(current_index(), session);
    atomic_fetch_add(&slot->sessions, 1);
}

void session_opened(CK_SESSION_HANDLE handle, CK_SLOT_ID slot_id, bool never_pooled,
                    unsigned closings)
{
    struct slot *slot = handle != CK_INVALID_HANDLE ? slot_add(slot_id) : NULL;
    if (slot == NULL)
        return;
    pthread_mutex_lock(&state->lock);
    if (atomic_load(&state->closings_begun) == closings)
        open_locked(handle, slot, never_pooled, /* digest_info= */ 0);
    pthread_mutex_unlock(&state->lock);
}

struct slot *session_closed(CK_SESSION_HANDLE handle, bool *never_pooled, bool *last)
{
    struct slot *slot = NULL;
    *last = false;
    pthread_mutex_lock(&state->lock);
    struct session *session = session_find(handle);
    if (session != NULL) {
        slot = atomic_load(&session->slot);
        *never_pooled = atomic_load(&session->never_pooled);
        remove_locked(session);
        *last = atomic_load(&slot->sessions) == 0;
    }
    pthread_mutex_unlock(&state->lock);
    return slot;
}

void session_reopened(CK_SESSION_HANDLE handle, struct slot *slot, bool never_pooled,
                      unsigned closings)
{
    pthread_mutex_lock(&state->lock);
    if (atomic_load(&state->closings_begun) == closings)
        open_locked(handle, slot, never_pooled, /* digest_info= */ ~0u);
    pthread_mutex_unlock(&state->lock);
}

void sessions_close_begin(struct slot *slot)
{
    pthread_mutex_lock(&state->lock);
    atomic_fetch_add(&state->closings_begun, 1);
    /* Removing one may move another to a place that was passed already, so each place is looked at until it
     * holds nothing to remove. */
    struct session_index *index = current_index();
    for (size_t i = 0; i <= index->mask;) {
        struct session *session = atomic_load(&index->places[i]);
        if (session != NULL && (slot == NULL || atomic_load(&session->slot) == slot))
            remove_locked(session);
        else
            i++;
    }
    pthread_mutex_unlock(&state->lock);
}

void sessions_close_end(void)
{
    atomic_fetch_add(&state->closings_ended, 1);
}

bool session_is_gone(CK_RV rv)
{
    switch (rv) {
    case CKR_OK:
    case CKR_SESSION_HANDLE_INVALID:
    case CKR_SESSION_CLOSED:
    case CKR_DEVICE_REMOVED:
    case CKR_TOKEN_NOT_PRESENT:
    case CKR_CRYPTOKI_NOT_INITIALIZED:
        return true;
    default:
        return false;
    }
}

void session_set_operating(struct session *session, bool operating)
{
    if (session == NULL ||
        atomic_load_explicit(&session->operating, memory_order_relaxed) == operating ||
        atomic_exchange(&session->operating, operating) == operating)
        return;
    struct slot *slot = atomic_load(&session->slot);
    if (operating)
        atomic_fetch_add(&slot->operations, 1);
    else
        atomic_fetch_sub(&slot->operations, 1);
}

void session_note_code(CK_SESSION_HANDLE handle, CK_RV rv)
{
    struct slot *slot = session_slot(handle);
    if (rv == CKR_CRYPTOKI_NOT_INITIALIZED)
        slots_invalidate(SLOT_FINALIZED);
    else if (slot != NULL && (rv == CKR_SESSION_CLOSED || rv == CKR_SESSION_HANDLE_INVALID))
        /* The application has not closed it, so its token was removed or reset: many tokens say just that. */
        slot_invalidate(slot, SLOT_TOKEN_GONE);
    else if (slot != NULL)
        slot_note_code(slot, rv);
}

void sessions_free(void)
{
    for (struct session_segment *s = all_segments, *earlier; s != NULL; s = earlier) {
        earlier = s->earlier;
        free(s);
    }
    for (struct session_index *i = all_indexes, *outgrown; i != NULL; i = outgrown) {
        outgrown = i->outgrown;
        wipeonfork_unmap(i->places, (i->mask + 1) * sizeof(session_place));
        free(i);
    }
    all_segments = NULL;
    all_indexes = NULL;
}
