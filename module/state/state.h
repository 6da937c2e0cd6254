/* state.h - all that the proxy knows while it is initialised, in one mapping that fork wipes.
 *
 * All bytes zero means: not initialised, no session known, no pool, no thread, no lock held. That is
 * what a forked or cloned child finds, so it hands every call to the target until it initialises
 * anew, and no lock that a thread of its parent held can hang it. What has to survive a fork (the
 * target and its table) lies in ordinary memory and does not change after loading.
 *
 * Nothing here is unmapped while we are loaded: a thread that calls while another finalizes reads zeros, not
 * air.
 */
#ifndef P11_PROXY_STATE_H
#define P11_PROXY_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cryptoki.h"
#include "guard/guard_report.h"
#include "guard/guard_state.h"
#include "guard/key_cache.h"
#include "base/lock.h"
#include "pool/pool.h"
#include "statistics.h"

enum {
    SLOTS_MAX = 512, /* slots beyond are forwarded, unpooled */
    BUSY_PLACES = 64
};

/* What was learned of how a slot's token takes C_GenerateRandom. See manners.h. */
struct token_manners {
    size_t call_bytes;    /* what to ask for in one call, 0 = not asked yet */
    size_t refused_bytes; /* a call of this size was refused, 0 = none */
    size_t least_bytes;   /* known to be taken where something smaller was refused, 0 = none was */
    size_t long_bytes;    /* a call of this size lasted too long for its size, 0 = none did */
    unsigned long_in_a_row;  /* calls of call_bytes that lasted too long, since one that did not */
    unsigned short_in_a_row; /* and the other way round, while there is a long_bytes */
    size_t small_bytes;      /* the smallest size that was timed, */
    int64_t small_ns;        /* the shortest that a call of it lasted, */
    unsigned small_calls;    /* in so many calls, 2 meaning more as well, */
    int64_t larger_ns;       /* and how long the next larger size had lasted, 0 = there was none */
    int64_t last_ns;         /* how long the last call of about call_bytes lasted, 0 = there was none */
    int64_t retry_at_ns;     /* no fill before this time */
    int64_t pause_ns;        /* how long the last pause was */
    bool failing;            /* no size is taken at present */
};

enum pooling {
    POOLING_UNKNOWN, /* not asked yet whether the token has a generator */
    POOLING_OFF,
    POOLING_ON
};

/* What the health tests think of a slot's token. */
enum suspicion {
    SUSPICION_NONE,
    SUSPICION_ONE, /* the last bytes were bad; the next ones decide */
    SUSPICION_SURE /* twice in a row: no random bytes until C_Finalize */
};

struct slot {
    CK_SLOT_ID id;
    _Atomic(struct pool *) pool; /* NULL until the first small request */
    atomic_uint pooling;         /* enum pooling */
    atomic_uint generation;      /* moves on when the token's sessions may be gone; see session */
    atomic_uint suspect;         /* enum suspicion */
    atomic_uint operations;      /* that the application's sessions have open */
    struct lock manners_lock;
    struct token_manners manners; /* guarded by manners_lock */

    /* Guarded by state->lock: */
    unsigned sessions;             /* the application's, */
    CK_SESSION_HANDLE one_of_them; /* or one that was, to ask where it is */
    bool so_logged_in;             /* then no read-only session can be opened */
    unsigned hidden_banned;        /* calls under way that must not meet a session of ours */
    bool hidden_at_work;           /* the thread is in the target for this slot */
    CK_SESSION_HANDLE hidden;      /* our session, CK_INVALID_HANDLE if none */
    bool hidden_is_rw;
    int64_t hidden_used_ns;
    int64_t hidden_retry_ns; /* do not open one before */

    atomic_uint hungry; /* the thread should look at this slot's pool */
    /* The thread's own: */
    int64_t aside_ns;     /* how long it stood aside last time */
    uint64_t misses_seen; /* how many draws the pool had missed when it looked last */
};

/* One place a thread marks while it is in the target for a session; a hint, so threads may share one. */
struct busy_place {
    _Atomic CK_SESSION_HANDLE session;
} __attribute__((aligned(64)));

enum life {
    LIFE_DOWN,
    LIFE_STARTING, /* a thread is in C_Initialize */
    LIFE_UP,
    LIFE_STOPPING /* a thread is in C_Finalize */
};

enum thread_life {
    THREAD_NONE,
    THREAD_STARTS, /* thread_id is not known yet */
    THREAD_RUNS,
    THREAD_STOPS,
    THREAD_LEFT /* of its own accord; it is to be joined */
};

struct state {
    struct lock lock; /* guards what says so, and the session table's changes */
    atomic_uint life; /* enum life; changes under lock; waited on */
    _Atomic pid_t
        life_owner; /* the thread that starts or stops, so that it can be told from others */
    atomic_uint calls_inside;      /* random calls that are in the target; waited on */
    atomic_bool threads_permitted; /* read without the lock, as is the next */
    atomic_bool pools_permitted;

    _Atomic(struct session_index *) sessions;
    struct session_segment *session_segments; /* guarded by lock, as is the next */
    struct session *free_session;
    atomic_uint closings_begun, closings_ended; /* calls that close many sessions at once */
    _Atomic uint64_t hidden_bits; /* bit (handle % 64) is set for each session of ours */

    unsigned slot_count; /* guarded by lock; grows only, until finalize */
    struct slot slots[SLOTS_MAX];

    atomic_size_t pool_budget;           /* bytes that pools may still grow by */
    struct pool *spare_pools[SLOTS_MAX]; /* guarded by lock; kept for the next life */
    unsigned spare_count;

    atomic_uint thread;      /* enum thread_life */
    atomic_uint thread_bell; /* rung to wake the thread; waited on */
    atomic_uint thread_sleeps;
    atomic_uint thread_inside;   /* it is in the target; waited on */
    unsigned long thread_id;     /* pthread_t of it, once it runs, */
    atomic_ulong thread_runs_as; /* and as it says itself, while it runs our code */
    atomic_uint slot_bell;       /* rung when hidden_at_work ends; waited on */

    struct busy_place busy[BUSY_PLACES];

    _Atomic(struct statistics *) counters; /* NULL: none are kept; see counters.h */

    struct key_cache keys;
    struct reports reports;
    struct operation_states operation_states;
};

/* Never NULL: before the first C_Initialize it is an ordinary, zero one. */
extern struct state *state;

/* Puts state into memory that fork wipes, once. Any thread. Returns 0, -ENOMEM or -ENOTSUP; state is
 * then still the ordinary one, which works for all but pools. */
int state_prepare(void);

/* Unmaps it, when we are unloaded: nobody calls, and what it leads to is freed. */
void state_free(void);

/* True if state lies in memory that fork wipes. */
bool state_is_wiped_on_fork(void);

/* Our own slot of that id; a new one if it has none yet. NULL if all are taken. Expects state->lock held. */
struct slot *slot_of_locked(CK_SLOT_ID id);

/* The slot of that id if we know it, else NULL. Any thread. */
struct slot *slot_find(CK_SLOT_ID id);

/* Wipes a slot's pool, if it has one. Any thread, no lock held. */
void slot_drop_pool(struct slot *slot, enum pool_drop cause);

/* Wipes all pools. */
void state_drop_pools(enum pool_drop cause);

/* The same place for the same thread. */
static inline struct busy_place *busy_place(void)
{
    uintptr_t thread = (uintptr_t)__builtin_thread_pointer();
    return &state->busy[((uint64_t)thread * 0x9E3779B97F4A7C15ULL) >> 58];
}

#endif
