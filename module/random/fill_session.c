/* fill_session.c - the filler's own sessions, and when its thread may be in the target. */
#include "random/fill_session.h"

#include <errno.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "state/memory.h"
#include "state/sessions.h"
#include "target/target.h"

static const int64_t REOPEN_AFTER_NS = 10 * NS_PER_S;
static const int64_t LOOK_AGAIN_AFTER_NS = 10 * NS_PER_MS;
/* Longer than a call of the filler's to a token that is well; see sizing.c. */
static const int64_t FORK_WAIT_NS = 250 * NS_PER_MS;
static const int64_t EXIT_WAIT_NS = 1 * NS_PER_S;
static const int64_t TRANSITION_WAIT_NS = 1 * NS_PER_S;

/* The filler opens none unless the token has so many more than the application has open. */
enum { SESSIONS_TO_SPARE = 2 };

struct fill_session {
    CK_SESSION_HANDLE handle; /* CK_INVALID_HANDLE if none is open, or not yet, or no longer */
    bool is_read_write;
};

/* Guarded by fill_lock. A child finds all this zeroed: no session, no fork in progress. */
static struct fill_sessions {
    pthread_cond_t changed;
    bool is_prepared;                   /* changed is */
    int64_t reopen_at_ns;               /* the token was short of sessions: none is opened before */
    unsigned suspended;                 /* calls, forks and exits that must not meet the filler */
    const struct fill_session *at_work; /* the filler's thread is in the target for it, */
    pthread_t thread;                   /* and is this one; NULL: it is not */
    bool was_waited_for;                /* a fork has waited in vain for the call that it is in */
    struct fill_session of[SLOTS_MAX];
} * state;
IN_WIPED_MEMORY(state, 1)

pthread_mutex_t *fill_lock;
IN_WIPED_MEMORY(fill_lock, 1)

_Atomic uint64_t *fill_session_bits;
IN_WIPED_MEMORY(fill_session_bits, 1)

