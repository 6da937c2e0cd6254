/* bench.c - p11-proxy bench: what random bytes cost, straight from the token and through the proxy. */
#include "bench/bench.h"

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
    if (wants_colour(stderr) && cells > 0)
        fprintf(stderr, "\r[%.*s%*s] %3d%%", done, "########################################",
                cells - done, "", 100 * done / cells);
}

static void hide_progress(void)
{
    if (wants_colour(stderr))
        fputs("\r\033[K", stderr);
}

/* Adds the draws of the proxy's process until now, or takes them off: sign is 1 or -1. */
static void count_draws(struct results *results, pid_t pid, int sign)
{
    uint64_t factor = (uint64_t)sign; /* modulo 2^64 */
    struct counted_list list;
    counters_find(&list, &pid, 1, /* complaints= */ NULL);
    for (size_t i = 0; i < list.count; i++) {
        const struct statistics *counters = list.proxies[i].counters;
        for (size_t slot = 0; slot < counters->slot_count; slot++) {
            const struct statistics_calls *calls = &counters->slots[slot].calls;
            uint64_t pool_draws = counters->slots[slot].pool.pool_draws;
            results->pool_draws += factor * pool_draws;
            results->all_draws += factor * (pool_draws + calls->token_draws + calls->failed_draws);
        }
    }
    counters_free(&list);
}

/* One figure of both, in turns, so that other load of the machine meets both alike. */
static bool measure_both(const struct worker *workers, unsigned figure, bool counts,
                         struct message *message)
{
    if (figures[figure].operation == OPERATION_BURST)
        nanosleep(&PAUSE, NULL);
    for (int i = 0; i < WAYS; i++) {
        if (worker_measure(&workers[i], figure, figure == FIGURE_LOAD ? LOAD_NS : FIGURE_NS,
                           counts))
            continue;
        message_set(message, "%s: %s", workers[i].module, workers[i].drawn->message.text);
        return false;
    }
    return true;
}

static bool measure(struct results *results, const struct worker *workers, struct message *message)
{
    int64_t all_ns = (int64_t)results->request->seconds * NS_PER_S;
    bool drawn = true;
    for (int i = 0; drawn && i < WARM_UP_ROUNDS; i++)
        drawn = measure_both(workers, FIGURE_LOAD, /* counts= */ false, message);
    int64_t begin_ns = clock_exact_ns();
    do {
        for (unsigned i = FIGURE_LOAD; i < FIGURES && drawn; i++) {
            show_progress(clock_exact_ns() - begin_ns, all_ns);
            if (i == FIGURE_LOAD)
                count_draws(results, workers[PROXIED].pid, -1);
            drawn = measure_both(workers, i, /* counts= */ true, message);
            if (i == FIGURE_LOAD)
                count_draws(results, workers[PROXIED].pid, 1);
        }
    } while (drawn && clock_exact_ns() - begin_ns < all_ns);
    hide_progress();
    return drawn;
}

static bool compare(const struct request *request, const struct config *config,
                    struct message *message)
{
    struct worker workers[WAYS] = {0};
    struct results results = {.request = request};
    bool done = true;
    for (int i = 0; i < WAYS && done; i++) {
        done = worker_start(&workers[i], (enum way)i, request, config, message);
        results.drawn[i] = workers[i].drawn;
    }
    done = done && measure(&results, workers, message) &&
           (request->plot == NULL || plot_write(&results, message));
    for (int i = 0; i < WAYS; i++)
        worker_stop(&workers[i]);
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
        unsigned long ns;
    } units[] = {{"us", 1000}, {"ms", NS_PER_MS}, {"s", NS_PER_S}};
    unsigned long number;
    const char *rest;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (!parse_number(text, 1, SIMULATE_MOST_NS / units[i].ns, &number, &rest) ||
            strcmp(rest, units[i].unit) != 0)
            continue;
        *ns = (int64_t)(number * units[i].ns);
        return true;
    }
    return false;
}

/* Takes an option of this command. Returns what is wrong with its value, or NULL. */
static const char *take_option(struct request *request, int option)
{
    switch (option) {
    case 's':
        return parse_count(optarg, SIZE_MOST_BYTES, &request->size_bytes)
                   ? NULL
                   : "--size is not a number from 1 to 1048576";
    case 't':
        return parse_count(optarg, THREADS_MOST, &request->threads)
                   ? NULL
                   : "--threads is not a number from 1 to 256";
    case 'n':
        return parse_count(optarg, SECONDS_MOST, &request->seconds)
                   ? NULL
                   : "--seconds is not a number from 1 to 3600";
    case 'd':
        return parse_time(optarg, &request->simulate_ns)
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
    struct request request = {.size_bytes = 32, .threads = 1, .seconds = 4};
    struct message message;
    int option;
    request.common.module_path = default_module();
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        bool is_own = strchr("stndp", option) != NULL;
        const char *wrong = is_own ? take_option(&request, option) : NULL;
        if (wrong != NULL)
            return usage_error(argv[0], "%s: '%s'", wrong, optarg);
        int code = is_own ? GO_ON : common_option(option, argv[0], help, &request.common);
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
