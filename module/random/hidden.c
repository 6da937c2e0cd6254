/* hidden.c - the prefetch's own sessions: opened for demand, closed before anybody could notice. */
#include "random/hidden.h"

#include "base/clock.h"
#include "random/forks.h"
#include "calls/forward.h"
#include "random/lifeboat.h"
#include "base/log.h"
#include "random/moves.h"
#include "random/prefetch.h"

static const int64_t RETRY_NS = 10 * NS_PER_S;

/* Must the token have so many more sessions than the application and we use. */
enum { SESSIONS_TO_SPARE = 2 };

/* Our open sessions once more, in ordinary memory: a forked child that inherits the target's state inherits
 * them, and has to close them before they are in somebody's way. Guarded by state->lock. */
static CK_SESSION_HANDLE inheritable[SLOTS_MAX];
static atomic_uint inheritable_count;

/* Expects state->lock held. */
static void publish_locked(void)
{
    uint64_t bits = 0;
    unsigned count = 0;
    for (unsigned i = 0; i < state->slot_count; i++) {
        CK_SESSION_HANDLE session = state->slots[i].hidden;
        if (session == CK_INVALID_HANDLE)
            continue;
        bits |= (uint64_t)1 << (session & 63);
        inheritable[count++] = session;
    }
    atomic_store(&inheritable_count, count);
    atomic_store(&state->hidden_bits, bits);
}

void hidden_forget(void)
{
    lock_acquire(&state->lock);
    for (unsigned i = 0; i < state->slot_count; i++)
        state->slots[i].hidden = CK_INVALID_HANDLE;
    publish_locked();
    lock_release(&state->lock);
}

void hidden_was_lost(CK_SESSION_HANDLE handle)
{
    if (!handle_may_be_hidden(handle))
        return;
    lock_acquire(&state->lock);
    for (unsigned i = 0; i < state->slot_count; i++)
        if (state->slots[i].hidden == handle)
            state->slots[i].hidden = CK_INVALID_HANDLE;
    publish_locked();
    lock_release(&state->lock);
}

void hidden_close_inherited(void)
{
    unsigned count = atomic_load(&inheritable_count);
    /* Only a child has them while it is not initialised. */
    unsigned life = atomic_load(&state->life);
    if (count == 0 || life == LIFE_UP || life == LIFE_STOPPING ||
        !atomic_compare_exchange_strong(&inheritable_count, &count, 0))
        return;
    for (unsigned i = 0; i < count; i++)
        target.C_CloseSession(inheritable[i]);
}

static void come_out(struct slot *slot)
{
    forks_leave_target();
    lock_acquire(&state->lock);
    slot->hidden_at_work = false;
    atomic_fetch_add(&state->slot_bell, 1);
    lock_release(&state->lock);
    wake_word(&state->slot_bell);
}

/* The thread goes into the target for the slot, if nobody minds. */
static bool go_in(struct slot *slot)
{
    lock_acquire(&state->lock);
    bool may = slot->sessions != 0 && slot->hidden_banned == 0 && !slot->so_logged_in &&
               atomic_load(&slot->suspect) != SUSPICION_SURE &&
               (slot->hidden != CK_INVALID_HANDLE || clock_ticks_ns() >= slot->hidden_retry_ns);
    slot->hidden_at_work = may;
    lock_release(&state->lock);
    if (!may)
        return false;
    bool inside = forks_enter_target();
    if (inside && !prefetch_must_stop())
        return true;
    if (!inside)
        atomic_store(&slot->hungry, 1); /* the fork will be over soon */
    come_out(slot);
    return false;
}

/* A token that counts its sessions must have enough left for the application. */
static CK_RV token_has_room(struct slot *slot)
{
    CK_TOKEN_INFO info;
    CK_RV rv = thread_C_GetTokenInfo(slot->id, &info);
    if (rv != CKR_OK)
        return rv;
    if (info.ulMaxSessionCount == CK_EFFECTIVELY_INFINITE ||
        info.ulMaxSessionCount == CK_UNAVAILABLE_INFORMATION ||
        info.ulSessionCount == CK_UNAVAILABLE_INFORMATION)
        return CKR_OK;
    return info.ulSessionCount + SESSIONS_TO_SPARE <= info.ulMaxSessionCount ? CKR_OK
                                                                             : CKR_SESSION_COUNT;
}

/* Read-only where that is possible: it changes least. There are tokens that open no such session. */
static CK_RV open_session(struct slot *slot, CK_SESSION_HANDLE *session, bool *is_rw)
{
    *is_rw = false;
    CK_RV rv = thread_C_OpenSession(slot->id, CKF_SERIAL_SESSION, session);
    if (rv == CKR_OK || rv == CKR_SESSION_COUNT || rv == CKR_SESSION_READ_WRITE_SO_EXISTS)
        return rv;
    *is_rw = true;
    return thread_C_OpenSession(slot->id, CKF_SERIAL_SESSION | CKF_RW_SESSION, session);
}

static bool open_hidden(struct slot *slot)
{
    CK_SESSION_HANDLE session = CK_INVALID_HANDLE;
    bool is_rw = false;
    CK_RV rv = token_has_room(slot);
    if (rv == CKR_OK)
        rv = open_session(slot, &session, &is_rw);
    if (rv == CKR_OK && !moves_none_for_thread(slot)) {
        thread_C_CloseSession(session);
        moves_slot_is_another(slot);
        rv = CKR_TOKEN_NOT_RECOGNIZED;
    }
    bool opened = rv == CKR_OK;
    lock_acquire(&state->lock);
    slot->hidden = opened ? session : CK_INVALID_HANDLE;
    slot->hidden_is_rw = is_rw;
    slot->hidden_used_ns = clock_ticks_ns();
    slot->hidden_retry_ns = opened ? 0 : clock_ticks_ns() + RETRY_NS;
    publish_locked();
    lock_release(&state->lock);
    if (!opened)
        log_write(LOG_LEVEL_INFO,
                  "slot %lu: no session for the prefetch, code 0x%lx; the pool is filled on "
                  "callers' sessions",
                  slot->id, rv);
    return opened;
}

