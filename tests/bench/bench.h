/* bench.h - what the programs that measure have in common: time, medians, modules, and the things measured. */
#ifndef P11_PROXY_BENCH_H
#define P11_PROXY_BENCH_H

#include <stdint.h>

#include "cryptoki.h"

/* Prints "program: what: detail" and ends the process. */
void fail(const char *what, const char *detail) __attribute__((noreturn));

/* Fails unless a PKCS#11 function answered CKR_OK. */
void must(const char *function, CK_RV rv);

int64_t now_ns(void);
void rest_ns(int64_t duration_ns);

/* Sorts the values. */
double median_of(double *values, int count);

/* The function list of a module; the module stays loaded. */
CK_FUNCTION_LIST *load_module(const char *path);

/* C_Initialize as threaded programs call it. */
void initialize(CK_FUNCTION_LIST *fn);

/* The index-th slot whose token has all the flags. Fails if there is none. */
CK_SLOT_ID find_slot(CK_FUNCTION_LIST *fn, CK_FLAGS wanted, long index);

CK_SESSION_HANDLE open_session(CK_FUNCTION_LIST *fn, CK_SLOT_ID slot);

/* What one draw costs at least. See ops_peers.c. */
void draw_from_floor(uint8_t *to, size_t len_bytes, long times);

/* What the slow target counts in the file that P11_SLOW_CALLS names; all 0 if none is named. */
struct target_counts {
    uint64_t calls;      /* of C_GenerateRandom */
    uint64_t bytes;      /* asked for, */
    uint64_t given;      /* and given */
    uint64_t main_calls; /* by the thread that the process began with */
};
struct target_counts target_counts(void);

/* What an op works on. */
struct subject {
    const char *module;   /* its path, NULL for an op that needs none */
    long argument;        /* the number behind the op's name, 0 if none */
    CK_FUNCTION_LIST *fn; /* prepare() sets what it needs of these */
    CK_SESSION_HANDLE session;
    CK_SESSION_HANDLE *sessions;
    long count;
};

/* Opens count sessions more. */
void open_sessions(struct subject *subject, CK_SLOT_ID slot, long count);

/* Something that can be measured. run() is timed, unless measure() says what one time came to. */
struct op {
    const char *name;
    const char *what; /* with N for the argument */
    void (*prepare)(struct subject *subject);
    void (*run)(struct subject *subject, long times);
    double (*measure)(struct subject *subject, long times);
    long times_most;    /* in one go, 0 = as many as one likes */
    int64_t rest_ns;    /* to leave it alone before each go */
    long warm_up_times; /* before the first go */
};

extern const struct op ops_random[], ops_threads[], ops_peers[], ops_calls[], ops_lives[];

/* Takes "NAME" or "NAME:ARGUMENT" apart. Fails, and says what there is, if there is no such op. */
const struct op *find_op(const char *text, long *argument);

/* All ops, one a line, as help. */
void print_ops(void);

#endif
