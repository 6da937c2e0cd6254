/* bench.c - p11-proxy bench: what random bytes cost, straight from the token and through the proxy. */
#include "bench/bench.h"
#include "tool.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static const char help[] =
    "usage: p11-proxy bench [--size BYTES] [--threads N] [--seconds N] [--simulate TIME]\n"
    "                       [--json] [--plot FILE.svg] [--module PATH]\n\n"
    "Draws random bytes without a pause from the token's own module and through the proxy,\n"
    "in turns, and compares the two. Never logs in, never writes to the token.\n\n"
    "  --size BYTES    of one draw, 1 to 1048576 (32)\n"
    "  --threads N     that draw at the same time, 1 to 256 (1)\n"
    "  --seconds N     for how long in all, 1 to 3600 (4)\n"
    "  --simulate TIME let each call to the token take so much longer: 50us, 1ms, 1s at most\n"
    "  --json          for programs\n"
    "  --plot FILE.svg draw the latencies, which takes gnuplot\n"
    "  --module PATH   the proxy, from which the name of its configuration follows\n"
    "  --help          show this\n"
    "  --version       show the version\n\n"
    "Exit code: 0 measured, 1 could not be measured, 2 wrong usage.\n";

enum {
    SIZE_MOST_BYTES = 1024 * 1024,
    SECONDS_MOST = 3600,
    SLICE_NS = 100 * 1000 * 1000,
    WARM_UP_SLICES = 3 /* in which the proxy learns how much the token likes to be asked for */
};

#define SIMULATE_MOST_NS NS_PER_S

struct request {
    struct load load;
    unsigned long seconds;
    struct common_options common;
    const char *plot;
};

/* A whole number from least to most, with nothing behind it but what *rest then points to. */
static bool parse_number_(const char *text, unsigned long least, unsigned long most,
                         unsigned long *number, char **rest)
{
    errno = 0;
    *number = strtoul(text, rest, 10);
    return isdigit((unsigned char)text[0]) && errno == 0 && *number >= least && *number <= most;
}

static bool parse_count(const char *text, unsigned long most, unsigned long *number)
{
    char *rest;

    return parse_number_(text, 1, most, number, &rest) && *rest == '\0';
}

static bool parse_time(const char *text, int64_t *ns)
{
    static const struct {
        const char *unit;
        int64_t ns;
    } units[] = {{"us", 1000}, {"ms", NS_PER_MS}, {"s", NS_PER_S}};
    unsigned long number;
    char *rest;

    if (!parse_number_(text, 1, SIMULATE_MOST_NS, &number, &rest))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(rest, units[i].unit) != 0)
            continue;
        *ns = (int64_t)number * units[i].ns;
        return *ns <= SIMULATE_MOST_NS;
    }
    return false;
}

static bool draw_both(const struct drawer drawers[2], const char *const paths[2], bool counts,
                      struct message *message)
{
    for (int i = 0; i < 2; i++) {
        if (drawer_draw(&drawers[i], SLICE_NS, counts))
            continue;
        message_set(message, "%s: %s", paths[i], drawers[i].drawn->message.text);
        return false;
    }
    return true;
}

/* In turns, so that whatever else the machine does meets both alike. */
static bool measure(const struct request *request, const struct drawer drawers[2],
                    const char *const paths[2], struct message *message)
{
    int64_t all_ns = (int64_t)request->seconds * NS_PER_S;
    int64_t begin_ns;
    bool drawn = true;

    for (int i = 0; drawn && i < WARM_UP_SLICES; i++)
        drawn = draw_both(drawers, paths, /* counts= */ false, message);
    begin_ns = clock_exact_ns();
    do {
        progress_show(clock_exact_ns() - begin_ns, all_ns);
        drawn = drawn && draw_both(drawers, paths, /* counts= */ true, message);
    } while (drawn && clock_exact_ns() - begin_ns < all_ns);
    progress_end();
    return drawn;
}

static void put_time(int64_t ns)
{
    if (ns < 1000)
        printf(" %8" PRId64 " ns", ns);
    else if (ns < NS_PER_MS)
        printf(" %8.2f us", (double)ns / 1000);
    else
        printf(" %8.2f ms", (double)ns / NS_PER_MS);
}

static void put_row(const char *name, const struct load *load, const struct drawn *drawn)
{
    printf("%-18s", name);
    put_time(drawn->latencies.min_ns);
    put_time(latencies_quantile(&drawn->latencies, 0.5));
    put_time(latencies_quantile(&drawn->latencies, 0.99));
    put_time(drawn->latencies.max_ns);
    printf(" %11.0f %14.0f\n", drawn->draws_per_s, drawn->draws_per_s * (double)load->size_bytes);
}

static double median_ratio(const struct drawn *straight, const struct drawn *proxied)
{
    double a = (double)latencies_quantile(&straight->latencies, 0.5);
    double b = (double)latencies_quantile(&proxied->latencies, 0.5);

    return a / (b > 0 ? b : 1);
}

static void print_text(const struct request *request, const struct drawn *straight,
                       const struct drawn *proxied, double share)
{
    const struct load *load = &request->load;

    printf("%zu bytes a draw, %u thread%s, token '", load->size_bytes, load->threads,
           load->threads == 1 ? "" : "s");
    put_plain(stdout, straight->label);
    putchar('\'');
    if (load->simulate_ns > 0)
        printf(", made %g ms slower", (double)load->simulate_ns / NS_PER_MS);
    printf("\n\n%-18s %11s %11s %11s %11s %11s %14s\n", "", "min", "median", "p99", "max",
           "draws/s", "bytes/s");
    put_row("straight", load, straight);
    put_row("through the proxy", load, proxied);
    printf("\n%.1f times as many draws a second, a median %.1f times as short\n",
           proxied->draws_per_s / straight->draws_per_s, median_ratio(straight, proxied));
    if (share >= 0)
        printf("the pool served %.2f %% of the proxy's draws\n", 100 * share);
}

