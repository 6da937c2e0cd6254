/* statistics.h - the counters of one process that uses the proxy, laid out for another process to read.
 *
 * They lie in a memfd of the process, and end with it. Only the module writes, each number
 * at once; a reader takes no lock, so it sees each number whole, but not all of one instant. All numbers
 * start at 0 with each C_Initialize; a forked child has none before its own. They hold no secret: no
 * random byte, key, PIN or handle.
 *
 * A change of the layout changes STATISTICS_LAYOUT. A row in statistics.def is such a change.
 */
#ifndef P11_PROXY_STATISTICS_H
#define P11_PROXY_STATISTICS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/pool.h"

#define STATISTICS_NAME  "p11-proxy-statistics" /* of the memfd */
#define STATISTICS_MAGIC "p11-proxy stats"

enum {
    STATISTICS_LAYOUT = 4,
    STATISTICS_SLOTS = 512,
    STATISTICS_REFUSALS = 256,
    STATISTICS_PATH_BYTES = 512, /* longer texts are cut; all end with a NUL */
    STATISTICS_RULE_BYTES = 128,
    STATISTICS_LABEL_BYTES = 40,
    STATISTICS_PAGE_BYTES = 4096
};

typedef _Atomic uint64_t statistic;

struct statistics_slot {
    statistic id;
    char token[STATISTICS_LABEL_BYTES]; /* its label, "" until it is known */
#define SLOT(name, ...) statistic name;
#include "statistics.def"
    struct pool_counts pool; /* written by the pool */
} __attribute__((aligned(STATISTICS_PAGE_BYTES)));

/* What a rule of the policy refused; with audit, would have refused. Two refusals differ in more than times. */
struct statistics_refusal {
    statistic mechanism; /* NO_MECHANISM: a key, whatever it was for */
    statistic line;
    char file[STATISTICS_PATH_BYTES];
    char rule[STATISTICS_RULE_BYTES]; /* as it is written there */
    statistic times;
};

enum statistics_flag {
    STATISTICS_POOL = 1 << 0,       /* pools are permitted, and memory is wiped on fork */
    STATISTICS_THREAD = 1 << 1,     /* a background thread may fill them */
    STATISTICS_MIX_KERNEL = 1 << 2, /* x-pool-mix: kernel */
    STATISTICS_POLICY = 1 << 3,     /* algorithms are refused */
    STATISTICS_AUDIT = 1 << 4       /* or would be */
};

struct statistics {
    /* magic, layout and size_bytes stay where they are in every layout. magic is written last. */
    char magic[16];
    uint32_t layout;
    uint32_t size_bytes;
    statistic pid;   /* in its own PID namespace: a forked child inherits the memfd */
    statistic flags; /* enum statistics_flag */
    char version[32];
    char module[STATISTICS_PATH_BYTES]; /* the proxy's own file */
    char target[STATISTICS_PATH_BYTES];

#define PROCESS(name, ...) statistic name;
#include "statistics.def"
    statistic slot_count; /* so many of slots are in use */
    statistic refusal_count;

    struct statistics_refusal refusals[STATISTICS_REFUSALS]
        __attribute__((aligned(STATISTICS_PAGE_BYTES)));
    struct statistics_slot slots[STATISTICS_SLOTS];
};

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

/* For readers. */

enum statistics_type { STATISTICS_COUNTER, STATISTICS_GAUGE, STATISTICS_FLAG, STATISTICS_HEALTH };

/* A row of statistics.def. */
struct statistics_row {
    const char *name;
    enum statistics_type type;
    const char *unit;
    const char *line;
    const char *help;
    size_t offset; /* in struct statistics_slot or statistics */
};

/* Each ends with a row that has no name. */
extern const struct statistics_row statistics_slot_rows[], statistics_process_rows[];

extern const char *const statistics_drop_words[POOL_DROP_CAUSES];

/* The number of a row in what its offset counts from. */
static inline uint64_t statistics_number(const struct statistics_row *row, const void *of)
{
    return statistic_read((const statistic *)((const char *)of + row->offset));
}

/* In a copy: computes what the module leaves at 0. */
void statistics_add_up(struct statistics_slot *slot);

#endif
