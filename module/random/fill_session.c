/* fill_session.c - the filler's own sessions: opened on demand, closed before a call that they would change. */
#include "random/fill_session.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/log.h"
#include "random/fork_gate.h"
#include "state/memory.h"
#include "state/sessions.h"
#include "target/target.h"

static const int64_t RETRY_NS = 10 * NS_PER_S;

/* The filler opens none unless the token has so many more than the application has open. */
enum { SESSIONS_TO_SPARE = 2 };

struct fill_session {
    CK_SESSION_HANDLE handle; /* CK_INVALID_HANDLE if none */
    bool is_read_write;
    bool at_work;       /* the filler's thread is in the target for this slot, */
    bool in_transition; /* to open or close the session */
    int suspended;      /* calls in progress that must not meet the session */
    int64_t used_ns;
    int64_t retry_at_ns; /* none is opened before */
};

static struct fill_sessions {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    int suspended;       /* calls in progress that must not meet any of the sessions */
    int64_t retry_at_ns; /* none is opened before */
    struct fill_session of[SLOTS_MAX];
} * state;

IN_WIPED_MEMORY(state, 1)

_Atomic uint64_t *fill_session_bits;
IN_WIPED_MEMORY(fill_session_bits, 1)

static void publish_locked(void)
{
    uint64_t bits = 0;
    unsigned count = slots_count();
    for (unsigned i = 0; i < count; i++)
        if (state->of[i].handle != CK_INVALID_HANDLE)
            bits |= (uint64_t)1 << (state->of[i].handle & 63);
    atomic_store(fill_session_bits, bits);
}

static void set_locked(struct fill_session *s, CK_SESSION_HANDLE handle)
{
    s->handle = handle;
    s->used_ns = clock_exact_ns();
    publish_locked();
}

/* The slot's session with that handle, NULL if it is none of the filler's. */
static struct fill_session *find_locked(CK_SESSION_HANDLE handle)
{
    unsigned count = slots_count();
    for (unsigned i = 0; i < count; i++)
        if (state->of[i].handle == handle && handle != CK_INVALID_HANDLE)
            return &state->of[i];
    return NULL;
}

CK_SESSION_HANDLE fill_session_look_up(CK_SESSION_HANDLE handle)
{
    pthread_mutex_lock(&state->lock);
    bool is_ours = find_locked(handle) != NULL;
    pthread_mutex_unlock(&state->lock);
    return is_ours ? CK_INVALID_HANDLE : handle;
}

void fill_session_was_lost(CK_SESSION_HANDLE handle)
{
    if (fill_session_hide(handle) == handle)
        return;
    pthread_mutex_lock(&state->lock);
    struct fill_session *s = find_locked(handle);
    if (s != NULL)
        set_locked(s, CK_INVALID_HANDLE);
    pthread_mutex_unlock(&state->lock);
}

void fill_sessions_forget(void)
{
    pthread_mutex_lock(&state->lock);
    for (unsigned i = 0; i < slots_count(); i++)
        state->of[i] = (struct fill_session){.suspended = state->of[i].suspended};
    atomic_store(fill_session_bits, 0);
    pthread_mutex_unlock(&state->lock);
}

static void begin_work_locked(struct fill_session *s, bool in_transition)
{
    s->at_work = true;
    s->in_transition = in_transition;
}

static void end_work(struct fill_session *s)
{
    fork_gate_leave();
    pthread_mutex_lock(&state->lock);
    s->at_work = s->in_transition = false;
    pthread_cond_broadcast(&state->changed);
    pthread_mutex_unlock(&state->lock);
}

/* A token that says how many sessions it has must have some to spare. */
static bool has_room(const struct slot *slot)
{
    CK_ULONG most = atomic_load(&slot->most_sessions);
    return most == CK_EFFECTIVELY_INFINITE || most == CK_UNAVAILABLE_INFORMATION ||
           atomic_load(&slot->sessions) + SESSIONS_TO_SPARE <= most;
}

/* Read-only where that is possible, because it changes least. There are tokens that open no such session. */
static CK_RV open_session(const struct slot *slot, CK_SESSION_HANDLE *session, bool *is_read_write)
{
    CK_RV rv = target()->C_OpenSession(slot->id, CKF_SERIAL_SESSION, NULL, NULL, session);
    *is_read_write = false;
    if (rv == CKR_OK || rv == CKR_SESSION_COUNT || rv == CKR_SESSION_READ_WRITE_SO_EXISTS)
        return rv;
    *is_read_write = true;
    return target()->C_OpenSession(slot->id, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL,
                                   session);
}

