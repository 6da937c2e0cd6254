/* repeat.c - does one thing so many times, for programs that count what that takes: callgrind, strace.
 *
 *     repeat [--warm] OP[:ARGUMENT] TIMES [MODULE]
 *
 * It says when it begins and ends, and if the slow target is behind the proxy, with P11_SLOW_CALLS set, how often
 * that was asked for random bytes meanwhile. --warm, for draws: it begins when the pool holds so much that it will
 * not be low.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum {
    GROWING_BYTES =
        1024, /* the largest draws that a pool answers: they empty it, and that makes it grow */
    UNPUBLISHED_BYTES = 64 * 1024, /* the target has made them, perhaps the pool has them not yet */
    POLL_NS = 1000 * 1000,
    POLLS = 2000,
    SETTLED_POLLS = 200, /* the filler has nothing to do any more, and no lock to share */
    ROUNDS = 20
};

/* All that counts happens in here, and callgrind collects nothing elsewhere. */
void counted(const struct op *op, struct subject *s, long times);
__attribute__((noinline)) void counted(const struct op *op, struct subject *s, long times)
{
    op->run(s, times);
    __asm__ volatile(
        "" ::
            : "memory"); /* no tail call: this function has to end after what it calls */
}

/* Draws until the pool has grown, then waits until the target has made more than was drawn, by enough, and rests. */
static void warm_up(const struct op *op, const struct subject *s, long times)
{
    struct subject growing = *s;
    growing.argument = GROWING_BYTES;
    uint64_t wanted = 4 * (uint64_t)(times * s->argument) + UNPUBLISHED_BYTES;
    uint64_t drawn = target_counts().given; /* by those before us, if the file is old */
    long draws = (long)(wanted / GROWING_BYTES) + 1;
    for (int round = 0; round < ROUNDS; round++) {
        op->run(&growing, draws);
        drawn += (uint64_t)draws * GROWING_BYTES;
        uint64_t last = 0;
        for (int i = 0, same = 0; i < POLLS; i++, rest_ns(POLL_NS)) {
            uint64_t given = target_counts().given;
            same = given == last ? same + 1 : 0;
            last = given;
            if (given >= drawn + wanted && same >= SETTLED_POLLS)
                return;
        }
    }
    fail("the pool never holds enough", "is x-pool-size large enough?");
}

int main(int argc, char **argv)
{
    bool warm = argc > 1 && strcmp(argv[1], "--warm") == 0;
    char **words = argv + warm;
    if (argc - warm < 3) {
        fprintf(stderr, "usage: repeat [--warm] OP[:ARGUMENT] TIMES [MODULE]\n");
        print_ops();
        return EXIT_FAILURE;
    }
    struct subject subject = {.module = words[3]};
    long times = strtol(words[2], NULL, 10);
    const struct op *op = find_op(words[1], &subject.argument);
    op->prepare(&subject);
    if (warm)
        warm_up(op, &subject, times);
    printf("begin\n");
    fflush(stdout);
    struct target_counts before = target_counts();
    counted(op, &subject, times);
    struct target_counts after = target_counts();
    printf("end, target calls %" PRIu64 ", by this thread %" PRIu64 "\n",
           after.calls - before.calls, after.main_calls - before.main_calls);
    fflush(stdout);
    return EXIT_SUCCESS;
}
