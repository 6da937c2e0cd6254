/* filler.c - the background thread, and what it does for a slot. */
#include "random/filler.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>

#include "base/clock.h"
#include "base/keep_errno.h"
#include "base/lock.h"
#include "base/log.h"
#include "random/fill_session.h"
#include "random/sizing.h"
#include "random/source.h"
#include "state/sessions.h"
#include "state/memory.h"
#include "state/settings.h"

enum { STACK_BYTES = 1024 * 1024 };

static const int64_t END_AFTER_NS = 2 * NS_PER_S;
static const int64_t RETRY_AFTER_NS = 1 * NS_PER_S;
/* How long the application must have left the slot alone: so many times what a fetch takes, because a token that does
 * one thing at a time keeps the next call waiting for that long. */
enum { QUIET_FETCHES = 8 };
static const int64_t SHORTEST_QUIET_NS = 1 * NS_PER_MS;
static const int64_t LONGEST_QUIET_NS = 256 * NS_PER_MS;

enum thread_state {
    THREAD_NONE,
    THREAD_RUNNING,
    THREAD_ENDED /* of its own accord; it is to be joined */
};

/* What the filler knows of a slot. */
struct demand {
    atomic_bool wanted;
    atomic_bool lasting;           /* two draws within max-age have asked the token themselves */
    _Atomic int64_t read_ahead_ns; /* when one did last, 0: never */
    /* The thread's own: */
    unsigned calls_seen;
    int64_t used_ns;  /* when the application was seen to have used the slot */
    int64_t after_ns; /* it is not served before */
};

static struct filler {
    pthread_mutex_t making; /* held while the thread is made or joined; locked before fill_lock */
    /* fill_lock guards thread and woken, and changes of state and permitted. */
    pthread_t thread;
    bool woken;            /* a slot is in demand since the thread looked last */
    atomic_uint state;     /* enum thread_state */
    atomic_bool permitted; /* a thread that runs ends as soon as it is not */
    struct demand demands[SLOTS_MAX];
} * filler;
IN_WIPED_MEMORY(filler, 1)

/* In ordinary memory: a child is as pinned as its parent. */
static atomic_bool pinned;

/* How long to leave the slot alone because the application uses it; 0 if it does not. */
static int64_t back_off(struct slot *slot, struct demand *demand)
{
    unsigned calls;
    int64_t now_ns = clock_exact_ns();
    if (!in_call_none(slot, &calls) || atomic_load(&slot->operations) != 0 ||
        calls != demand->calls_seen)
        demand->used_ns = now_ns;
    demand->calls_seen = calls;
    int64_t quiet_ns = QUIET_FETCHES * sizing_read(slot).call_ns;
    quiet_ns = quiet_ns < SHORTEST_QUIET_NS  ? SHORTEST_QUIET_NS
               : quiet_ns > LONGEST_QUIET_NS ? LONGEST_QUIET_NS
                                             : quiet_ns;
    int64_t until_ns = demand->used_ns != 0 ? demand->used_ns + quiet_ns : 0;
    return until_ns > now_ns ? until_ns - now_ns : 0;
}

/* Fills the slot's pool. Returns how long to wait before going on with it, 0 if there is nothing to go on with. */
static int64_t service_slot(struct slot *slot, struct demand *demand)
{
    struct pool *pool = atomic_load(&slot->pool);
    bool more = pool != NULL;
    CK_RV rv = CKR_OK;
    while (more && pool_is_low(pool) && atomic_load(&filler->permitted)) {
        CK_SESSION_HANDLE session;
        int64_t wait_ns = back_off(slot, demand);
        if (wait_ns == 0)
            wait_ns = fill_session_begin(slot, &session);
        if (wait_ns != 0)
            return wait_ns;
        more = source_fill(slot, session, &rv) && rv == CKR_OK;
        fill_session_end(slot, rv);
    }
    return rv != CKR_OK ? RETRY_AFTER_NS : 0;
}

