/* prefetch.c - the background thread, and what it does for a slot. */
#include "random/prefetch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "random/clones.h"
#include "random/fetch.h"
#include "random/forks.h"
#include "random/hidden.h"
#include "random/lifeboat.h"
#include "base/log.h"
#include "random/manners.h"
#include "state/sessions.h"

enum { STACK_BYTES = 1024 * 1024 };

static const int64_t STAND_ASIDE_NS = 1 * NS_PER_MS;
static const int64_t STAND_ASIDE_MOST_NS = 256 * NS_PER_MS;
static const int64_t IDLE_SESSION_NS = 1 * NS_PER_S;
static const int64_t LOOK_ROUND_NS = 1 * NS_PER_S;
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

/*
 * How long to leave the pool to its callers: they found it empty since it was last looked at. Begun at half a
 * pool, a fill comes too late for them and brings half of one; what they fetch themselves brings a whole.
 */
static int64_t patience_ns(struct slot *slot, struct pool *pool)
{
    uint64_t misses = pool_misses(pool);
    bool outrun = misses != slot->misses_seen;
    slot->misses_seen = misses;
    return outrun ? manners_patience_ns(slot) : 0;
}

/* Returns how long to wait before going on with it, 0 if there is nothing to go on with. */
static int64_t fill(struct slot *slot, struct pool *pool)
{
    bool more = manners_may_fill(slot);
    while (more && !prefetch_must_stop()) {
        if (slot_is_in_call(slot) || slot_operates(slot))
            return stand_aside_ns(slot);
        slot->aside_ns = 0;
        int64_t wait_ns = patience_ns(slot, pool);
        if (wait_ns != 0)
            return wait_ns;
        more = fill_once(slot, pool) && manners_may_fill(slot);
    }
    return atomic_load(&slot->hungry) != 0 ? STAND_ASIDE_NS : 0;
}

/* Returns when to look at the slot again. */
static int64_t attend(struct slot *slot)
{
    struct pool *pool = atomic_load(&slot->pool);
    if (pool == NULL)
        return NEVER_NS;
    int64_t next_ns = NEVER_NS;
    if (atomic_exchange(&slot->hungry, 0) != 0) {
        int64_t wait_ns = fill(slot, pool);
        if (wait_ns != 0) {
            atomic_store(&slot->hungry, 1);
            next_ns = clock_ticks_ns() + wait_ns;
        }
    }
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
 * target itself is being torn down. Only a C_Finalize in another handler ends it, and waits for that; or whoever
 * unloads us leaves it behind.
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

/* Whether the application has ended all its threads: a process ends with its last one, and that must not be
 * ours. Needs no descriptor, whose number could be one that the application counts on. */
static bool only_ours_is_left(void)
{
    enum { LINKS_OF_NONE = 2 }; /* and one for each thread, a first one that has ended included */
    struct stat threads;
    char path;
    return stat("/proc/self/task", &threads) == 0 && threads.st_nlink == LINKS_OF_NONE + 2 &&
           readlink("/proc/self/exe", &path, 1) < 0 && errno == ENOENT;
}

/* The thread ends of its own accord, unless the bell was rung since it was seen or somebody ends it just now. */
static bool leaves(unsigned bell_seen)
{
    unsigned runs = THREAD_RUNS;
    unsigned left = THREAD_LEFT;
    if (!atomic_compare_exchange_strong(&state->thread, &runs, THREAD_LEFT))
        return false;
    /* Whoever rings looks whether the thread runs, and then it may have left. */
    return atomic_load(&state->thread_bell) == bell_seen ||
           !atomic_compare_exchange_strong(&state->thread, &left, THREAD_RUNS);
}

static void run(void)
{
    bool rung = true;
    atomic_store(&state->thread_runs_as, (unsigned long)pthread_self());
    /* Its creator would need a descriptor for that, of a file open for writing. */
    pthread_setname_np(pthread_self(), "p11-proxy-fill");
    clones_listen();
    while (!prefetch_must_stop()) {
        unsigned bell = atomic_load(&state->thread_bell);
        if (clones_heard())
            state_drop_pools(POOL_DROP_CLONE);
        int64_t next_ns = attend_all();
        if ((next_ns == NEVER_NS || (!rung && only_ours_is_left())) && leaves(bell))
            break;
        int64_t wait_ns = next_ns == NEVER_NS ? LOOK_ROUND_NS : next_ns - clock_ticks_ns();
        if (wait_ns > LOOK_ROUND_NS)
            wait_ns = LOOK_ROUND_NS;
        atomic_store(&state->thread_sleeps, 1);
        if (!prefetch_must_stop() && wait_ns > 0)
            wait_on_word(&state->thread_bell, bell, wait_ns);
        atomic_store(&state->thread_sleeps, 0);
        rung = atomic_load(&state->thread_bell) != bell;
    }
    if (atomic_load(&state->thread) != THREAD_LEFT)
        wait_for_finalize();
    clones_unlisten();
    atomic_store(&state->thread_runs_as, 0);
}

bool prefetch_is_this_thread(void)
{
    return atomic_load_explicit(&state->thread_runs_as, memory_order_relaxed) ==
           (unsigned long)pthread_self();
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
    rc = pthread_create(thread, &attributes, lifeboat_start(), lifeboat_argument());
    pthread_sigmask(SIG_SETMASK, &callers, NULL);
    pthread_attr_destroy(&attributes);
    return rc;
}

void prefetch_start(void)
{
    int saved_errno = errno;
    unsigned before = atomic_load(&state->thread);
    pthread_t thread;
    if ((before != THREAD_NONE && before != THREAD_LEFT) || !state->threads_permitted ||
        atomic_load(&process_exits) ||
        !atomic_compare_exchange_strong(&state->thread, &before, THREAD_STARTS))
        return;
    if (before == THREAD_LEFT)
        pthread_join((pthread_t)state->thread_id, NULL);
    lifeboat_make(run);
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

/* True if there is a thread to end, which is the caller's to do then. */
static bool take_thread(void)
{
    unsigned before = atomic_load(&state->thread);
    while ((before == THREAD_RUNS || before == THREAD_LEFT) &&
           !atomic_compare_exchange_weak(&state->thread, &before, THREAD_STOPS))
        continue;
    return before == THREAD_RUNS || before == THREAD_LEFT;
}

void prefetch_stop(void)
{
    int saved_errno = errno;
    if (take_thread()) {
        ring_bell();
        pthread_join((pthread_t)state->thread_id, NULL);
        atomic_store(&state->thread, THREAD_NONE);
    }
    errno = saved_errno;
}

bool prefetch_abandon(int64_t patience_ns, int64_t most_ns)
{
    /* At once, before it hears of anything: it is not to end by itself. */
    if (patience_ns == 0)
        lifeboat_leave_behind();
    if (!take_thread())
        return true;
    pthread_t thread = (pthread_t)state->thread_id;
    ring_bell();
    if (lifeboat_wait(patience_ns, most_ns)) {
        /* What the target has it do at its very end may want the loader, too. */
        int64_t until_ns = clock_read_ns(CLOCK_REALTIME) + patience_ns;
        struct timespec until = {.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};
        if (pthread_timedjoin_np(thread, NULL, &until) == 0)
            return true;
    }
    pthread_detach(thread);
    return false;
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
