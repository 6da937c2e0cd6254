/* prefetch.c - the background thread, and what it does for a slot. */
#include "prefetch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "clock.h"
#include "clones.h"
#include "fetch.h"
#include "forks.h"
#include "hidden.h"
#include "log.h"
#include "manners.h"
#include "sessions.h"

enum { STACK_BYTES = 1024 * 1024 };

static const int64_t STAND_ASIDE_NS = 1 * NS_PER_MS;
static const int64_t STAND_ASIDE_MOST_NS = 256 * NS_PER_MS;
static const int64_t IDLE_SESSION_NS = 1 * NS_PER_S;
static const int64_t EXIT_WAIT_NS = 1 * NS_PER_S;
static const int64_t NEVER_NS = INT64_MAX;

/* In ordinary memory: a child that exits is as far gone. */
static atomic_bool process_exits;

bool prefetch_must_stop(void)
{
    return atomic_load(&state->thread) == THREAD_STOPS || atomic_load(&process_exits);
}

/* The application is in a call on the slot, which will be over soon. */
static bool slot_is_in_call(const struct slot *slot)
{
    for (unsigned i = 0; i < BUSY_PLACES; i++) {
        CK_SESSION_HANDLE handle =
            atomic_load_explicit(&state->busy[i].session, memory_order_relaxed);
        struct session *session = handle != CK_INVALID_HANDLE ? session_find(handle) : NULL;
        if (session != NULL && session->slot == slot)
            return true;
    }
    return false;
}

/* It has an operation open there that must not be disturbed, perhaps for good. */
static bool slot_operates(const struct slot *slot)
{
    return atomic_load_explicit(&slot->operations, memory_order_relaxed) != 0;
}

/* How long to leave the slot alone. */
static int64_t stand_aside_ns(struct slot *slot)
{
    int64_t longer_ns = slot->aside_ns * 2;
    if (!slot_operates(slot) || slot->aside_ns == 0)
        longer_ns = STAND_ASIDE_NS;
    slot->aside_ns = longer_ns < STAND_ASIDE_MOST_NS ? longer_ns : STAND_ASIDE_MOST_NS;
    return slot->aside_ns;
}

/* One call to the token. Returns whether another one is wanted. */
static bool fill_once(struct slot *slot, struct pool *pool)
{
    CK_SESSION_HANDLE session;
    size_t none;
    CK_RV rv = CKR_OK;
    if (!hidden_begin(slot, &session))
        return false;
    bool asked = fetch_fill(slot, pool, session, NULL, 0, &none, &rv);
    hidden_end(slot, rv);
    /* A refused size is no failure: the next call is smaller, and callers look for a size of theirs. */
    if (asked && manners_is_about_length(rv))
        manners_refused(slot);
    else if (asked && rv != CKR_OK && atomic_load(&slot->suspect) != SUSPICION_SURE)
        manners_failed(slot, rv);
    return asked && rv == CKR_OK;
}

/* Returns when to look at the slot again. */
static int64_t attend(struct slot *slot)
{
    struct pool *pool = atomic_load(&slot->pool);
    if (pool == NULL)
        return NEVER_NS;
    bool aside = false;
    int64_t next_ns = NEVER_NS;
    if (atomic_exchange(&slot->hungry, 0) != 0) {
        bool more = manners_may_fill(slot);
        while (more && !prefetch_must_stop()) {
            aside = slot_is_in_call(slot) || slot_operates(slot);
            more = !aside && fill_once(slot, pool) && manners_may_fill(slot);
        }
    }
    if (aside) {
        atomic_store(&slot->hungry, 1);
        next_ns = clock_ticks_ns() + stand_aside_ns(slot);
    } else
        slot->aside_ns = 0;
    int64_t expires_ns = pool_expire(pool);
    int64_t idle_ns = hidden_close_idle(slot, IDLE_SESSION_NS);
    if (expires_ns >= 0 && expires_ns < next_ns)
        next_ns = expires_ns;
    if (idle_ns >= 0 && idle_ns < next_ns)
        next_ns = idle_ns;
    return next_ns;
}

static int64_t attend_all(void)
{
    lock_acquire(&state->lock);
    unsigned count = state->slot_count;
    lock_release(&state->lock);
    int64_t next_ns = NEVER_NS;
    for (unsigned i = 0; i < count && !prefetch_must_stop(); i++) {
        int64_t slot_ns = attend(&state->slots[i]);
        if (slot_ns < next_ns)
            next_ns = slot_ns;
    }
    return next_ns;
}

