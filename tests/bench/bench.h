/* bench.h - what can be measured, for the program that measures. */
#ifndef P11_PROXY_BENCH_H
#define P11_PROXY_BENCH_H

#include <stdint.h>

#include "cryptoki.h"

/* Prints "measure: what: detail" and ends the process. */
void fail(const char *what, const char *detail) __attribute__((noreturn));

int64_t now_ns(void);
void rest_ns(int64_t duration_ns);

/* What an op works on. */
struct subject {
    const char *module;   /* its path, NULL for an op that needs none */
    long argument;        /* the number behind the op's name, 0 if none */
    CK_FUNCTION_LIST *fn; /* prepare() sets these, if there is one */
    CK_SLOT_ID slot;
    CK_SESSION_HANDLE session;
    CK_OBJECT_HANDLE key;
    struct policy *policy;
};

/* Something that can be measured. run() is timed, unless measure() says what one time came to. */
struct op {
    const char *name;
    const char *what;                         /* with N for the argument */
    void (*prepare)(struct subject *subject); /* NULL: there is nothing to prepare */
    void (*run)(struct subject *subject, long times);
    double (*measure)(struct subject *subject);
};

/* Ends with a row without a name. */
extern const struct op ops[];

#endif
