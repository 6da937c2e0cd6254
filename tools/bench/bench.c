/* bench.c - p11-proxy bench: what random bytes cost, straight from the token and through the proxy. */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const char help[] =
    "usage: p11-proxy bench [--size BYTES] [--threads N] [--seconds N] [--json]\n"
    "                       [--plot FILE] [--module PATH]\n\n"
    "Draws random bytes straight from the token's own module and through the proxy, in\n"
    "turns, and compares the two. Never logs in, never writes to the token.\n\n"
    "  --size BYTES     of one draw, 1 to 1048576 (32)\n"
    "  --threads N      that draw at the same time, 1 to 256 (1)\n"
    "  --seconds N      for how long in all, 1 to 3600 (4)\n"
    "  --json           for programs\n"
    "  --plot FILE      write a program for gnuplot, which draws the latencies\n"
    "  --module PATH    the proxy, from which the name of its configuration follows\n"
    "  --help           show this\n"
    "  --version        show the version\n\n"
    "Exit code: 0 measured, 1 could not be measured, 2 wrong usage.\n";

struct figure figures[FIGURES] = {
    [FIGURE_LOAD] = {OPERATION_EACH, "", "", 32, 1},
    {OPERATION_DRAW, "draw_32", "a draw of 32 bytes", 32, 1},
    {OPERATION_DRAW, "draw_32_threads_4", "  with 4 threads", 32, 4},
    {OPERATION_DRAW, "draw_4096", "a draw of 4096 bytes", 4096, 1},
    {OPERATION_CYCLE, "open_draw_close", "open, draw 16 bytes, close", 16, 1},
    {OPERATION_CYCLE, "open_draw_close_threads_4", "  with 4 threads", 16, 4},
    {OPERATION_BURST, "draw_32_after_pause", "1000 draws after a pause, each", 32, 1},
};

/* In turns, so that other load of the machine meets both alike. */
static bool bench(struct request *request, const struct common_options *common,
                  struct message *message)
{
    struct drawn *drawn = shared_memory(WAYS * sizeof *drawn);
    struct config *config; /* until the program ends */
    if (config_load(&config, common->module_path, message) != 0 ||
        config_check_target(config, message) != 0)
        return false;
    request->config = config;
    if (realpath(common->module_path, request->module_path) == NULL) {
        message_set(message, "the proxy is not there (%m): %s; --module says where it is",
                    common->module_path);
        return false;
    }
    int64_t until_ns = clock_exact_ns() + (int64_t)request->seconds * NS_PER_S;
    do {
        for (enum way way = STRAIGHT; way < WAYS; way++) {
            if (!measure_round(request, way, &drawn[way])) {
                message_set(message, "%s: %s",
                            way == STRAIGHT ? config->target : request->module_path,
                            drawn[way].message.text);
                return false;
            }
        }
    } while (clock_exact_ns() < until_ns);
    if (common->json)
        print_json(drawn);
    else
        print_text(request, drawn);
    if (request->plot != NULL && !plot_write(request, drawn)) {
        message_set(message, "the plot cannot be written (%m): %s", request->plot);
        return false;
    }
    return true;
}

int bench_command(int argc, char **argv)
{
    static const struct option options[] = {
        {"size", required_argument, NULL, 's'},
        {"threads", required_argument, NULL, 't'},
        {"seconds", required_argument, NULL, 'n'},
        {"plot", required_argument, NULL, 'p'},
        OPTION_MODULE,
        OPTION_JSON,
        OPTIONS_OF_ALL,
    };
    struct request request = {.seconds = 4};
    struct common_options common = {.module_path = default_module()};
    struct figure *load = &figures[FIGURE_LOAD];
    struct message message;
    int option;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        const char *wrong = NULL;
        if (option == 's' && !parse_number(optarg, 1048576, &load->size_bytes))
            wrong = "--size is not a number from 1 to 1048576";
        else if (option == 't' && !parse_number(optarg, THREADS_MOST, &load->threads))
            wrong = "--threads is not a number from 1 to 256";
        else if (option == 'n' && !parse_number(optarg, 3600, &request.seconds))
            wrong = "--seconds is not a number from 1 to 3600";
        else if (option == 'p')
            request.plot = optarg;
        else if (strchr("stn", option) == NULL)
            common_option(option, argv[0], help, &common);
        if (wrong != NULL)
            usage_error(argv[0], "%s: '%s'", wrong, optarg);
    }
    if (optind < argc)
        usage_error(argv[0], "it takes no argument: '%s'", argv[optind]);
    if (bench(&request, &common, &message))
        return end_of_output(EXIT_FINE);
    fputs("p11-proxy bench: ", stderr);
    put_plain(stderr, message.text);
    putc('\n', stderr);
    return end_of_output(EXIT_BAD);
}
