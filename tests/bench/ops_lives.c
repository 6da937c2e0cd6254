/* ops_lives.c - what a process pays once: each time is measured in a new one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { WARM_DRAWS = 20000, DRAW_BYTES = 32 };

static const int64_t FILL_NS = 100 * 1000 * 1000;

static void prepare_nothing(struct subject *s)
{
    (void)s;
}

/* The mean of what so many children, one after the other, came to. */
static double in_children(struct subject *s, long times, double (*life)(struct subject *))
{
    double sum = 0;
    for (long i = 0; i < times; i++) {
        double value;
        int ends[2];
        if (pipe(ends) != 0)
            fail("cannot start a process", "no pipe");
        pid_t child = fork();
        if (child == 0) {
            value = life(s);
            _exit(write(ends[1], &value, sizeof value) == sizeof value ? 0 : 1);
        }
        close(ends[1]);
        if (read(ends[0], &value, sizeof value) != sizeof value)
            exit(EXIT_FAILURE); /* it has said why */
        close(ends[0]);
        waitpid(child, NULL, 0);
        sum += value;
    }
    return sum / (double)times;
}

static double start_and_end(struct subject *s)
{
    int64_t begin_ns = now_ns();
    CK_FUNCTION_LIST *fn = load_module(s->module);
    initialize(fn);
    must("C_Finalize", fn->C_Finalize(NULL));
    return (double)(now_ns() - begin_ns);
}

static void start_here(struct subject *s, long times)
{
    for (long i = 0; i < times; i++)
        start_and_end(s);
}

static double first_draw(struct subject *s)
{
    CK_BYTE bytes[DRAW_BYTES];
    CK_FUNCTION_LIST *fn = load_module(s->module);
    initialize(fn);
    CK_SESSION_HANDLE session = open_session(fn, find_slot(fn, CKF_RNG | CKF_TOKEN_INITIALIZED, 0));
    int64_t begin_ns = now_ns();
    must("C_GenerateRandom", fn->C_GenerateRandom(session, bytes, sizeof bytes));
    return (double)(now_ns() - begin_ns);
}

/* What the file says of itself in a line that begins with that key. */
static double kib_of(const char *path, const char *key)
{
    char line[256];
    double kib = -1;
    FILE *file = fopen(path, "re");
    while (file != NULL && kib < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            kib = strtod(line + strlen(key), NULL);
    if (kib < 0)
        fail(path, "it does not say how much memory there is");
    fclose(file);
    return kib;
}

static void draw_often(struct subject *s)
{
    CK_BYTE bytes[DRAW_BYTES];
    CK_FUNCTION_LIST *fn = load_module(s->module);
    initialize(fn);
    CK_SESSION_HANDLE session = open_session(fn, find_slot(fn, CKF_RNG | CKF_TOKEN_INITIALIZED, 0));
    for (int i = 0; i < WARM_DRAWS; i++)
        must("C_GenerateRandom", fn->C_GenerateRandom(session, bytes, sizeof bytes));
    rest_ns(FILL_NS);
}

static double memory(struct subject *s)
{
    draw_often(s);
    return kib_of("/proc/self/status", "VmRSS:");
}

static double written(struct subject *s)
{
    draw_often(s);
    return kib_of("/proc/self/smaps_rollup", "Private_Dirty:");
}

static double start_in_children(struct subject *s, long times)
{
    return in_children(s, times, start_and_end);
}

static double first_in_children(struct subject *s, long times)
{
    return in_children(s, times, first_draw);
}

static double memory_in_children(struct subject *s, long times)
{
    return in_children(s, times, memory);
}

static double written_in_children(struct subject *s, long times)
{
    return in_children(s, times, written);
}

const struct op ops_lives[] = {{"start", "dlopen, C_Initialize, C_Finalize in a new process",
                                prepare_nothing, start_here, start_in_children, 5, 0, 1},
                               {"first", "the first draw of 32 bytes in a new process",
                                prepare_nothing, NULL, first_in_children, 3, 0, 1},
                               {"memory", "KiB resident in a process that drew 20,000 times",
                                prepare_nothing, NULL, memory_in_children, 1, 0, 1},
                               {"written", "the same: KiB written to, that no other process has",
                                prepare_nothing, NULL, written_in_children, 1, 0, 1},
                               {0}};