/*
 * At exit the thread does not end: its end would run what the target keeps for each thread (OpenSSL does), while the
 * target itself is being torn down. Only a C_Finalize in another handler ends it, and waits for that.
 */
static void wait_for_finalize(void)
{
    atomic_store(&state->thread_sleeps, 1);
    while (atomic_load(&state->thread) != THREAD_STOPS) {
        unsigned bell = atomic_load(&state->thread_bell);
        if (atomic_load(&state->thread) != THREAD_STOPS)
            wait_on_word(&state->thread_bell, bell, /* timeout_ns= */ -1);
    }
    atomic_store(&state->thread_sleeps, 0);
}

static void *run(void *unused)
{
    (void)unused;
    clones_listen();
    while (!prefetch_must_stop()) {
        unsigned bell = atomic_load(&state->thread_bell);
        if (clones_heard())
            state_drop_pools(POOL_DROP_CLONE);
        int64_t next_ns = attend_all();
        int64_t wait_ns = next_ns == NEVER_NS ? -1 : next_ns - clock_ticks_ns();
        atomic_store(&state->thread_sleeps, 1);
        if (!prefetch_must_stop() && (wait_ns < 0 ? next_ns == NEVER_NS : wait_ns > 0))
            wait_on_word(&state->thread_bell, bell, wait_ns);
        atomic_store(&state->thread_sleeps, 0);
    }
    wait_for_finalize();
    clones_unlisten();
    return NULL;
}

static void ring_bell(void)
{
    atomic_fetch_add(&state->thread_bell, 1);
    if (atomic_load(&state->thread_sleeps) != 0)
        wake_word(&state->thread_bell);
}

static int make_thread(pthread_t *thread)
{
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t callers;
    int rc = pthread_attr_init(&attributes);
    if (rc != 0)
        return rc;
    /* The target runs on it, with all that it links: no small stack. */
    size_t stack_bytes;
    pthread_attr_getstacksize(&attributes, &stack_bytes);
    if (stack_bytes < STACK_BYTES)
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
    /* It inherits the mask: no handler of the application runs on it. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &callers);
    rc = pthread_create(thread, &attributes, run, NULL);
    pthread_sigmask(SIG_SETMASK, &callers, NULL);
    pthread_attr_destroy(&attributes);
    if (rc == 0)
        pthread_setname_np(*thread, "p11-proxy-fill");
    return rc;
}

void prefetch_start(void)
{
    int saved_errno = errno;
    unsigned none = THREAD_NONE;
    pthread_t thread;
    if (!state->threads_permitted || atomic_load(&process_exits) ||
        !atomic_compare_exchange_strong(&state->thread, &none, THREAD_STARTS))
        return;
    forks_watch();
    int rc = make_thread(&thread);
    if (rc == 0)
        state->thread_id = (unsigned long)thread;
    atomic_store(&state->thread, rc == 0 ? THREAD_RUNS : THREAD_NONE);
    if (rc != 0) {
        atomic_store(&state->threads_permitted, false);
        log_write(LOG_LEVEL_WARNING,
                  "no background thread, errno %d: pools are filled on callers' threads", rc);
    }
    errno = saved_errno;
}

void prefetch_want(struct slot *slot)
{
    if (atomic_load(&state->thread) == THREAD_RUNS && atomic_exchange(&slot->hungry, 1) == 0)
        ring_bell();
}

void prefetch_stop(void)
{
    int saved_errno = errno;
    unsigned runs = THREAD_RUNS;
    if (atomic_compare_exchange_strong(&state->thread, &runs, THREAD_STOPS)) {
        ring_bell();
        pthread_join((pthread_t)state->thread_id, NULL);
        atomic_store(&state->thread, THREAD_NONE);
    }
    errno = saved_errno;
}

void prefetch_at_exit(void)
{
    int64_t until_ns = clock_exact_ns() + EXIT_WAIT_NS;
    atomic_store(&process_exits, true);
    ring_bell();
    while (atomic_load(&state->thread_inside) != 0) {
        int64_t left_ns = until_ns - clock_exact_ns();
        if (left_ns <= 0)
            return;
        wait_on_word(&state->thread_inside, 1, left_ns);
    }
}