bool hidden_begin(struct slot *slot, CK_SESSION_HANDLE *session)
{
    if (!go_in(slot))
        return false;
    if (slot->hidden == CK_INVALID_HANDLE && !open_hidden(slot)) {
        come_out(slot);
        return false;
    }
    *session = slot->hidden;
    return true;
}

void hidden_end(struct slot *slot, CK_RV rv)
{
    lock_acquire(&state->lock);
    slot->hidden_used_ns = clock_ticks_ns();
    switch (rv) {
    case CKR_SESSION_HANDLE_INVALID:
    case CKR_SESSION_CLOSED:
    case CKR_DEVICE_REMOVED:
    case CKR_TOKEN_NOT_PRESENT:
    case CKR_CRYPTOKI_NOT_INITIALIZED:
        slot->hidden = CK_INVALID_HANDLE;
        publish_locked();
    }
    lock_release(&state->lock);
    note_slot_answer(slot, rv);
    come_out(slot);
}

/* Takes the session away from the slot. The caller closes it. */
static CK_SESSION_HANDLE take_away_locked(struct slot *slot)
{
    CK_SESSION_HANDLE session = slot->hidden;
    slot->hidden = CK_INVALID_HANDLE;
    publish_locked();
    return session;
}

/* Closes what was taken away from the slot. Returns whether there was something, and now is not. What the
 * token will not close it keeps for the next time, since it is in the way as long as it is open. */
static bool close_session(struct slot *slot, CK_SESSION_HANDLE session)
{
    if (session == CK_INVALID_HANDLE)
        return false;
    CK_RV rv =
        prefetch_is_this_thread() ? thread_C_CloseSession(session) : target.C_CloseSession(session);
    if (session_is_gone(rv))
        return true;
    lock_acquire(&state->lock);
    if (slot->hidden == CK_INVALID_HANDLE)
        slot->hidden = session;
    slot->hidden_used_ns = clock_ticks_ns();
    publish_locked();
    lock_release(&state->lock);
    return false;
}

/* Whether it is time, and then the thread is at work. *next_ns: when to ask again, -1 if there is none. */
static bool is_idle(struct slot *slot, int64_t idle_ns, int64_t *next_ns)
{
    int64_t now_ns = clock_ticks_ns();
    *next_ns = -1;
    lock_acquire(&state->lock);
    if (slot->hidden != CK_INVALID_HANDLE) {
        *next_ns = slot->hidden_used_ns + idle_ns;
        if (now_ns >= *next_ns && slot->hidden_banned == 0)
            slot->hidden_at_work = true;
        /* Whoever bans it closes it, or cannot. */
        if (now_ns >= *next_ns)
            *next_ns = now_ns + idle_ns;
    }
    bool idle = slot->hidden_at_work;
    lock_release(&state->lock);
    return idle;
}

int64_t hidden_close_idle(struct slot *slot, int64_t idle_ns)
{
    int64_t next_ns;
    if (!is_idle(slot, idle_ns, &next_ns))
        return next_ns;
    if (forks_enter_target() && !prefetch_must_stop()) {
        lock_acquire(&state->lock);
        CK_SESSION_HANDLE session = take_away_locked(slot);
        lock_release(&state->lock);
        if (close_session(slot, session))
            next_ns = -1;
    }
    come_out(slot);
    return next_ns;
}

/* Waits until the thread is not in the target for the slot. Expects state->lock held; lets go of it
 * meanwhile. */
static void wait_for_thread_locked(struct slot *slot)
{
    while (slot->hidden_at_work) {
        unsigned bell = atomic_load(&state->slot_bell);
        lock_release(&state->lock);
        wait_on_word(&state->slot_bell, bell, /* timeout_ns= */ -1);
        lock_acquire(&state->lock);
    }
}

void hidden_ban(struct slot *slot)
{
    if (slot == NULL)
        return;
    lock_acquire(&state->lock);
    slot->hidden_banned++;
    wait_for_thread_locked(slot);
    CK_SESSION_HANDLE session = take_away_locked(slot);
    lock_release(&state->lock);
    close_session(slot, session);
}

void hidden_allow(struct slot *slot)
{
    if (slot == NULL)
        return;
    lock_acquire(&state->lock);
    /* 0 in a child that a signal handler made meanwhile. */
    if (slot->hidden_banned != 0)
        slot->hidden_banned--;
    lock_release(&state->lock);
}

bool hidden_give_way(void)
{
    bool gave = false;
    lock_acquire(&state->lock);
    unsigned count = state->slot_count;
    lock_release(&state->lock);
    for (unsigned i = 0; i < count; i++) {
        struct slot *slot = &state->slots[i];
        lock_acquire(&state->lock);
        wait_for_thread_locked(slot);
        CK_SESSION_HANDLE session = take_away_locked(slot);
        slot->hidden_retry_ns = clock_ticks_ns() + RETRY_NS;
        lock_release(&state->lock);
        gave = close_session(slot, session) || gave;
    }
    return gave;
}