static void put_json_row(const char *name, const struct load *load, const struct drawn *drawn)
{
    printf("\n  \"%s\": {\"timed_draws\": %" PRIu64 ", \"min_ns\": %" PRId64
           ", \"median_ns\": %" PRId64 ", \"p99_ns\": %" PRId64 ", \"max_ns\": %" PRId64
           ", \"draws_per_s\": %.1f, \"bytes_per_s\": %.1f},",
           name, drawn->latencies.count, drawn->latencies.min_ns,
           latencies_quantile(&drawn->latencies, 0.5), latencies_quantile(&drawn->latencies, 0.99),
           drawn->latencies.max_ns, drawn->draws_per_s,
           drawn->draws_per_s * (double)load->size_bytes);
}

static void print_json(const struct request *request, const struct drawn *straight,
                       const struct drawn *proxied, double share)
{
    const struct load *load = &request->load;

    printf("{\"size\": %zu, \"threads\": %u, \"seconds\": %lu, \"simulate_ns\": %" PRId64
           ", \"token\": ",
           load->size_bytes, load->threads, request->seconds, load->simulate_ns);
    put_json(stdout, straight->label);
    putchar(',');
    put_json_row("straight", load, straight);
    put_json_row("proxy", load, proxied);
    fputs("\n  \"pool_share\": ", stdout);
    if (share >= 0)
        printf("%.6f,", share);
    else
        fputs("null,", stdout);
    printf("\n  \"ratio\": {\"draws_per_s\": %.3f, \"median\": %.3f}}\n",
           proxied->draws_per_s / straight->draws_per_s, median_ratio(straight, proxied));
}

static int report(const struct request *request, const struct drawer drawers[2],
                  struct message *message)
{
    const struct drawn *straight = drawers[0].drawn;
    const struct drawn *proxied = drawers[1].drawn;
    double share = pool_share(drawers[1].pid);

    if (request->common.json)
        print_json(request, straight, proxied, share);
    else
        print_text(request, straight, proxied, share);
    if (request->plot == NULL)
        return 0;
    return plot_write(request->plot, &request->load, straight, proxied, message);
}

static int compare_both(const struct request *request, const struct config *config,
                        struct message *message)
{
    const char *const paths[2] = {config->target, request->common.module_path};
    const struct drawer_setup setups[2] = {
        {request->load, config->target, config->target, config->target_init},
        {request->load, request->common.module_path, config->target, NULL},
    };
    struct drawer drawers[2];
    int rc = -EIO;

    if (!drawer_start(&drawers[0], &setups[0], message))
        return rc;
    if (drawer_start(&drawers[1], &setups[1], message)) {
        if (measure(request, drawers, paths, message))
            rc = report(request, drawers, message);
        drawer_stop(&drawers[1]);
    }
    drawer_stop(&drawers[0]);
    return rc;
}

static int bench(struct request *request)
{
    struct config *config = NULL;
    struct message message;
    char module_path[PATH_MAX];
    int rc = 0;

    if (request->plot != NULL && !plot_is_possible(request->plot, &message))
        rc = -EIO;
    if (rc == 0)
        rc = load_config(&config, request->common.module_path, &message);
    if (rc == 0)
        rc = config_check_target(config, &message);
    /* A path with a slash, which dlopen() does not look for elsewhere. */
    if (rc == 0 && realpath(request->common.module_path, module_path) == NULL) {
        rc = -errno;
        message_set(&message, "the proxy is not there (%m): %s; --module says where it is",
                    request->common.module_path);
    }
    if (rc == 0) {
        request->common.module_path = module_path;
        rc = compare_both(request, config, &message);
    }
    if (rc != 0) {
        fputs("p11-proxy bench: ", stderr);
        put_plain(stderr, message.text);
        putc('\n', stderr);
    }
    config_free(config);
    return end_of_output(rc == 0 ? EXIT_FINE : EXIT_BAD);
}

static int wrong(const char *command, const char *what, const char *came)
{
    return usage_error(command, "%s: '%s'", what, came);
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
    unsigned long number;
    int option, code;

    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 's':
            if (!parse_count(optarg, SIZE_MOST_BYTES, &number))
                return wrong(argv[0], "--size is not a number from 1 to 1048576", optarg);
            request.load.size_bytes = number;
            break;
        case 't':
            if (!parse_count(optarg, THREADS_MOST, &number))
                return wrong(argv[0], "--threads is not a number from 1 to 256", optarg);
            request.load.threads = (unsigned)number;
            break;
        case 'n':
            if (!parse_count(optarg, SECONDS_MOST, &request.seconds))
                return wrong(argv[0], "--seconds is not a number from 1 to 3600", optarg);
            break;
        case 'd':
            if (!parse_time(optarg, &request.load.simulate_ns))
                return wrong(argv[0], "--simulate is not a time like 50us or 1ms, at most 1s",
                             optarg);
            break;
        case 'p':
            if (optarg[0] == '\0')
                return wrong(argv[0], "--plot is no path", optarg);
            request.plot = optarg;
            break;
        default:
            code = common_option(option, argv[0], help, &request.common);
            if (code != GO_ON)
                return code;
        }
    }
    if (optind < argc)
        return wrong(argv[0], "it takes no argument", argv[optind]);
    return bench(&request);
}
