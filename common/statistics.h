/* statistics.h - the counters of one process that uses the proxy, laid out for another process to read.
 *
 * They lie in a memfd of the process, which finds its end with it: nothing to clean up, no path to
 * configure. Only the module writes, each number with one store and without a lock, so a reader sees every
 * number whole, though not all of one instant. All of them start at 0 with each C_Initialize, and a forked
 * child has none before its own. Nothing in here is secret: no byte, key, label of a key, PIN or handle.
 *
 * A change of the layout changes STATISTICS_LAYOUT.
 */
#ifndef P11_PROXY_STATISTICS_H
#define P11_PROXY_STATISTICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define STATISTICS_NAME  "p11-proxy-statistics" /* of the memfd */
#define STATISTICS_MAGIC "p11-proxy stats"

enum {
    STATISTICS_LAYOUT = 1,
    STATISTICS_SLOTS = 512,
    STATISTICS_STRIPES = 64,
    STATISTICS_DROPS = 16, /* places for causes; enum pool_drop says which is which */
    STATISTICS_SIZES = 25, /* to 2^24 bytes, the largest pool */
    STATISTICS_MECHANISMS = 512,
    STATISTICS_REFUSALS = 256,
    STATISTICS_PATH_BYTES = 512, /* longer texts are cut; all end with a NUL */
    STATISTICS_RULE_BYTES = 128,
    STATISTICS_LABEL_BYTES = 40,
    STATISTICS_PAGE_BYTES = 4096
};

typedef _Atomic uint64_t statistic;

/* What a pool tells of itself. Calls are C_GenerateRandom, as the application made them. */
struct statistics_pool {
    statistic draws; /* calls that it served, without those that the stripes below count */
    statistic drawn_bytes;
    statistic missed; /* small calls that it could not serve, and that began a fill */
    statistic fills;  /* that put bytes into it */
    statistic filled_bytes;
    statistic expired_bytes; /* became too old */
    statistic dropped_bytes; /* were thrown away with a drop */
    statistic alarms;        /* fills that failed the health test */
    statistic drops[STATISTICS_DROPS];
    statistic held_bytes;     /* now, without the stripes */
    statistic level_bytes;    /* that demand asks it to hold, now */
    statistic capacity_bytes; /* that it may hold at most; 0: there is no pool */
    statistic locked;         /* 1: kept out of swap */
    statistic droppable;      /* 1: has a page that tells of a restored checkpoint */

    /* Each is written by the one processor that draws from it. */
    struct __attribute__((aligned(64))) statistics_stripe {
        statistic draws;
        statistic drawn_bytes;
        statistic held_bytes;
    } stripes[STATISTICS_STRIPES];
};

/* Calls that waited for the token: the application's, and the proxy's own into the target. */
struct statistics_calls {
    statistic token_draws; /* the application's that the token answered with CKR_OK, its answer */
    statistic token_bytes;
    statistic failed_draws; /* and those that failed */
    statistic calls;        /* that reached the target, fills included */
    statistic called_bytes; /* that they asked for */
    statistic failed_calls;
};

/* How a token is trusted; see statistics_slot.suspect. */
enum statistics_suspect {
    STATISTICS_TRUSTED,
    STATISTICS_SUSPECT, /* the last bytes failed the health test */
    STATISTICS_LATCHED  /* twice in a row: no random bytes until C_Finalize */
};

struct statistics_slot {
    statistic id;
    char token[STATISTICS_LABEL_BYTES]; /* its label, "" as long as it was not asked for */
    struct statistics_calls calls;
    statistic chunk_bytes; /* what one call of a fill asks for, as learned */
    /* The shortest that fills of more than 2^(i-1) and up to 2^i bytes lasted; 0: there was none. */
    statistic least_ns[STATISTICS_SIZES];
    statistic suspect; /* enum statistics_suspect */
    struct statistics_pool pool;
} __attribute__((aligned(STATISTICS_PAGE_BYTES)));

/* Calls of functions that take a mechanism and were answered CKR_OK, whoever asked. */
struct statistics_mechanism {
    statistic type_plus_1; /* 0: the place is free */
    statistic calls;
};

/* What a rule of the policy refused; with audit, would have refused. */
struct statistics_refusal {
    statistic mechanism; /* STATISTICS_NO_MECHANISM: a key, whatever it was for */
    statistic times;
    statistic line;
    char file[STATISTICS_PATH_BYTES];
    char rule[STATISTICS_RULE_BYTES]; /* as it is written there */
};

#define STATISTICS_NO_MECHANISM UINT64_MAX

enum statistics_flag {
    STATISTICS_POOL = 1 << 0,       /* pools are permitted, and memory is wiped on fork */
    STATISTICS_THREAD = 1 << 1,     /* a background thread may fill them */
    STATISTICS_MIX_KERNEL = 1 << 2, /* x-pool-mix: kernel */
    STATISTICS_POLICY = 1 << 3,     /* algorithms are refused */
    STATISTICS_AUDIT = 1 << 4       /* or would be */
};

struct statistics {
    char magic[16];
    uint32_t layout; /* both written before any number, and last of all magic */
    uint32_t size_bytes;
    statistic
        pid; /* in its own PID namespace: a forked child inherits the memfd, not the counters */
    statistic started_s; /* C_Initialize, in seconds since 1970 */
    statistic flags;     /* enum statistics_flag */
    char version[32];
    char module[STATISTICS_PATH_BYTES]; /* the proxy's own file */
    char target[STATISTICS_PATH_BYTES];

    struct statistics_calls elsewhere; /* for sessions whose slot is not known */
    statistic slot_count;              /* so many of slots are in use */
    statistic refused;                 /* in all, also what has no place in refusals */
    statistic refusal_count;
    statistic mechanisms_lost; /* calls with mechanisms that found no place */

    struct statistics_mechanism mechanisms[STATISTICS_MECHANISMS]
        __attribute__((aligned(STATISTICS_PAGE_BYTES)));
    struct statistics_refusal refusals[STATISTICS_REFUSALS]
        __attribute__((aligned(STATISTICS_PAGE_BYTES)));
    struct statistics_slot slots[STATISTICS_SLOTS];
};

/* One number, whatever goes on beside. */
static inline uint64_t statistic_read(const statistic *s)
{
    return atomic_load_explicit(s, memory_order_relaxed);
}

static inline void statistic_set(statistic *s, uint64_t value)
{
    atomic_store_explicit(s, value, memory_order_relaxed);
}

static inline void statistic_add(statistic *s, uint64_t more)
{
    atomic_fetch_add_explicit(s, more, memory_order_relaxed);
}

/* The calls of a slot that its pool served, and their bytes, stripes and all. */
void statistics_served(const struct statistics_pool *pool, uint64_t *draws, uint64_t *bytes);

/* What the pool holds now, stripes and all. */
uint64_t statistics_held(const struct statistics_pool *pool);

/* Where a call of len_bytes counts in least_ns. */
unsigned statistics_size(uint64_t len_bytes);

/*
 * What a draw of len_bytes straight from the slot's token would last, in ns, by the fills that were timed. One
 * that was longer and yet took less time says the same of shorter ones. Below the shortest fill, two sizes give
 * a price for the call and one for each byte; one size is all that is known of a token that is asked in that size
 * only, and then a shorter call is taken to cost as much. 0: not known.
 */
uint64_t statistics_call_ns(const struct statistics_slot *slot, uint64_t len_bytes);

/* "login", "seed", ... for an enum pool_drop; NULL for a place that has no cause. */
const char *statistics_drop_word(unsigned cause);

#endif