bool fill_wait_locked(int64_t until_ns)
{
    struct timespec until = {.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};
    pthread_condattr_t clock;
    int cancellation;
    if (!state->is_prepared) {
        pthread_condattr_init(&clock);
        pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
        pthread_cond_init(&state->changed, &clock);
        pthread_condattr_destroy(&clock);
        state->is_prepared = true;
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
    int rc = pthread_cond_timedwait(&state->changed, fill_lock, &until);
    pthread_setcancelstate(cancellation, &cancellation);
    return rc == 0;
}

void fill_notify_locked(void)
{
    pthread_cond_broadcast(&state->changed);
}

static void set_locked(struct fill_session *s, CK_SESSION_HANDLE handle)
{
    uint64_t bits = 0;
    s->handle = handle;
    for (unsigned i = 0; i < slots_count(); i++)
        if (state->of[i].handle != CK_INVALID_HANDLE)
            bits |= (uint64_t)1 << (state->of[i].handle & 63);
    atomic_store(fill_session_bits, bits);
    fill_notify_locked();
}

/* The slot's session with that handle, NULL if it is none of the filler's. */
static struct fill_session *find_locked(CK_SESSION_HANDLE handle)
{
    for (unsigned i = 0; i < slots_count(); i++)
        if (state->of[i].handle == handle && handle != CK_INVALID_HANDLE)
            return &state->of[i];
    return NULL;
}

CK_SESSION_HANDLE fill_session_look_up(CK_SESSION_HANDLE handle)
{
    HOLD(fill_lock);
    return find_locked(handle) != NULL ? CK_INVALID_HANDLE : handle;
}

void fill_session_was_lost(CK_SESSION_HANDLE handle)
{
    HOLD(fill_lock);
    struct fill_session *s = find_locked(handle);
    if (s != NULL)
        set_locked(s, CK_INVALID_HANDLE);
}

void fill_sessions_forget(void)
{
    HOLD(fill_lock);
    for (unsigned i = 0; i < slots_count(); i++)
        state->of[i] = (struct fill_session){0};
    state->reopen_at_ns = 0;
    atomic_store(fill_session_bits, 0);
}

static bool begin_work_locked(const struct fill_session *s)
{
    if (state->suspended != 0)
        return false;
    state->at_work = s;
    state->thread = pthread_self();
    state->was_waited_for = false;
    return true;
}

static void end_work_locked(void)
{
    state->at_work = NULL;
    fill_notify_locked();
}

/* Waits until the thread is out of the target; false if it still is in it after wait_ns. The target may fork or exit
 * while it makes random bytes: then the thread is inside its own fork or exit. */
static bool is_out_within_locked(int64_t wait_ns)
{
    int64_t until_ns = clock_exact_ns() + wait_ns;
    while (state->at_work != NULL && !pthread_equal(state->thread, pthread_self()))
        if (!fill_wait_locked(until_ns))
            return false;
    return true;
}

/* Nothing of ours stays locked until the fork is made: another handler may wait for a thread that calls us. */
static void before_fork(void)
{
    HOLD(fill_lock);
    state->suspended++;
    if (!state->was_waited_for)
        state->was_waited_for = !is_out_within_locked(FORK_WAIT_NS);
}

int fill_sessions_start_locked(void)
{
    static bool watches_forks; /* in a child too */
    if (!watches_forks)
        watches_forks = pthread_atfork(before_fork, fill_session_resume, NULL) == 0;
    return !watches_forks ? ENOMEM : state->suspended != 0 ? EBUSY : 0;
}

void fill_sessions_at_exit(void)
{
    HOLD(fill_lock);
    state->suspended++;
    is_out_within_locked(EXIT_WAIT_NS);
}

/* A token that says how many sessions it has must have some to spare. */
static bool may_open_locked(const struct slot *slot)
{
    CK_ULONG most = atomic_load(&slot->most_sessions);
    bool has_room = most == CK_EFFECTIVELY_INFINITE || most == CK_UNAVAILABLE_INFORMATION ||
                    atomic_load(&slot->sessions) + SESSIONS_TO_SPARE <= most;
    return has_room && clock_exact_ns() >= state->reopen_at_ns;
}

/* Read-only where that is possible, because it changes least. There are tokens that open no such session. */
static CK_RV open_session(const struct slot *slot, CK_SESSION_HANDLE *session, bool *is_read_write)
{
    CK_FLAGS flags = CKF_SERIAL_SESSION;
    CK_RV rv = target()->C_OpenSession(slot->id, flags, NULL, NULL, session);
    *is_read_write =
        rv != CKR_OK && rv != CKR_SESSION_COUNT && rv != CKR_SESSION_READ_WRITE_SO_EXISTS;
    if (*is_read_write)
        rv = target()->C_OpenSession(slot->id, flags | CKF_RW_SESSION, NULL, NULL, session);
    return rv;
}

int64_t fill_session_begin(struct slot *slot, CK_SESSION_HANDLE *session)
{
    struct fill_session *s = &state->of[slot->number];
    pthread_mutex_lock(fill_lock);
    *session = s->handle;
    bool is_open = s->handle != CK_INVALID_HANDLE;
    bool may = atomic_load(&slot->sessions) != 0 && atomic_load(&slot->login) != LOGIN_OF_SO &&
               (is_open || may_open_locked(slot)) && begin_work_locked(s);
    pthread_mutex_unlock(fill_lock);
    if (!may)
        return LOOK_AGAIN_AFTER_NS;
    if (is_open)
        return 0;

    bool is_read_write;
    CK_RV rv = open_session(slot, session, &is_read_write);
    if (rv != CKR_OK) {
        fill_session_end(slot, rv);
        log_write(LOG_LEVEL_INFO,
                  "slot %lu: no session for the background thread, code 0x%lx; the pool is filled "
                  "on the application's calls",
                  slot->id, rv);
        return REOPEN_AFTER_NS;
    }
    HOLD(fill_lock);
    s->is_read_write = is_read_write;
    set_locked(s, *session);
    return 0;
}

void fill_session_end(struct slot *slot, CK_RV rv)
{
    pthread_mutex_lock(fill_lock);
    if (rv != CKR_OK && session_is_gone(rv))
        set_locked(&state->of[slot->number], CK_INVALID_HANDLE);
    end_work_locked();
    pthread_mutex_unlock(fill_lock);
    slot_note_code(slot, rv);
}

/* Closes it, with the lock released meanwhile. Returns whether it was open and is no more. A session that the token does not close is
 * kept, because it is still in the way. */
static bool close_locked(struct fill_session *s)
{
    CK_SESSION_HANDLE session = s->handle;
    if (session == CK_INVALID_HANDLE)
        return false;
    set_locked(s, CK_INVALID_HANDLE);
    pthread_mutex_unlock(fill_lock);
    bool is_gone = session_is_gone(target()->C_CloseSession(session));
    pthread_mutex_lock(fill_lock);
    if (!is_gone && s->handle == CK_INVALID_HANDLE)
        set_locked(s, session);
    return is_gone;
}

bool fill_sessions_close(void)
{
    HOLD(fill_lock);
    for (unsigned i = 0; i < slots_count(); i++) {
        if (!begin_work_locked(&state->of[i]))
            return false;
        close_locked(&state->of[i]);
        end_work_locked();
    }
    return true;
}

/* Closes the slot's session (NULL: those of all slots) as soon as the thread is not in the target for it. Returns
 * whether there was one. */
static bool close_all_locked(const struct slot *slot)
{
    bool closed = false;
    for (unsigned i = 0; i < slots_count(); i++) {
        struct fill_session *s = &state->of[i];
        if (slot != NULL && slot->number != i)
            continue;
        while (state->at_work == s)
            fill_wait_locked(/* until_ns= */ INT64_MAX);
        closed = close_locked(s) || closed;
    }
    return closed;
}

void fill_session_suspend(const struct slot *slot)
{
    HOLD(fill_lock);
    state->suspended++;
    close_all_locked(slot);
}

void fill_session_resume(void)
{
    HOLD(fill_lock);
    state->suspended--;
}

bool fill_sessions_release_all(void)
{
    HOLD(fill_lock);
    state->reopen_at_ns = clock_exact_ns() + REOPEN_AFTER_NS;
    return close_all_locked(NULL);
}

void fill_session_hold(const struct slot *slot, bool *is_open, bool *is_read_write)
{
    const struct fill_session *s = &state->of[slot->number];
    HOLD(fill_lock);
    int64_t until_ns = clock_exact_ns() + TRANSITION_WAIT_NS;
    state->suspended++;
    while (state->at_work == s && s->handle == CK_INVALID_HANDLE && fill_wait_locked(until_ns))
        continue;
    *is_open = s->handle != CK_INVALID_HANDLE;
    *is_read_write = s->is_read_write;
}