bool fill_session_acquire(struct slot *slot, CK_SESSION_HANDLE *session)
{
    struct fill_session *s = &state->of[slot->number];
    pthread_mutex_lock(&state->lock);
    *session = s->handle;
    bool is_open = s->handle != CK_INVALID_HANDLE;
    int64_t now_ns = clock_exact_ns();
    bool may =
        atomic_load(&slot->sessions) != 0 && s->suspended + state->suspended == 0 &&
        !atomic_load(&slot->so_logged_in) &&
        (is_open || (has_room(slot) && now_ns >= s->retry_at_ns && now_ns >= state->retry_at_ns));
    if (may)
        begin_work_locked(s, /* in_transition= */ !is_open);
    pthread_mutex_unlock(&state->lock);
    if (!may)
        return false;
    if (!fork_gate_enter()) {
        end_work(s);
        return false;
    }
    if (is_open)
        return true;

    bool is_read_write = false;
    CK_RV rv = open_session(slot, session, &is_read_write);
    pthread_mutex_lock(&state->lock);
    set_locked(s, rv == CKR_OK ? *session : CK_INVALID_HANDLE);
    s->is_read_write = is_read_write;
    s->in_transition = false;
    s->retry_at_ns = rv == CKR_OK ? 0 : clock_exact_ns() + RETRY_NS;
    pthread_cond_broadcast(&state->changed);
    pthread_mutex_unlock(&state->lock);
    if (rv == CKR_OK)
        return true;
    end_work(s);
    slot_note_code(slot, rv);
    log_write(
        LOG_LEVEL_INFO,
        "slot %lu: no session for the background thread, code 0x%lx; the pool is filled on the "
        "application's calls",
        slot->id, rv);
    return false;
}

void fill_session_done(struct slot *slot, CK_RV rv)
{
    struct fill_session *s = &state->of[slot->number];
    pthread_mutex_lock(&state->lock);
    set_locked(s, rv != CKR_OK && session_is_gone(rv) ? CK_INVALID_HANDLE : s->handle);
    pthread_mutex_unlock(&state->lock);
    end_work(s);
    slot_note_code(slot, rv);
}

/* Closes what was taken from s. A session that the token does not close is kept, because it is still in the way. */
static bool close_session(struct fill_session *s, CK_SESSION_HANDLE session)
{
    if (session == CK_INVALID_HANDLE)
        return false;
    if (session_is_gone(target()->C_CloseSession(session)))
        return true;
    pthread_mutex_lock(&state->lock);
    if (s->handle == CK_INVALID_HANDLE)
        set_locked(s, session);
    pthread_mutex_unlock(&state->lock);
    return false;
}

static CK_SESSION_HANDLE take_locked(struct fill_session *s)
{
    CK_SESSION_HANDLE session = s->handle;
    if (session != CK_INVALID_HANDLE)
        set_locked(s, CK_INVALID_HANDLE);
    return session;
}

int64_t fill_session_close_idle(struct slot *slot, int64_t idle_ns)
{
    struct fill_session *s = &state->of[slot->number];
    int64_t now_ns = clock_exact_ns();
    CK_SESSION_HANDLE session = CK_INVALID_HANDLE;
    pthread_mutex_lock(&state->lock);
    int64_t due_ns = s->handle != CK_INVALID_HANDLE ? s->used_ns + idle_ns : INT64_MAX;
    bool is_due = due_ns <= now_ns && s->suspended + state->suspended == 0;
    if (is_due)
        begin_work_locked(s, /* in_transition= */ true);
    pthread_mutex_unlock(&state->lock);
    if (!is_due)
        return due_ns;
    if (fork_gate_enter()) {
        pthread_mutex_lock(&state->lock);
        session = take_locked(s);
        pthread_mutex_unlock(&state->lock);
        close_session(s, session);
    }
    end_work(s);
    return now_ns + NS_PER_MS;
}

/* Takes the session of each slot from..upto as soon as the filler's thread is not in the target for it, and closes it.
 * Returns whether there was one. */
static bool close_sessions(unsigned from, unsigned upto)
{
    bool closed = false;
    for (unsigned i = from; i < upto; i++) {
        struct fill_session *s = &state->of[i];
        pthread_mutex_lock(&state->lock);
        while (s->at_work)
            pthread_cond_wait(&state->changed, &state->lock);
        CK_SESSION_HANDLE session = take_locked(s);
        pthread_mutex_unlock(&state->lock);
        closed = close_session(s, session) || closed;
    }
    return closed;
}

static void add_suspended(const struct slot *slot, int more)
{
    pthread_mutex_lock(&state->lock);
    if (slot != NULL)
        state->of[slot->number].suspended += more;
    else
        state->suspended += more;
    pthread_mutex_unlock(&state->lock);
}

void fill_session_suspend(const struct slot *slot)
{
    add_suspended(slot, 1);
    if (slot != NULL)
        close_sessions(slot->number, slot->number + 1);
    else
        close_sessions(0, slots_count());
}

void fill_session_resume(const struct slot *slot)
{
    add_suspended(slot, -1);
}

bool fill_sessions_release_all(void)
{
    pthread_mutex_lock(&state->lock);
    state->retry_at_ns = clock_exact_ns() + RETRY_NS;
    pthread_mutex_unlock(&state->lock);
    return close_sessions(0, slots_count());
}

struct fill_session_view fill_session_view(struct slot *slot, int64_t until_ns)
{
    const struct fill_session *s = &state->of[slot->number];
    const struct timespec pause = {.tv_nsec = NS_PER_MS / 10};
    for (;;) {
        pthread_mutex_lock(&state->lock);
        struct fill_session_view view = {s->handle, s->is_read_write, s->in_transition};
        pthread_mutex_unlock(&state->lock);
        if (!view.in_transition || clock_exact_ns() >= until_ns)
            return view;
        nanosleep(&pause, NULL);
    }
}
