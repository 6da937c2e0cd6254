/* worker.h - inside a process that draws: what it has loaded, and how it draws. */
#ifndef P11_PROXY_WORKER_H
#define P11_PROXY_WORKER_H

#include "bench/bench.h"

struct order {
    unsigned figure;
    int64_t slice_ns;
    bool counts;
};

/* What the process has loaded and opened. */
extern struct own {
    CK_FUNCTION_LIST *list;
    CK_SLOT_ID slot;
    CK_SESSION_HANDLE session; /* open all the time */
    const struct load *load;
    struct drawn *drawn;
} own;

/* Draws as ordered, and adds the result to own.drawn. */
void draw_figure(const struct order *order);

/* Leaves a message that says why the process ends, and ends it. */
_Noreturn void give_up(const char *function, CK_RV rv);
_Noreturn void give_up_because(const char *text);

#endif
