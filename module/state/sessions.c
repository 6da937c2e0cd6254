/* sessions.c - a hash table of live session handles that readers need no lock for. */
#include "state/sessions.h"

#include "base/wiped.h"

enum { FIRST_PLACES = 512 };

/*
 * Open addressing with linear probing; at most half of the places, a power of two, are taken. An
 * outgrown index stays mapped, since somebody may be reading it. Changes happen under state->lock.
 */
struct session_index {
    size_t places;
    struct session_index *outgrown;
    _Atomic(struct session *) at[];
};

/* Where entries come from: as many as the index has room for. */
struct session_segment {
    size_t count;
    struct session_segment *earlier;
    struct session entries[];
};

static size_t home_of(CK_SESSION_HANDLE handle, size_t mask)
{
    return (size_t)(((uint64_t)handle * 0x9E3779B97F4A7C15ULL) >> 32) & mask;
}

struct session *session_find(CK_SESSION_HANDLE handle)
{
    struct session_index *index = atomic_load_explicit(&state->sessions, memory_order_acquire);
    size_t places = index != NULL ? index->places : 0;
    if (places == 0 || handle == CK_INVALID_HANDLE)
        return NULL;
    size_t mask = places - 1;
    size_t place = home_of(handle, mask);
    for (size_t steps = 0; steps <= mask; steps++) {
        struct session *session = atomic_load_explicit(&index->at[place], memory_order_acquire);
        if (session == NULL)
            return NULL;
        if (atomic_load_explicit(&session->handle, memory_order_acquire) == handle)
            return session;
        place = (place + 1) & mask;
    }
    return NULL;
}

struct slot *session_slot(CK_SESSION_HANDLE handle)
{
    struct session *session = session_find(handle);
    struct slot *slot = session != NULL ? session->slot : NULL;
    return session != NULL && atomic_load(&session->handle) == handle ? slot : NULL;
}

static void index_locked(struct session_index *index, struct session *session)
{
    size_t places = index != NULL ? index->places : 0;
    if (places == 0)
        return; /* wiped meanwhile, by a fork in a signal handler */
    size_t mask = places - 1;
    size_t place = home_of(atomic_load(&session->handle), mask);
    while (atomic_load_explicit(&index->at[place], memory_order_relaxed) != NULL)
        place = (place + 1) & mask;
    atomic_store_explicit(&index->at[place], session, memory_order_release);
}

static size_t segment_bytes(size_t count)
{
    return sizeof(struct session_segment) + count * sizeof(struct session);
}

static size_t index_bytes(size_t places)
{
    return sizeof(struct session_index) + places * sizeof(struct session *);
}

static bool add_segment_locked(size_t count)
{
    void *memory;
    if (wiped_map(&memory, segment_bytes(count)) != 0)
        return false;
    struct session_segment *segment = memory;
    segment->count = count;
    segment->earlier = state->session_segments;
    state->session_segments = segment;
    for (size_t i = 0; i < count; i++) {
        segment->entries[i].next_free = state->free_session;
        state->free_session = &segment->entries[i];
    }
    return true;
}

static bool grow_index_locked(size_t places)
{
    void *memory;
    struct session_index *old = atomic_load(&state->sessions);
    if (wiped_map(&memory, index_bytes(places)) != 0)
        return false;
    struct session_index *index = memory;
    index->places = places;
    index->outgrown = old;
    for (size_t i = 0; old != NULL && i < old->places; i++) {
        struct session *session = atomic_load(&old->at[i]);
        if (session != NULL)
            index_locked(index, session);
    }
    atomic_store_explicit(&state->sessions, index, memory_order_release);
    return true;
}

/* An entry to use, and room for it in the index. */
static struct session *new_entry_locked(void)
{
    if (state->free_session == NULL) {
        struct session_index *old = atomic_load(&state->sessions);
        size_t outgrown = old != NULL ? old->places : 0;
        size_t places = outgrown != 0 ? outgrown * 2 : FIRST_PLACES;
        size_t entries = outgrown != 0 ? outgrown / 2 : FIRST_PLACES / 2;
        if (!grow_index_locked(places) || !add_segment_locked(entries))
            return NULL;
    }
    struct session *session = state->free_session;
    if (session != NULL)
        state->free_session = session->next_free;
    return session;
}

static void unindex_locked(struct session_index *index, struct session *session)
{
    size_t places = index != NULL ? index->places : 0;
    size_t mask = places - 1;
    size_t hole = home_of(atomic_load(&session->handle), mask);
    struct session *found = NULL;
    for (size_t steps = 0; steps < places; steps++, hole = (hole + 1) & mask) {
        found = atomic_load_explicit(&index->at[hole], memory_order_relaxed);
        if (found == session || found == NULL)
            break;
    }
    if (found != session)
        return; /* wiped meanwhile, by a fork in a signal handler */
    /* Close the gap, so that what was put further on because of it is still found. */
    for (size_t next = (hole + 1) & mask;; next = (next + 1) & mask) {
        struct session *moved = atomic_load_explicit(&index->at[next], memory_order_relaxed);
        if (moved == NULL)
            break;
        size_t home = home_of(atomic_load(&moved->handle), mask);
        if (((next - home) & mask) >= ((next - hole) & mask)) {
            atomic_store_explicit(&index->at[hole], moved, memory_order_release);
            hole = next;
        }
    }
    atomic_store_explicit(&index->at[hole], NULL, memory_order_release);
}