/* Serves all slots once. Returns when to do so again; *served says whether any was. */
static int64_t service_all(bool *served)
{
    int64_t next_ns = INT64_MAX;
    *served = false;
    for (unsigned i = 0; i < slots_count(); i++) {
        struct demand *demand = &filler->demands[i];
        if (atomic_load(&demand->wanted) && demand->after_ns <= clock_exact_ns()) {
            atomic_store(&demand->wanted, false);
            int64_t wait_ns = service_slot(slot_at(i), demand);
            *served = *served || wait_ns == 0;
            if (wait_ns != 0)
                atomic_store(&demand->wanted, true);
            demand->after_ns = wait_ns != 0 ? clock_exact_ns() + wait_ns : 0;
        }
        if (atomic_load(&demand->wanted) && demand->after_ns < next_ns)
            next_ns = demand->after_ns;
    }
    return next_ns;
}

/* Sleeps until a slot is in demand, at the latest until until_ns. Returns whether the thread is to go on. */
static bool wait_for_demand(bool ends, int64_t until_ns)
{
    HOLD(fill_lock);
    while (!ends && !filler->woken && atomic_load(&filler->permitted) && fill_wait_locked(until_ns))
        continue;
    bool goes_on = (!ends || filler->woken) && atomic_load(&filler->permitted);
    filler->woken = false;
    if (!goes_on && atomic_load(&filler->permitted))
        atomic_store(&filler->state, THREAD_ENDED);
    return goes_on;
}

static void *run(void *unused)
{
    int64_t end_ns = clock_exact_ns() + END_AFTER_NS;
    bool goes_on = true;
    pthread_setname_np(pthread_self(), "p11-proxy-fill");
    while (goes_on) {
        bool served;
        int64_t next_ns = service_all(&served);
        int64_t now_ns = clock_exact_ns();
        if (served)
            end_ns = now_ns + END_AFTER_NS;
        bool ends = now_ns >= end_ns && fill_sessions_close();
        int64_t look_ns = now_ns < end_ns ? end_ns : now_ns + NS_PER_S;
        goes_on = wait_for_demand(ends, next_ns < look_ns ? next_ns : look_ns);
    }
    return unused;
}

bool filler_is_this_thread(void)
{
    return atomic_load(&filler->state) == THREAD_RUNNING &&
           pthread_equal(filler->thread, pthread_self());
}

/* Two kinds of program load the module beside a C library of its own: a statically linked one, whose second C library
 * cannot make threads, and one that calls dlmopen(), whose exit() does not run the exit handlers of that library, so
 * the thread would still be in the target when the target ends. The first has no program interpreter; the auxiliary
 * vector says where that was loaded. */
static bool host_shares_libc(void *self)
{
    if (self == NULL)
        return false;
#ifdef LM_ID_BASE
    Lmid_t namespace;
    if (dlinfo(self, RTLD_DI_LMID, &namespace) != 0 || namespace != LM_ID_BASE)
        return false;
#endif
    return getauxval(AT_BASE) != 0;
}

/* Keeps the module loaded: the thread runs its code, and fork handlers are registered. */
static bool pin(void)
{
    Dl_info self;
    if (atomic_load(&pinned))
        return true;
    void *handle =
        dladdr(&pinned, &self) != 0 ? dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
    bool pins = host_shares_libc(handle) &&
                dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE) != NULL;
    if (handle != NULL)
        dlclose(handle);
    atomic_store(&pinned, pins);
    return pins;
}

bool filler_has_pinned(void)
{
    return atomic_load(&pinned);
}

