/* bench.c - p11-proxy bench: what random bytes cost, straight from the token and through the proxy. */
#include "bench/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "counters/counters.h"

static const char help[] =
    "usage: p11-proxy bench [--size BYTES] [--threads N] [--seconds N] [--simulate TIME]\n"
    "                       [--json] [--plot FILE.svg] [--module PATH]\n\n"
    "Draws random bytes straight from the token's own module and through the proxy, in\n"
    "turns, and compares the two. Never logs in, never writes to the token.\n\n"
    "  --size BYTES     of one draw, 1 to 1048576 (32)\n"
    "  --threads N      that draw at the same time, 1 to 256 (1)\n"
    "  --seconds N      for how long in all, 1 to 3600 (4)\n"
    "  --simulate TIME  let each call to the token take so much longer: 50us, 1ms, 1s at most\n"
    "  --json           for programs\n"
    "  --plot FILE.svg  draw the latencies, for which gnuplot is needed\n"
    "  --module PATH    the proxy, from which the name of its configuration follows\n"
    "  --help           show this\n"
    "  --version        show the version\n\n"
    "Exit code: 0 measured, 1 could not be measured, 2 wrong usage.\n";

#define SIMULATE_MOST_NS NS_PER_S

enum {
    SIZE_MOST_BYTES = 1024 * 1024,
    SECONDS_MOST = 3600,
    WARM_UP_ROUNDS = 3, /* in which the proxy learns how many bytes it can ask the token for */
    BAR_CELLS = 40
};

/* In a round the load has one long slice, each figure a short one. */
static const int64_t LOAD_NS = 150 * NS_PER_MS, FIGURE_NS = 20 * NS_PER_MS;
static const struct timespec PAUSE = {.tv_nsec = 500 * NS_PER_MS};

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
    unsigned columns = terminal_columns(STDERR_FILENO);
    int cells = columns == 0 || columns > BAR_CELLS + 10 ? BAR_CELLS : (int)columns - 10;
    int done = (int)(done_ns < all_ns ? cells * done_ns / all_ns : cells);
    if (isatty(STDERR_FILENO) && wants_colour(stderr) && cells > 0)
        fprintf(stderr, "\r[%.*s%*s] %3d%%", done, "########################################",
                cells - done, "", 100 * done / cells);
}

static void hide_progress(void)
{
    if (isatty(STDERR_FILENO) && wants_colour(stderr))
        fputs("\r\033[K", stderr);
}

/* The draws of a process that its pool served, and all of them. */
static void count_draws(pid_t pid, uint64_t *pool, uint64_t *all)
{
    struct counted_list list;
    *pool = *all = 0;
    counters_find(&list, &pid, 1, /* complaints= */ NULL);
    for (size_t i = 0; i < list.count; i++) {
        const struct statistics *counters = list.proxies[i].counters;
        for (size_t slot = 0; slot < counters->slot_count; slot++) {
            *pool += counters->slots[slot].pool.pool_draws;
            *all += counters->slots[slot].pool.pool_draws +
                    counters->slots[slot].calls.token_draws +
                    counters->slots[slot].calls.failed_draws;
        }
    }
    counters_free(&list);
}

/* One figure of both, in turns, so that other load of the machine meets both alike. */
static bool measure_both(const struct worker workers[2], const char *const paths[2],
                         unsigned figure, bool counts, struct message *message)
{
    int64_t slice_ns = figure == FIGURE_LOAD ? LOAD_NS : FIGURE_NS;
    if (figures[figure].operation == OPERATION_BURST)
        nanosleep(&PAUSE, NULL);
    for (int i = 0; i < 2; i++) {
        if (worker_measure(&workers[i], figure, slice_ns, counts))
            continue;
        message_set(message, "%s: %s", paths[i], workers[i].drawn->message.text);
        return false;
    }
    return true;
}

