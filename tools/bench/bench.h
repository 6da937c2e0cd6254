/* bench.h - what the parts of p11-proxy bench share: the load, the processes that draw, the plot. */
#ifndef P11_PROXY_BENCH_H
#define P11_PROXY_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench/latencies.h"
#include "base/message.h"
#include "token.h"

enum { THREADS_MOST = 256, LABEL_BYTES = 33 };

struct load {
    size_t size_bytes;
    unsigned threads;
    int64_t simulate_ns; /* that the target is to take longer for each call; 0: none */
};

/* What a process has drawn: in memory that it shares with us, which it alone writes. */
struct drawn {
    struct latencies latencies; /* of single draws, the clock's own cost taken off */
    double draws_per_s;         /* of all threads together, the mean over slices */
    uint64_t slices;
    char label[LABEL_BYTES]; /* of the token */
    struct message message;  /* why it ended before its time; "": it did not */
};

struct drawer {
    pid_t pid;
    int socket; /* a slice goes out, a byte comes back when it is over */
    struct drawn *drawn;
};

/* What a process is to load, all borrowed. */
struct drawer_setup {
    struct load load;
    const char *module;   /* draws come from here */
    const char *target;   /* the bare target, which simulate_ns slows down; may be the same */
    const char *reserved; /* for C_Initialize, or NULL */
};

/*
 * Starts a process that draws. False, with a message, if there can be none; what its module says
 * against it shows at the first slice.
 */
bool drawer_start(struct drawer *drawer, const struct drawer_setup *setup, struct message *message);

/*
 * Draws for slice_ns, the first half of it timing each draw, the second half not. Only what counts
 * is added to *drawn. False, with drawn->message, if the process could not.
 */
bool drawer_draw(const struct drawer *drawer, int64_t slice_ns, bool counts);

/* The share of all draws that the pool served in a process that draws through the proxy, 0 to 1; negative if the
 * proxy keeps no counters. */
double pool_share(pid_t pid);

/* Ends it. */
void drawer_stop(struct drawer *drawer);

/* Makes C_GenerateRandom of a loaded module, in this process, take delay_ns more, as a slower token
 * would: callers wait side by side. Call it once. False if its tables cannot be written for good. */
bool simulate_delay(const struct token_module *module, int64_t delay_ns);

/*
 * Shows on stderr how far it is, if that is a terminal with room for a bar. A signal that ends the
 * process removes the bar first.
 */
void progress_show(int64_t done_ns, int64_t all_ns);
void progress_end(void);

/* Whether gnuplot can be started, and path be written; asked before an hour is spent on measuring. If
 * not, the message says why. */
bool plot_is_possible(const char *path, struct message *message);

/* Draws both as an SVG file. 0, or -EIO with a message. */
int plot_write(const char *path, const struct load *load, const struct drawn *straight,
               const struct drawn *proxied, struct message *message);

#endif
