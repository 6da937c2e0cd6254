/* bench.h - what the parts of p11-proxy bench share: the request, the figures, and what a process draws. */
#ifndef P11_PROXY_BENCH_H
#define P11_PROXY_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* What all rounds of one way have drawn. */
struct drawn {
    struct measured figures[FIGURES]; /* without calls: the token does not permit it */
    struct times times;               /* of further draws of the load, less what the clock costs */
    uint64_t pool_draws;              /* of the load by the proxy's counters, and so is the next */
    uint64_t all_draws;               /* 0 without counters */
    char label[LABEL_BYTES];          /* of the token */
    struct message message;           /* why a round ended early; "": it did not */
};

/* What is measured of one way. All is borrowed. */
struct subject {
    enum way way;
    const struct request *request;
    const struct config *config;
    const char *module;
    struct drawn *drawn; /* in memory that children share */
};

/* Measures each figure once, in a process of its own, and adds that to *drawn. False, with drawn->message, if
 * that process ended early. */
bool measure_round(struct subject *subject);

/* Prints them as text or as JSON. */
void results_print(const struct request *request, const struct drawn *const drawn[WAYS]);

/* Writes a program for gnuplot that draws the latencies of both. False, with errno, if it cannot be written. */
bool plot_write(const struct request *request, const struct drawn *const drawn[WAYS]);

/* Makes C_GenerateRandom of a loaded module, in this process, take delay_ns more, as a slower token
 * would: callers wait at the same time. Call it once. False if its tables cannot be written. */
bool simulate_delay(const struct token_module *module, int64_t delay_ns);

#endif