static void free_entry_locked(struct session *session)
{
    struct slot *slot = session->slot; /* NULL once wiped */
    session_operates(session, false);
    atomic_store_explicit(&session->handle, CK_INVALID_HANDLE, memory_order_release);
    if (slot != NULL && slot->sessions != 0)
        slot->sessions--;
    session->next_free = state->free_session;
    state->free_session = session;
}

static void forget_locked(struct session *session)
{
    unindex_locked(atomic_load(&state->sessions), session);
    free_entry_locked(session);
}

unsigned sessions_closings(void)
{
    return atomic_load(&state->closings_ended);
}

void session_opened(CK_SESSION_HANDLE handle, CK_SLOT_ID slot_id, unsigned flags, unsigned closings)
{
    if (handle == CK_INVALID_HANDLE || !state_is_wiped_on_fork())
        return;
    lock_acquire(&state->lock);
    if (atomic_load(&state->closings_begun) != closings) {
        lock_release(&state->lock);
        return;
    }
    struct session *stale = session_find(handle);
    if (stale != NULL)
        forget_locked(stale);
    struct slot *slot = slot_of_locked(slot_id);
    struct session *session = slot != NULL ? new_entry_locked() : NULL;
    if (session != NULL) {
        session->slot = slot;
        session->flags = flags;
        atomic_store(&session->hiding, 0);
        atomic_store(&session->generation, atomic_load(&slot->generation));
        atomic_store_explicit(&session->handle, handle, memory_order_release);
        index_locked(atomic_load(&state->sessions), session);
        slot->sessions++;
    }
    lock_release(&state->lock);
}

struct slot *session_closed(CK_SESSION_HANDLE handle, unsigned *flags, bool *last)
{
    lock_acquire(&state->lock);
    struct session *session = session_find(handle);
    struct slot *slot = NULL;
    if (session != NULL) {
        slot = session->slot;
        *flags = session->flags;
        forget_locked(session);
        *last = slot != NULL && slot->sessions == 0;
    }
    lock_release(&state->lock);
    return slot;
}

/* The one that was found last, as long as it is there. */
static CK_SESSION_HANDLE session_on_locked(struct slot *slot)
{
    struct session *session = session_find(slot->one_of_them);
    if (session != NULL && session->slot == slot)
        return slot->one_of_them;
    for (struct session_segment *s = state->session_segments; s != NULL; s = s->earlier)
        for (size_t i = 0; i < s->count; i++)
            if (atomic_load(&s->entries[i].handle) != CK_INVALID_HANDLE &&
                s->entries[i].slot == slot)
                return slot->one_of_them = atomic_load(&s->entries[i].handle);
    return CK_INVALID_HANDLE;
}

CK_SESSION_HANDLE session_on(struct slot *slot)
{
    lock_acquire(&state->lock);
    CK_SESSION_HANDLE session = slot->sessions != 0 ? session_on_locked(slot) : CK_INVALID_HANDLE;
    lock_release(&state->lock);
    return session;
}

static void forget_all_locked(const struct slot *slot)
{
    for (struct session_segment *s = state->session_segments; s != NULL; s = s->earlier)
        for (size_t i = 0; i < s->count; i++)
            if (atomic_load(&s->entries[i].handle) != CK_INVALID_HANDLE &&
                (slot == NULL || s->entries[i].slot == slot))
                forget_locked(&s->entries[i]);
}

void sessions_close_begin(struct slot *slot)
{
    lock_acquire(&state->lock);
    atomic_fetch_add(&state->closings_begun, 1);
    if (slot == NULL || slot->sessions != 0)
        forget_all_locked(slot);
    lock_release(&state->lock);
}

void sessions_close_end(void)
{
    atomic_fetch_add(&state->closings_ended, 1);
}

void sessions_forget(void)
{
    sessions_close_begin(NULL);
    sessions_close_end();
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

void sessions_free(void)
{
    for (struct session_segment *s = state->session_segments, *earlier; s != NULL; s = earlier) {
        earlier = s->earlier;
        wiped_unmap(s, segment_bytes(s->count));
    }
    for (struct session_index *i = atomic_load(&state->sessions), *outgrown; i != NULL;
         i = outgrown) {
        outgrown = i->outgrown;
        wiped_unmap(i, index_bytes(i->places));
    }
}

void session_operates(struct session *session, bool operating)
{
    if (atomic_load_explicit(&session->operating, memory_order_relaxed) == operating ||
        atomic_exchange(&session->operating, operating) == operating)
        return;
    struct slot *slot = session->slot;
    if (slot == NULL)
        return; /* wiped meanwhile, by a fork in a signal handler */
    if (operating) {
        atomic_fetch_add(&slot->operations, 1);
        return;
    }
    unsigned open = atomic_load(&slot->operations);
    while (open != 0 && !atomic_compare_exchange_weak(&slot->operations, &open, open - 1))
        continue;
}
