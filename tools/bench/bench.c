/* bench.c - p11-proxy bench: what random bytes cost, straight from the token and through the proxy. */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct figure figures[FIGURES] = {
    [FIGURE_LOAD] = {OPERATION_EACH, "", "", 32, 1},
    {OPERATION_DRAW, "draw_32", "a draw of 32 bytes", 32, 1},
    {OPERATION_DRAW, "draw_32_threads_4", "  with 4 threads", 32, 4},
    {OPERATION_DRAW, "draw_4096", "a draw of 4096 bytes", 4096, 1},
    {OPERATION_CYCLE, "open_draw_close", "open, draw 16 bytes, close", 16, 1},
    {OPERATION_CYCLE, "open_draw_close_threads_4", "  with 4 threads", 16, 4},
    {OPERATION_BURST, "draw_32_after_pause", "1000 draws after a pause, each", 32, 1},
};

struct bench bench = {.seconds = 4};

/* In turns, so that other load of the machine meets both alike. */
static bool measure(struct message *message)
{
    struct drawn *drawn = shared_memory(WAYS * sizeof *drawn);
    struct config *config; /* until the program ends */
    if (config_load(&config, request.module_path, message) != 0 ||
        config_check_target(config, message) != 0)
        return false;
    bench.config = config;
    if (realpath(request.module_path, bench.module_path) == NULL) {
        message_set(message, "the proxy is not there (%m): %s; --module says where it is",
                    request.module_path);
        return false;
    }
    int64_t until_ns = clock_exact_ns() + (int64_t)bench.seconds * NS_PER_S;
    do {
        for (enum way way = STRAIGHT; way < WAYS; way++) {
            if (!measure_round(way, &drawn[way])) {
                message_set(message, "%s: %s", way == STRAIGHT ? config->target : bench.module_path,
                            drawn[way].message.text);
                return false;
            }
        }
    } while (clock_exact_ns() < until_ns);
    if (request.json)
        print_json(drawn);
    else
        print_text(drawn);
    if (bench.plot != NULL && !plot_write(drawn)) {
        message_set(message, "the plot cannot be written (%m): %s", bench.plot);
        return false;
    }
    return true;
}

static int run(void)
{
    struct message message;
    if (measure(&message))
        return end_of_output(EXIT_FINE);
    say("%s", message.text);
    return end_of_output(EXIT_BAD);
}

const struct command bench_command = {
    .name = "bench",
    .summary = "measure random bytes straight from the token and through the proxy",
    .usage = "p11-proxy bench [--size BYTES] [--threads N] [--seconds N] [--json]\n"
             "                       [--plot FILE] [--module PATH]\n\n"
             "Draws random bytes straight from the token's own module and through the proxy, in\n"
             "turns, and compares the two. Never logs in, never writes to the token.",
    .options = {{"size", " BYTES", "of one draw, 1 to 1048576 (32)",
                 .number = &figures[FIGURE_LOAD].size_bytes, .most = 1048576},
                {"threads", " N", "that draw at the same time, 1 to 256 (1)",
                 .number = &figures[FIGURE_LOAD].threads, .most = THREADS_MOST},
                {"seconds", " N", "for how long in all, 1 to 3600 (4)", .number = &bench.seconds,
                 .most = 3600},
                OPTION_JSON,
                {"plot", " FILE", "write a program for gnuplot, which draws the latencies",
                 .text = &bench.plot},
                OPTION_MODULE},
    .exit_codes = "0 measured, 1 could not be measured, 2 wrong usage.",
    .run = run,
};
