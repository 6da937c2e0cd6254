/* measure.c - does one thing so many times, and says how long one took; also for programs that count what that
 * takes: callgrind, strace.
 *
 *     measure [--warm] OP[:ARGUMENT] TIMES [MODULE]
 *
 * It says when it begins and ends, and if the slow target is behind the proxy, with P11_SLOW_CALLS set, how often
 * that was asked for random bytes meanwhile. --warm, for draws: it begins when the pool holds so much that it will
 * not be low.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* What the slow target counts in the file that P11_SLOW_CALLS names, as it begins. */
static struct {
    uint64_t calls; /* of C_GenerateRandom */
    uint64_t asked_bytes;
    uint64_t given_bytes;
} uncounted;
static const volatile __typeof__(uncounted) *target = &uncounted;

static void map_counts(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || ftruncate(fd, sysconf(_SC_PAGESIZE)) != 0)
        fail(path, strerror(errno));
    void *page = mmap(NULL, sizeof *target, PROT_READ, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        fail(path, strerror(errno));
    close(fd);
    target = page;
}

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
    uint64_t drawn = target->given_bytes; /* by those before us, if the file is old */
    long draws = (long)(wanted / GROWING_BYTES) + 1;
    for (int round = 0; round < ROUNDS; round++) {
        op->run(&growing, draws);
        drawn += (uint64_t)draws * GROWING_BYTES;
        uint64_t last = 0;
        for (int i = 0, same = 0; i < POLLS; i++, rest_ns(POLL_NS)) {
            uint64_t given = target->given_bytes;
            same = given == last ? same + 1 : 0;
            last = given;
            if (given >= drawn + wanted && same >= SETTLED_POLLS)
                return;
        }
    }
    fail("the pool never holds enough", "is x-pool-size large enough?");
}

static const struct op *find_op(const char *text, long *argument)
{
    size_t len = strcspn(text, ":");
    *argument = text[len] == ':' ? strtol(text + len + 1, NULL, 10) : 0;
    for (const struct op *op = ops; op->name != NULL; op++)
        if (strlen(op->name) == len && strncmp(op->name, text, len) == 0)
            return op;
    fail("there is no such op", text);
}

int main(int argc, char **argv)
{
    bool warm = argc > 1 && strcmp(argv[1], "--warm") == 0;
    char **words = argv + warm;
    if (argc - warm < 3) {
        fprintf(stderr, "usage: measure [--warm] OP[:ARGUMENT] TIMES [MODULE]\n");
        for (const struct op *op = ops; op->name != NULL; op++)
            fprintf(stderr, "  %-14s %s\n", op->name, op->what);
        return EXIT_FAILURE;
    }
    struct subject subject = {.module = words[3]};
    long times = strtol(words[2], NULL, 10);
    const struct op *op = find_op(words[1], &subject.argument);
    if (getenv("P11_SLOW_CALLS") != NULL)
        map_counts(getenv("P11_SLOW_CALLS"));
    if (op->prepare != NULL)
        op->prepare(&subject);
    if (warm)
        warm_up(op, &subject, times);
    if (op->measure != NULL) {
        printf("value %.3f\n", op->measure(&subject));
        return EXIT_SUCCESS;
    }
    printf("begin\n");
    fflush(stdout);
    uint64_t before = target->calls;
    int64_t begin_ns = now_ns();
    counted(op, &subject, times);
    int64_t took_ns = now_ns() - begin_ns;
    printf("end, target calls %" PRIu64 "\nvalue %.3f\n", target->calls - before,
           (double)took_ns / (double)times);
    fflush(stdout); /* before the module ends, which is not to be counted */
    return EXIT_SUCCESS;
}
