/* bench.h - what the parts of p11-proxy bench share: the request, the figures, and what was measured. */
#ifndef P11_PROXY_BENCH_H
#define P11_PROXY_BENCH_H

#include "tool.h"

enum { THREADS_MOST = 256 };

/* What is asked for. */
extern struct bench {
    struct config *config;      /* until the program ends */
    char module_path[PATH_MAX]; /* of the proxy, absolute */
    unsigned long seconds;
    const char *plot; /* a path; NULL: none */
} bench;

enum operation {
    OPERATION_EACH,  /* draws that are timed singly */
    OPERATION_DRAW,  /* draws one after another */
    OPERATION_CYCLE, /* opens a session, draws, closes it */
    OPERATION_BURST  /* draws after a pause */
};

/* The first is the load that was asked for, the others are the same for each token. */
enum { FIGURE_LOAD, FIGURES = 7 };

extern struct figure {
    enum operation operation;
    const char *key, *name; /* in JSON, and of its line */
    unsigned long size_bytes, threads;
} figures[FIGURES];

/* Durations are counted by their size, in so many steps for each power of two: a step is 0.7 %. */
enum { TIMES_STEPS = 100, TIMES_PLACES = 64 * TIMES_STEPS };

/* Straight to the target, or through the proxy. */
enum way { STRAIGHT, PROXIED, WAYS };

/* What all rounds of one way have measured. */
struct drawn {
    struct measured {
        uint64_t calls;   /* 0: the token does not permit it */
        int64_t spent_ns; /* in them, by all threads together */
    } figures[FIGURES];
    uint64_t times[TIMES_PLACES]; /* of FIGURE_LOAD: how many calls there are of each duration */
    char label[33];               /* of the token */
    struct message message;       /* why a round ended early */
};

/* Measures each figure once, in a process of its own, and adds that to *drawn, in memory that it shares. False,
 * with drawn->message, if that process ended early. */
bool measure_round(enum way way, struct drawn *drawn);

#endif
