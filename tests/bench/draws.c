/* draws.c - what one draw of random bytes costs: from a token's module, and through the proxy before it.
 *
 *     draws PROXY TARGET=NAME...
 *
 * Each target is drawn from by two processes, one that loaded it bare and one that loaded the proxy in front
 * of it. They take turns, so that whatever else the machine does meets both alike.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum {
    ROUNDS = 15,
    WARM_UP_ROUNDS = 3,
    DRAW_BYTES = 32,
    BURST_DRAWS = 1000,    /* fits a pool of the default size */
    STEADY_DRAWS = 100000, /* fits no pool: the token's own speed with large requests shows */
    ROUND_NS = 30 * 1000 * 1000,
    AWAKE_NS = 2 * 1000 * 1000,
    REST_NS = 10 * 1000 * 1000 /* longer than a refill */
};

struct worker {
    pid_t pid;
    int socket; /* numbers of draws go out, nanoseconds per draw come back */
};

static double time_of(CK_FUNCTION_LIST *list, CK_SESSION_HANDLE session, long draws)
{
    CK_BYTE bytes[DRAW_BYTES];
    CK_RV rv = CKR_OK;
    int64_t begin_ns = now_ns() + AWAKE_NS;
    while (now_ns() < begin_ns)
        ; /* a process that was just woken is slow at anything */
    begin_ns = now_ns();
    for (long i = 0; i < draws && rv == CKR_OK; i++)
        rv = list->C_GenerateRandom(session, bytes, sizeof bytes);
    must("C_GenerateRandom", rv);
    return (double)(now_ns() - begin_ns) / (double)draws;
}

static void work(const char *module, int orders)
{
    CK_FUNCTION_LIST *list = load_module(module);
    initialize(list);
    CK_SESSION_HANDLE session =
        open_session(list, find_slot(list, CKF_RNG | CKF_TOKEN_INITIALIZED, 0));
    long draws;
    while (read(orders, &draws, sizeof draws) == sizeof draws) {
        double ns = time_of(list, session, draws);
        if (write(orders, &ns, sizeof ns) != sizeof ns)
            fail("cannot answer", "the parent is gone");
    }
    must("C_Finalize", list->C_Finalize(NULL));
    exit(EXIT_SUCCESS);
}

static struct worker start(const char *module, const char *proxys_target)
{
    struct worker worker;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        fail("cannot start a process", "no socket pair");
    fflush(stdout);
    worker.pid = fork();
    if (worker.pid < 0)
        fail("cannot start a process", "fork failed");
    if (worker.pid == 0) {
        close(ends[0]);
        if (proxys_target != NULL)
            setenv("P11_PROXY_TARGET", proxys_target, /* overwrite= */ 1);
        work(module, ends[1]);
    }
    close(ends[1]);
    worker.socket = ends[0];
    return worker;
}

static double ask(const struct worker *worker, long draws)
{
    double ns;
    if (write(worker->socket, &draws, sizeof draws) != sizeof draws ||
        read(worker->socket, &ns, sizeof ns) != sizeof ns)
        exit(EXIT_FAILURE); /* it has said why */
    return ns;
}

static void stop(const struct worker *worker)
{
    int status;
    shutdown(worker->socket, SHUT_WR); /* its copies in later workers do not count */
    if (waitpid(worker->pid, &status, 0) != worker->pid || status != 0)
        fail("a process that drew", "did not end well");
    close(worker->socket);
}

static void print_row(const char *name, double bare_ns, double burst_ns, double steady_ns)
{
    printf("%-15s %10.3f us %9.3f us %6.0f x faster %9.3f us %6.0f x faster\n", name,
           bare_ns / 1000, burst_ns / 1000, bare_ns / burst_ns, steady_ns / 1000,
           bare_ns / steady_ns);
    fflush(stdout);
}

static void measure(const char *proxy, const char *target, const char *name)
{
    double bare_ns[ROUNDS];
    double burst_ns[ROUNDS];
    double steady_ns[ROUNDS];
    struct worker bare = start(target, NULL);
    struct worker proxied = start(proxy, target);
    long bare_draws = (long)(ROUND_NS / ask(&bare, WARM_UP_ROUNDS)) + 1;
    for (int i = 0; i < WARM_UP_ROUNDS; i++)
        ask(&proxied, STEADY_DRAWS);
    for (int i = 0; i < ROUNDS; i++) {
        rest_ns(REST_NS);
        bare_ns[i] = ask(&bare, bare_draws);
        burst_ns[i] = ask(&proxied, BURST_DRAWS);
        rest_ns(REST_NS);
        steady_ns[i] = ask(&proxied, STEADY_DRAWS);
    }
    stop(&bare);
    stop(&proxied);
    print_row(name, median_of(bare_ns, ROUNDS), median_of(burst_ns, ROUNDS),
              median_of(steady_ns, ROUNDS));
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: draws PROXY TARGET=NAME...\n");
        return EXIT_FAILURE;
    }
    printf("One draw of %d bytes, median of %d rounds:\n\n", DRAW_BYTES, ROUNDS);
    printf("%-15s %13s  %-29s %s\n", "", "straight", "through the proxy,", "through the proxy,");
    printf("%-15s %13s  %-29s %s\n", "", "", "1000 in a row", "100,000 without a pause");
    for (int i = 2; i < argc; i++) {
        char *name = strchr(argv[i], '=');
        if (name != NULL)
            *name++ = '\0';
        measure(argv[1], argv[i], name != NULL ? name : argv[i]);
    }
    return EXIT_SUCCESS;
}