static bool measure(struct results *results, const struct worker workers[2],
                    const char *const paths[2], struct message *message)
{
    int64_t all_ns = (int64_t)results->request->seconds * NS_PER_S;
    int64_t begin_ns;
    bool drawn = true;
    for (int i = 0; drawn && i < WARM_UP_ROUNDS; i++)
        drawn = measure_both(workers, paths, FIGURE_LOAD, /* counts= */ false, message);
    begin_ns = clock_exact_ns();
    do {
        uint64_t pool_before, all_before, pool, all;
        for (unsigned i = FIGURE_LOAD; i < FIGURES && drawn; i++) {
            show_progress(clock_exact_ns() - begin_ns, all_ns);
            if (i == FIGURE_LOAD)
                count_draws(workers[1].pid, &pool_before, &all_before);
            drawn = measure_both(workers, paths, i, /* counts= */ true, message);
            if (i != FIGURE_LOAD)
                continue;
            count_draws(workers[1].pid, &pool, &all);
            results->pool_draws += pool - pool_before;
            results->all_draws += all - all_before;
        }
    } while (drawn && clock_exact_ns() - begin_ns < all_ns);
    hide_progress();
    return drawn;
}

static bool compare(const struct request *request, const struct config *config,
                    struct message *message)
{
    const char *const paths[2] = {config->target, request->common.module_path};
    const struct worker_setup setups[2] = {
        {request->load, config->target, config->target, config->target_init, paths[1]},
        {request->load, request->common.module_path, config->target, NULL, NULL},
    };
    struct worker workers[2];
    struct results results = {.request = request};
    bool done = false;
    if (!worker_start(&workers[0], &setups[0], message))
        return false;
    if (worker_start(&workers[1], &setups[1], message)) {
        for (int i = 0; i < 2; i++)
            results.drawn[i] = workers[i].drawn;
        done = measure(&results, workers, paths, message);
        for (int i = 0; i < 2; i++)
            results_sort(workers[i].drawn);
        done = done &&
               (request->plot == NULL || plot_write(request->plot, &request->load, results.drawn[0],
                                                    results.drawn[1], message));
        worker_stop(&workers[1]);
    }
    worker_stop(&workers[0]);
    if (done)
        results_print(&results);
    return done;
}

static bool bench(struct request *request, struct message *message)
{
    struct config *config = NULL;
    char module_path[PATH_MAX];
    bool done = false;
    if (request->plot != NULL && !plot_is_possible(request->plot, message))
        return false;
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

static bool parse_count(const char *text, unsigned long most, unsigned long *number)
{
    const char *rest;
    return parse_number(text, 1, most, number, &rest) && *rest == '\0';
}

static bool parse_time(const char *text, int64_t *ns)
{
    static const struct {
        const char *unit;
        int64_t ns;
    } units[] = {{"us", 1000}, {"ms", NS_PER_MS}, {"s", NS_PER_S}};
    unsigned long number;
    const char *rest;
    if (!parse_number(text, 1, SIMULATE_MOST_NS, &number, &rest))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(rest, units[i].unit) != 0)
            continue;
        *ns = (int64_t)number * units[i].ns;
        return *ns <= SIMULATE_MOST_NS;
    }
    return false;
}

/* Returns what is wrong with an option's value, or NULL. */
static const char *take_option(struct request *request, int option)
{
    unsigned long number = 0;
    switch (option) {
    case 's':
        if (!parse_count(optarg, SIZE_MOST_BYTES, &number))
            return "--size is not a number from 1 to 1048576";
        request->load.size_bytes = number;
        return NULL;
    case 't':
        if (!parse_count(optarg, THREADS_MOST, &number))
            return "--threads is not a number from 1 to 256";
        request->load.threads = (unsigned)number;
        return NULL;
    case 'n':
        return parse_count(optarg, SECONDS_MOST, &request->seconds)
                   ? NULL
                   : "--seconds is not a number from 1 to 3600";
    case 'd':
        return parse_time(optarg, &request->load.simulate_ns)
                   ? NULL
                   : "--simulate is not a time like 50us or 1ms, at most 1s";
    default:
        request->plot = optarg;
        return optarg[0] != '\0' ? NULL : "--plot is no path";
    }
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
    struct request request = {.load = {.size_bytes = 32, .threads = 1},
                              .seconds = 4,
                              .common = {.module_path = default_module()}};
    struct message message;
    int option, code;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        const char *wrong = strchr("stndp", option) != NULL ? take_option(&request, option) : NULL;
        if (wrong != NULL)
            return usage_error(argv[0], "%s: '%s'", wrong, optarg);
        code = strchr("stndp", option) != NULL
                   ? GO_ON
                   : common_option(option, argv[0], help, &request.common);
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
