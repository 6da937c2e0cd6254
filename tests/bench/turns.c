/* turns.c - how long things take, side by side: one process for each, which take turns.
 *
 *     turns [--rounds N] NAME=OP[:ARGUMENT][@MODULE[,VARIABLE=VALUE]...]...
 *
 * Whatever else the machine does meets all of them alike. Prints for each its name, the median, and the least and the
 * most of all rounds, with tabs between: nanoseconds for one time, unless the op says otherwise.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { ROUNDS = 15, ROUNDS_MOST = 999, SUBJECTS_MOST = 64 };

static const int64_t ROUND_NS = 20 * 1000 * 1000;
static const int64_t AWAKE_NS = 2 * 1000 * 1000;

struct worker {
    const char *name;
    const struct op *op;
    pid_t pid;
    int socket; /* how many times goes out, what one time came to comes back */
    long times;
    double values[ROUNDS_MOST];
};

static double go(const struct op *op, struct subject *s, long times)
{
    int64_t begin_ns = now_ns() + AWAKE_NS;
    while (now_ns() < begin_ns)
        ; /* a process that was just woken is slow at anything */
    if (op->measure != NULL)
        return op->measure(s, times);
    begin_ns = now_ns();
    op->run(s, times);
    return (double)(now_ns() - begin_ns) / (double)times;
}

static void work(const struct op *op, struct subject *s, int orders)
{
    long times;
    op->prepare(s);
    while (read(orders, &times, sizeof times) == sizeof times) {
        double value = go(op, s, times);
        if (write(orders, &value, sizeof value) != sizeof value)
            fail("cannot answer", "the parent is gone");
    }
    exit(EXIT_SUCCESS);
}

/* The words behind the '@': the module, and what is to be set for it. */
static const char *take_environment(char *words)
{
    char *rest = NULL;
    const char *module = words != NULL ? strtok_r(words, ",", &rest) : NULL;
    for (char *word; words != NULL && (word = strtok_r(NULL, ",", &rest)) != NULL;)
        if (putenv(word) != 0)
            fail("cannot set", word);
    return module;
}

static void start(struct worker *w, char *text)
{
    struct subject subject = {0};
    int ends[2];
    char *op = strchr(text, '=');
    if (op == NULL)
        fail("no NAME= before", text);
    *op++ = '\0';
    char *module = strchr(op, '@');
    if (module != NULL)
        *module++ = '\0';
    w->name = text;
    w->op = find_op(op, &subject.argument);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        fail("cannot start a process", "no socket pair");
    fflush(stdout);
    w->pid = fork();
    if (w->pid < 0)
        fail("cannot start a process", "fork failed");
    if (w->pid == 0) {
        subject.module = take_environment(module);
        work(w->op, &subject, ends[1]);
    }
    close(ends[1]);
    w->socket = ends[0];
}

static double ask(const struct worker *w, long times)
{
    double value;
    if (w->op->rest_ns != 0)
        rest_ns(w->op->rest_ns);
    if (write(w->socket, &times, sizeof times) != sizeof times ||
        read(w->socket, &value, sizeof value) != sizeof value)
        exit(EXIT_FAILURE); /* it has said why */
    return value;
}

/* How often fits into a round, by what a few times take. */
static long times_in_a_round(const struct worker *w)
{
    long times = 1;
    int64_t begin_ns = now_ns();
    double one_ns = ask(w, 1);
    if (w->op->measure != NULL) /* which need not be a time */
        return (long)(ROUND_NS / (now_ns() - begin_ns)) + 1;
    while (times < 1000 && one_ns * (double)times < (double)ROUND_NS / 10) {
        times *= 10;
        one_ns = ask(w, times);
    }
    return (long)((double)ROUND_NS / one_ns) + 1;
}

static void warm_up(struct worker *w)
{
    const struct op *op = w->op;
    w->times = op->times_most;
    if (op->measure == NULL && op->warm_up_times != 0)
        ask(w, op->warm_up_times);
    for (long done = 0; op->measure != NULL && done < op->warm_up_times; done += op->times_most)
        ask(w, op->times_most);
    if (w->times == 0)
        w->times = times_in_a_round(w);
}

static void stop(const struct worker *w)
{
    int status;
    shutdown(w->socket, SHUT_WR); /* its copies in later workers do not count */
    if (waitpid(w->pid, &status, 0) != w->pid || status != 0)
        fail("a process did not end well", w->name);
    close(w->socket);
}

int main(int argc, char **argv)
{
    static struct worker workers[SUBJECTS_MOST];
    int rounds = ROUNDS;
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "--rounds") == 0) {
        rounds = atoi(argv[2]);
        first = 3;
    }
    int count = argc - first;
    if (count < 1 || count > SUBJECTS_MOST || rounds < 1 || rounds > ROUNDS_MOST) {
        fprintf(stderr,
                "usage: turns [--rounds N] NAME=OP[:ARGUMENT][@MODULE[,VARIABLE=VALUE]...]...\n");
        print_ops();
        return EXIT_FAILURE;
    }
    for (int i = 0; i < count; i++) {
        start(&workers[i], argv[first + i]);
        warm_up(&workers[i]);
    }
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count; i++)
            workers[i].values[round] = ask(&workers[i], workers[i].times);
    for (int i = 0; i < count; i++) {
        stop(&workers[i]);
        double median = median_of(workers[i].values, rounds);
        printf("%s\t%.3f\t%.3f\t%.3f\n", workers[i].name, median, workers[i].values[0],
               workers[i].values[rounds - 1]);
    }
    return EXIT_SUCCESS;
}