static int make_thread_locked(void)
{
    pthread_attr_t attributes;
    size_t stack_bytes;
    sigset_t all, callers;
    int rc = pthread_attr_init(&attributes);
    if (rc != 0)
        return rc;
    /* The target runs on it, with all that it links: not less than the default. */
    pthread_attr_getstacksize(&attributes, &stack_bytes);
    if (stack_bytes < STACK_BYTES)
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
    /* It inherits the mask, so that no handler of the application runs on it. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &callers);
    rc = pthread_create(&filler->thread, &attributes, run, NULL);
    pthread_sigmask(SIG_SETMASK, &callers, NULL);
    pthread_attr_destroy(&attributes);
    return rc;
}

/* Makes the thread if there is none. */
static void start(void)
{
    int rc = 0;
    int cancellation;
    bool pins = pin(); /* with the loader's lock, so before ours */
    /* A caller that is cancelled while it joins would leave the lock held. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
    pthread_mutex_lock(&filler->making);
    /* Without fill_lock: its end runs what the target keeps for each thread, and a fork must not wait for that. */
    if (atomic_load(&filler->state) == THREAD_ENDED) {
        pthread_join(filler->thread, NULL);
        atomic_store(&filler->state, THREAD_NONE);
    }
    pthread_mutex_lock(fill_lock);
    if (atomic_load(&filler->state) == THREAD_NONE && atomic_load(&filler->permitted)) {
        rc = pins ? fill_sessions_start_locked() : ENOTSUP;
        if (rc == 0)
            rc = make_thread_locked();
        atomic_store(&filler->state, rc == 0 ? THREAD_RUNNING : THREAD_NONE);
        atomic_store(&filler->permitted, rc == 0 || rc == EBUSY);
    }
    pthread_mutex_unlock(fill_lock);
    pthread_mutex_unlock(&filler->making);
    pthread_setcancelstate(cancellation, &cancellation);
    if (rc != 0 && rc != EBUSY)
        log_write(rc == ENOTSUP ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING,
                  "no background thread, errno %d: pools are filled on the application's calls",
                  rc);
}

void filler_wants_fill(struct slot *slot)
{
    KEEP_ERRNO();
    struct demand *demand = &filler->demands[slot->number];
    if (!atomic_load(&demand->lasting) || !atomic_load(&filler->permitted))
        return;
    if (!atomic_exchange(&demand->wanted, true)) {
        HOLD(fill_lock);
        filler->woken = true;
        fill_notify_locked();
    }
    if (atomic_load(&filler->state) != THREAD_RUNNING)
        start();
}

void filler_note_read_ahead(struct slot *slot)
{
    struct demand *demand = &filler->demands[slot->number];
    int64_t now_ns = clock_exact_ns();
    int64_t max_age_ns = (int64_t)settings()->pool_max_age_ms * NS_PER_MS;
    int64_t before_ns = atomic_exchange(&demand->read_ahead_ns, now_ns);
    if (before_ns != 0 && now_ns - before_ns <= max_age_ns)
        atomic_store(&demand->lasting, true);
    /* If the pool is dropped before each draw, this draw has just filled it, so it is not low and needs no thread. */
    struct pool *pool = atomic_load(&slot->pool);
    if (pool != NULL && pool_is_low(pool))
        filler_wants_fill(slot);
}

void filler_permit(bool permitted)
{
    atomic_store(&filler->permitted, permitted);
}

bool filler_stop(void)
{
    pthread_mutex_lock(&filler->making);
    pthread_mutex_lock(fill_lock);
    bool was_permitted = atomic_exchange(&filler->permitted, false);
    bool is_there = atomic_load(&filler->state) != THREAD_NONE;
    fill_notify_locked();
    pthread_mutex_unlock(fill_lock);
    if (is_there)
        pthread_join(filler->thread, NULL);
    atomic_store(&filler->state, THREAD_NONE);
    pthread_mutex_unlock(&filler->making);
    /* A draw that is on its way out may look at them. */
    for (unsigned i = 0; i < slots_count(); i++) {
        struct demand *demand = &filler->demands[i];
        atomic_store(&demand->wanted, false);
        atomic_store(&demand->lasting, false);
        atomic_store(&demand->read_ahead_ns, 0);
        demand->after_ns = 0;
    }
    return was_permitted;
}
