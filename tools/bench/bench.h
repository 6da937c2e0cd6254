/* bench.h - what the parts of p11-proxy bench share: the request, the figures, the processes that draw. */
#ifndef P11_PROXY_BENCH_H
#define P11_PROXY_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/message.h"
#include "bench/times.h"
#include "token.h"
#include "tool.h"

enum { THREADS_MOST = 256, LABEL_BYTES = 33 };

struct request {
    unsigned long size_bytes, threads; /* of the load */
    unsigned long seconds;
    int64_t simulate_ns; /* that the target is to take longer for each call; 0: none */
    const char *plot;    /* NULL: none */
    struct common_options common;
};

/* What is measured: the load that was asked for, and figures that are the same for each token. */
enum operation {
    OPERATION_DRAW,  /* draws one after another */
    OPERATION_CYCLE, /* opens a session, draws, closes it */
    OPERATION_FIRST, /* the same, of which the draw alone counts */
    OPERATION_BURST  /* draws after a pause */
};

struct figure {
    const char *name; /* of its line, and in JSON */
    const char *key;
    enum operation operation;
    size_t size_bytes; /* 0: that of the load, and so are the threads */
    unsigned threads;
};

enum { FIGURE_LOAD, FIGURE_SMALL = 2, FIGURES = 10 };
extern const struct figure figures[FIGURES];

/* Calls of one figure. */
struct measured {
    uint64_t calls;
    int64_t spent_ns; /* in them, by all threads together */
    double least_ns;  /* of a call, on average over the quickest batch of them; 0: not known */
};

/* Straight to the target, or through the proxy. */
enum way { STRAIGHT, PROXIED, WAYS };

/* What a process has drawn: in memory that it shares with the parent, and that it alone writes. */
struct drawn {
    struct measured figures[FIGURES];
    struct times times;      /* of further draws of the load, less what the clock costs */
    char label[LABEL_BYTES]; /* of the token */
    struct message message;  /* why it ended early; "": it did not */
};

struct worker {
    pid_t pid;  /* 0: none was started */
    int socket; /* an order goes out, a byte comes back when it is done */
    const char *module;
    struct drawn *drawn;
};

struct results {
    const struct request *request;
    const struct drawn *drawn[WAYS];
    uint64_t pool_draws; /* of the load through the proxy, and so is the next */
    uint64_t all_draws;  /* 0 without counters */
};

/* Prints them as text or as JSON. */
void results_print(const struct results *results);

/*
 * Starts a process that draws. False, with a message, if there can be none. A fault of its module shows
 * with the first order.
 */
bool worker_start(struct worker *worker, enum way way, const struct request *request,
                  const struct config *config, struct message *message);

/*
 * Has it measure a figure for slice_ns, and add the result to *drawn if that counts. A figure that the
 * token does not permit, for lack of sessions, is left out. False, with drawn->message, if it ended.
 */
bool worker_measure(const struct worker *worker, unsigned figure, int64_t slice_ns, bool counts);

/* Ends it, if it was started. */
void worker_stop(struct worker *worker);

/* Makes C_GenerateRandom of a loaded module, in this process, take delay_ns more, as a slower token
 * would: callers wait at the same time. Call it once. False if its tables cannot be written. */
bool simulate_delay(const struct token_module *module, int64_t delay_ns);

/* Whether gnuplot can be started, and path be written; asked before anything is measured. If not, the
 * message says why. */
bool plot_is_possible(const char *path, struct message *message);

/* Draws the latencies of both as an SVG file. False with a message. */
bool plot_write(const struct results *results, struct message *message);

#endif
