/* bench.c - p11-proxy bench: what random bytes cost, straight from the token and through the proxy. */
#include "bench/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"

static const char help[] =
    "usage: p11-proxy bench [--size BYTES] [--threads N] [--seconds N] [--simulate TIME]\n"
    "                       [--json] [--plot FILE] [--module PATH]\n\n"
    "Draws random bytes straight from the token's own module and through the proxy, in\n"
    "turns, and compares the two. Never logs in, never writes to the token.\n\n"
    "  --size BYTES     of one draw, 1 to 1048576 (32)\n"
    "  --threads N      that draw at the same time, 1 to 256 (1)\n"
    "  --seconds N      for how long in all, 1 to 3600 (4)\n"
    "  --simulate TIME  let each call to the token take so much longer: 50us, 1ms, 1s at most\n"
    "  --json           for programs\n"
    "  --plot FILE      write a program for gnuplot, which draws the latencies\n"
    "  --module PATH    the proxy, from which the name of its configuration follows\n"
    "  --help           show this\n"
    "  --version        show the version\n\n"
    "Exit code: 0 measured, 1 could not be measured, 2 wrong usage.\n";

const struct figure figures[FIGURES] = {
    [FIGURE_LOAD] = {"", "", OPERATION_DRAW, 0, 0},
    {"a draw of 16 bytes", "draw_16", OPERATION_DRAW, 16, 1},
    [FIGURE_SMALL] = {"a draw of 32 bytes", "draw_32", OPERATION_DRAW, 32, 1},
    {"  with 2 threads", "draw_32_threads_2", OPERATION_DRAW, 32, 2},
    {"  with 4 threads", "draw_32_threads_4", OPERATION_DRAW, 32, 4},
    {"a draw of 4096 bytes", "draw_4096", OPERATION_DRAW, 4096, 1},
    {"the first draw after opening", "first_draw_16", OPERATION_FIRST, 16, 1},
    {"open, draw 16 bytes, close", "open_draw_close", OPERATION_CYCLE, 16, 1},
    {"  with 4 threads", "open_draw_close_threads_4", OPERATION_CYCLE, 16, 4},
    {"1000 draws after a pause, each", "draw_32_after_pause", OPERATION_BURST, 32, 1},
};

/* Shows how far it is, on a terminal. */
static void show_progress(int64_t done_ns, int64_t all_ns)
{
    static const char cells[] = "##########";
    int done = (int)(done_ns < all_ns ? (int64_t)strlen(cells) * done_ns / all_ns
                                      : (int64_t)strlen(cells));
    if (wants_colour(stderr))
        fprintf(stderr, "\r[%-*.*s] %3d%%", (int)strlen(cells), done, cells, 10 * done);
}

/* In turns, so that other load of the machine meets both alike. */
static bool measure(struct subject subjects[WAYS], struct message *message)
{
    int64_t begin_ns = clock_exact_ns(), took_ns = 0;
    int64_t all_ns = (int64_t)subjects[0].request->seconds * NS_PER_S;
    bool drawn = true;
    do {
        for (int i = 0; i < WAYS && drawn; i++) {
            show_progress(took_ns, all_ns);
            drawn = measure_round(&subjects[i]);
            if (!drawn)
                message_set(message, "%s: %s", subjects[i].module, subjects[i].drawn->message.text);
            took_ns = clock_exact_ns() - begin_ns;
        }
    } while (drawn && took_ns < all_ns);
    if (wants_colour(stderr))
        fputs("\r\033[K", stderr);
    return drawn;
}

