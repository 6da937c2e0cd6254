/* sessions.c - a hash table of live session handles that is read without a lock. */
#include "state/sessions.h"

#include <pthread.h>

#include "base/lock.h"
#include "state/init_state.h"
#include "state/memory.h"

/* A session is in the first free one of the WINDOW places from its handle's home on. So a search ends there, and a place
 * is free again as soon as its session is closed. */
enum { PLACES = 1 << 16, WINDOW = 32, NEIGHBOURS = 16, WORDS = PLACES / 64 + 1 };

struct sessions {
    pthread_mutex_t lock; /* guards changes */
    atomic_uint closings;
    uint64_t taken[WORDS]; /* a bit for each place */
    struct session places[PLACES + WINDOW];
};

static struct sessions *state;
IN_WIPED_MEMORY(state, 1)

/* Handles that differ in the last bits are neighbours, so that few sessions touch few pages. */
static inline struct session *home_of(CK_SESSION_HANDLE handle)
{
    uint64_t group = (uint64_t)(handle / NEIGHBOURS) * 0x9E3779B97F4A7C15ULL >> 52;
    _Static_assert(PLACES / NEIGHBOURS == 1 << (64 - 52), "as many groups");
    return &state->places[group * NEIGHBOURS + handle % NEIGHBOURS];
}

__attribute__((always_inline)) static inline struct session *find(CK_SESSION_HANDLE handle)
{
    struct session *session = home_of(handle);
    for (const struct session *end = session + WINDOW; session < end; session++)
        if (atomic_load_explicit(&session->handle, memory_order_acquire) == handle)
            return handle != CK_INVALID_HANDLE ? session : NULL;
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
    struct slot *slot = atomic_load_explicit(&session->slot, memory_order_acquire);
    unsigned generation = atomic_load_explicit(&session->generation, memory_order_acquire);
    if (generation != atomic_load_explicit(&slot->generation, memory_order_relaxed))
        return NULL;
    *number = (unsigned)(session - state->places);
    /* Closed meanwhile, and the entry given to a session of another slot? */
    return atomic_load_explicit(&session->handle, memory_order_acquire) == handle ? slot : NULL;
}

struct slot *session_slot(CK_SESSION_HANDLE handle)
{
    struct session *session = find(handle);
    struct slot *slot = session != NULL ? atomic_load(&session->slot) : NULL;
    return slot != NULL && atomic_load(&session->handle) == handle ? slot : NULL;
}

static void flip_taken_locked(const struct session *session)
{
    size_t place = (size_t)(session - state->places);
    state->taken[place / 64] ^= UINT64_C(1) << place % 64;
}

static struct slot *remove_locked(struct session *session)
{
    struct slot *slot = atomic_load(&session->slot);
    session_set_operating(session, false);
    atomic_store_explicit(&session->handle, CK_INVALID_HANDLE, memory_order_release);
    atomic_fetch_sub(&slot->sessions, 1);
    flip_taken_locked(session);
    return slot;
}

unsigned sessions_closings(void)
{
    return atomic_load(&state->closings);
}

static void add_locked(CK_SESSION_HANDLE handle, struct slot *slot, unsigned digest_info)
{
    struct session *session = home_of(handle);
    const struct session *end = session + WINDOW;
    while (session < end && atomic_load(&session->handle) != CK_INVALID_HANDLE)
        session++;
    if (session == end)
        return;
    atomic_store(&session->slot, slot);
    atomic_store(&session->digest_info, digest_info);
    atomic_store(&session->generation, atomic_load(&slot->generation));
    atomic_store_explicit(&session->handle, handle, memory_order_release);
    atomic_fetch_add(&slot->sessions, 1);
    flip_taken_locked(session);
}

void session_opened(CK_SESSION_HANDLE handle, struct slot *slot, unsigned digest_info,
                    unsigned closings)
{
    HOLD(&state->lock);
    struct session *stale = find(handle);
    if (stale != NULL)
        remove_locked(stale);
    if (slot != NULL && handle != CK_INVALID_HANDLE && atomic_load(&state->closings) == closings)
        add_locked(handle, slot, digest_info);
}

struct slot *session_closed(CK_SESSION_HANDLE handle, bool *last)
{
    HOLD(&state->lock);
    struct session *session = find(handle);
    struct slot *slot = session != NULL ? remove_locked(session) : NULL;
    *last = slot != NULL && atomic_load(&slot->sessions) == 0;
    return slot;
}

void sessions_forget(const struct slot *slot)
{
    HOLD(&state->lock);
    atomic_fetch_add(&state->closings, 1);
    for (size_t word = 0; word < WORDS; word++) {
        for (uint64_t taken = state->taken[word]; taken != 0; taken &= taken - 1) {
            struct session *session = &state->places[word * 64 + (size_t)__builtin_ctzll(taken)];
            if (slot == NULL || atomic_load(&session->slot) == slot)
                remove_locked(session);
        }
    }
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
    atomic_fetch_add(&atomic_load(&session->slot)->operations, operating ? 1U : -1U);
}

/* Apart, so that calls that work need not make room for what this needs. */
__attribute__((noinline)) void session_note_code(CK_SESSION_HANDLE handle, CK_RV rv)
{
    slot_note_code(session_slot(handle), rv);
}

void session_invalidate(CK_SESSION_HANDLE handle, enum slot_event event)
{
    struct slot *slot = session_slot(handle);
    if (slot == NULL)
        slots_invalidate(event);
    else
        slot_invalidate(slot, event);
}

struct in_call_place *in_call_places;
IN_WIPED_MEMORY(in_call_places, IN_CALL_PLACES)

bool in_call_none(const struct slot *slot, unsigned *calls)
{
    bool none = !random_calls_any();
    *calls = 0;
    for (unsigned i = 0; i < IN_CALL_PLACES; i++) {
        const struct in_call_place *place = &in_call_places[i];
        CK_SESSION_HANDLE handle = atomic_load_explicit(&place->session, memory_order_relaxed);
        if (session_slot(handle) != slot)
            continue;
        unsigned here = atomic_load_explicit(&place->calls, memory_order_relaxed);
        none = none && (here & 1) == 0;
        *calls += here;
    }
    return none;
}
