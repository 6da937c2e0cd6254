/* sessions.c - a hash table of live session handles that readers need no lock for. */
#include "sessions.h"

#include <errno.h>
#include <string.h>

#include "wiped.h"

enum { FIRST_CAPACITY = 256 };

/*
 * index holds entry numbers (1 and up, 0 is an empty place), twice as many places as there are
 * entries, with linear probing. Entries stay where they are until freed: a reader that found one may
 * go on using it. Changes happen under state->lock.
 */
struct session_table {
    size_t                mapped_bytes;
    unsigned              capacity; /* a power of two */
    unsigned              used;     /* entries that were ever used */
    unsigned              first_free;
    unsigned              live;
    struct session_table *older; /* outgrown, but perhaps being read */
    struct session       *entries;
    _Atomic unsigned      index[];
};

static size_t home_of(CK_SESSION_HANDLE handle, size_t mask)
{
    return (size_t)(((uint64_t)handle * 0x9E3779B97F4A7C15ULL) >> 32) & mask;
}

static size_t index_mask(const struct session_table *table)
{
    return (size_t)table->capacity * 2 - 1;
}

struct session *session_find(CK_SESSION_HANDLE handle)
{
    struct session_table *table = atomic_load_explicit(&state->sessions, memory_order_acquire);
    if (table == NULL || table->capacity == 0 || handle == CK_INVALID_HANDLE)
        return NULL;
    size_t mask = index_mask(table);
    size_t place = home_of(handle, mask);
    for (size_t steps = 0; steps <= mask; steps++) {
        unsigned number = atomic_load_explicit(&table->index[place], memory_order_acquire);
        if (number == 0)
            return NULL;
        struct session *session = &table->entries[number - 1];
        if (atomic_load_explicit(&session->handle, memory_order_acquire) == handle)
            return session;
        place = (place + 1) & mask;
    }
    return NULL;
}

static struct session_table *new_table(unsigned capacity)
{
    size_t index_bytes = (size_t)capacity * 2 * sizeof(unsigned);
    size_t bytes = sizeof(struct session_table) + index_bytes + capacity * sizeof(struct session);
    void  *memory;
    if (wiped_map(&memory, bytes, /* lock_memory= */ false) != 0)
        return NULL;
    struct session_table *table = memory;
    table->mapped_bytes = bytes;
    table->capacity = capacity;
    table->entries = (struct session *)((char *)table->index + index_bytes);
    return table;
}

static void index_locked(struct session_table *table, CK_SESSION_HANDLE handle, unsigned number)
{
    size_t mask = index_mask(table);
    size_t place = home_of(handle, mask);
    while (atomic_load_explicit(&table->index[place], memory_order_relaxed) != 0)
        place = (place + 1) & mask;
    atomic_store_explicit(&table->index[place], number, memory_order_release);
}

/* A table with room for one more: the present one, or one of twice the size with all that it held. */
static struct session_table *roomy_table_locked(void)
{
    struct session_table *table = atomic_load(&state->sessions);
    if (table != NULL && (table->first_free != 0 || table->used < table->capacity))
        return table;
    struct session_table *larger = new_table(table != NULL ? table->capacity * 2 : FIRST_CAPACITY);
    if (larger == NULL)
        return NULL;
    if (table != NULL) {
        memcpy(larger->entries, table->entries, table->used * sizeof *table->entries);
        larger->used = table->used;
        larger->live = table->live;
        larger->older = table;
        for (unsigned i = 0; i < table->used; i++)
            index_locked(larger, atomic_load(&larger->entries[i].handle), i + 1);
    }
    atomic_store_explicit(&state->sessions, larger, memory_order_release);
    return larger;
}

static struct slot *forget_locked(CK_SESSION_HANDLE handle, unsigned *flags)
{
    struct session *session = session_find(handle);
    if (session == NULL)
        return NULL;
    struct session_table *table = atomic_load(&state->sessions);
    unsigned              number = (unsigned)(session - table->entries) + 1;
    size_t                mask = index_mask(table);
    size_t                hole = home_of(handle, mask);
    while (atomic_load_explicit(&table->index[hole], memory_order_relaxed) != number)
        hole = (hole + 1) & mask;

    struct slot *slot = session->slot;
    *flags = session->flags;
    atomic_store_explicit(&session->handle, CK_INVALID_HANDLE, memory_order_release);
    slot->sessions--;
    table->live--;

    /* Close the gap, so that what was put further on because of it is still found. */
    for (size_t next = (hole + 1) & mask;; next = (next + 1) & mask) {
        unsigned moved = atomic_load_explicit(&table->index[next], memory_order_relaxed);
        if (moved == 0)
            break;
        size_t home = home_of(atomic_load(&table->entries[moved - 1].handle), mask);
        if (((next - home) & mask) >= ((next - hole) & mask)) {
            atomic_store_explicit(&table->index[hole], moved, memory_order_release);
            hole = next;
        }
    }
    atomic_store_explicit(&table->index[hole], 0, memory_order_release);
    session->next_free = table->first_free;
    table->first_free = number;
    return slot;
}

void session_opened(CK_SESSION_HANDLE handle, CK_SLOT_ID slot_id, unsigned flags)
{
    unsigned old_flags;
    if (handle == CK_INVALID_HANDLE)
        return;
    lock_acquire(&state->lock);
    forget_locked(handle, &old_flags);
    struct slot          *slot = slot_of_locked(slot_id);
    struct session_table *table = slot != NULL ? roomy_table_locked() : NULL;
    if (table != NULL) {
        unsigned number = table->first_free;
        if (number != 0)
            table->first_free = table->entries[number - 1].next_free;
        else
            number = ++table->used;
        struct session *session = &table->entries[number - 1];
        session->slot = slot;
        session->flags = flags;
        atomic_store(&session->generation, atomic_load(&slot->generation));
        atomic_store(&session->operations, 0);
        atomic_store_explicit(&session->handle, handle, memory_order_release);
        index_locked(table, handle, number);
        slot->sessions++;
        table->live++;
    }
    lock_release(&state->lock);
}

struct slot *session_closed(CK_SESSION_HANDLE handle, unsigned *flags)
{
    lock_acquire(&state->lock);
    struct slot *slot = forget_locked(handle, flags);
    lock_release(&state->lock);
    return slot;
}

void sessions_closed(struct slot *slot)
{
    unsigned flags;
    lock_acquire(&state->lock);
    struct session_table *table = atomic_load(&state->sessions);
    for (unsigned i = 0; table != NULL && i < table->used && slot->sessions != 0; i++) {
        CK_SESSION_HANDLE handle = atomic_load(&table->entries[i].handle);
        if (handle != CK_INVALID_HANDLE && table->entries[i].slot == slot)
            forget_locked(handle, &flags);
    }
    lock_release(&state->lock);
}

void sessions_forget(void)
{
    lock_acquire(&state->lock);
    struct session_table *table = atomic_load(&state->sessions);
    for (unsigned i = 0; table != NULL && i < table->used; i++) {
        atomic_store(&table->entries[i].handle, CK_INVALID_HANDLE);
        table->entries[i].next_free = 0;
    }
    for (size_t i = 0; table != NULL && i <= index_mask(table); i++)
        atomic_store_explicit(&table->index[i], 0, memory_order_relaxed);
    if (table != NULL)
        table->used = table->live = table->first_free = 0;
    for (unsigned i = 0; i < state->slot_count; i++)
        state->slots[i].sessions = 0;
    lock_release(&state->lock);
}