static bool compare(const struct request *request, const struct config *config,
                    struct message *message)
{
    const char *module_path = request->common.module_path;
    struct drawn *drawn =
        mmap(NULL, WAYS * sizeof *drawn, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct subject subjects[WAYS] = {{STRAIGHT, request, config, config->target, &drawn[STRAIGHT]},
                                     {PROXIED, request, config, module_path, &drawn[PROXIED]}};
    const struct drawn *const both[WAYS] = {&drawn[STRAIGHT], &drawn[PROXIED]};
    if (drawn == MAP_FAILED) {
        message_set(message, "out of memory");
        return false;
    }
    if (!measure(subjects, message))
        return false;
    if (request->plot != NULL && !plot_write(request, both)) {
        message_set(message, "cannot be written (%m): %s", request->plot);
        return false;
    }
    results_print(request, both);
    return true;
}

static bool bench(struct request *request, struct message *message)
{
    struct config *config = NULL;
    char module_path[PATH_MAX];
    bool done = false;
    if (request->plot != NULL && !can_be_written(request->plot, 0)) {
        message_set(message, "cannot be written (%m): %s", request->plot);
        return false;
    }
    if (load_config(&config, request->common.module_path, message) != 0)
        return false;
    if (config_check_target(config, message) == 0) {
        /* A path with a slash, which dlopen() does not look for elsewhere. */
        if (realpath(request->common.module_path, module_path) == NULL)
            message_set(message, "the proxy is not there (%m): %s; --module says where it is",
                        request->common.module_path);
        else {
            request->common.module_path = module_path;
            done = compare(request, config, message);
        }
    }
    config_free(config);
    return done;
}

static bool parse_count(unsigned long *number, unsigned long most)
{
    const char *rest;
    return parse_number(optarg, 1, most, number, &rest) && *rest == '\0';
}

static bool parse_time(int64_t *ns)
{
    static const struct {
        const char *unit;
        unsigned long ns;
    } units[] = {{"us", 1000}, {"ms", NS_PER_MS}, {"s", NS_PER_S}};
    unsigned long number;
    const char *rest;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (!parse_number(optarg, 1, NS_PER_S / units[i].ns, &number, &rest) ||
            strcmp(rest, units[i].unit) != 0)
            continue;
        *ns = (int64_t)(number * units[i].ns);
        return true;
    }
    return false;
}

int bench_command(int argc, char **argv)
{
    static const struct option options[] = {
        {"size", required_argument, NULL, 's'},
        {"threads", required_argument, NULL, 't'},
        {"seconds", required_argument, NULL, 'n'},
        {"simulate", required_argument, NULL, 'd'},
        {"plot", required_argument, NULL, 'p'},
        OPTION_MODULE,
        OPTION_JSON,
        OPTIONS_OF_ALL,
    };
    struct request request = {.size_bytes = 32, .threads = 1, .seconds = 4};
    struct message message;
    int option;
    request.common.module_path = default_module();
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        const char *wrong = NULL;
        int code = GO_ON;
        if (option == 's' && !parse_count(&request.size_bytes, 1048576))
            wrong = "--size is not a number from 1 to 1048576";
        else if (option == 't' && !parse_count(&request.threads, THREADS_MOST))
            wrong = "--threads is not a number from 1 to 256";
        else if (option == 'n' && !parse_count(&request.seconds, 3600))
            wrong = "--seconds is not a number from 1 to 3600";
        else if (option == 'd' && !parse_time(&request.simulate_ns))
            wrong = "--simulate is not a time like 50us or 1ms, at most 1s";
        else if (option == 'p')
            request.plot = optarg;
        else if (strchr("stnd", option) == NULL)
            code = common_option(option, argv[0], help, &request.common);
        if (request.plot != NULL && request.plot[0] == '\0')
            wrong = "--plot is no path";
        if (wrong != NULL)
            return usage_error(argv[0], "%s: '%s'", wrong, optarg);
        if (code != GO_ON)
            return code;
    }
    if (optind < argc)
        return usage_error(argv[0], "it takes no argument: '%s'", argv[optind]);
    if (bench(&request, &message))
        return end_of_output(EXIT_FINE);
    fputs("p11-proxy bench: ", stderr);
    put_plain(stderr, message.text);
    putc('\n', stderr);
    return end_of_output(EXIT_BAD);
}
