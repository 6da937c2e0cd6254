/* bench.c - p11-proxy bench: what random bytes cost, straight from the token and through the proxy. */
#include "bench/bench.h"

#include <math.h>
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

/* Of the load, for each way. Times are shown in microseconds. */
enum { MIN, MEDIAN, P99, MAX, DRAWS, BYTES, COLUMNS };
static const struct {
    const char *key, *heading;
    double unit;
} columns[COLUMNS] = {
    [MIN] = {"min_ns", "min", 1e3},          [MEDIAN] = {"median_ns", "median", 1e3},
    [P99] = {"p99_ns", "p99", 1e3},          [MAX] = {"max_ns", "max", 1e3},
    [DRAWS] = {"draws_per_s", "draws/s", 1}, [BYTES] = {"bytes_per_s", "bytes/s", 1}};

static const char *const way_keys[WAYS] = {"straight", "proxy"};
static const char *const way_names[WAYS] = {"straight", "through the proxy"};

/* How long a call of a figure takes on average; 0 if it could not be measured. */
static double mean_ns(const struct drawn *drawn, int figure)
{
    const struct measured *measured = &drawn->figures[figure];
    return measured->calls > 0 ? (double)measured->spent_ns / (double)measured->calls : 0;
}

static double ratio(double a, double b)
{
    return a / (b > 0 ? b : 1);
}

/* The duration that at least this share (0 to 1) of them does not exceed, up to a percent more than it was. */
static double quantile_ns(const uint64_t times[TIMES_PLACES], double share)
{
    uint64_t count = 0, seen = times[0];
    size_t place = 0;
    for (size_t i = 0; i < TIMES_PLACES; i++)
        count += times[i];
    while (place < TIMES_PLACES - 1 && (seen == 0 || (double)seen < share * (double)count))
        seen += times[++place];
    return floor(exp2((double)(place + 1) / TIMES_STEPS) - 1);
}

static void find_load(double values[COLUMNS], const struct drawn *drawn)
{
    static const double shares[] = {[MIN] = 0, [MEDIAN] = 0.5, [P99] = 0.99, [MAX] = 1};
    const struct figure *load = &figures[FIGURE_LOAD];
    for (int i = MIN; i <= MAX; i++)
        values[i] = quantile_ns(drawn->times, shares[i]);
    values[DRAWS] = (double)load->threads * ratio(NS_PER_S, mean_ns(drawn, FIGURE_LOAD));
    values[BYTES] = values[DRAWS] * (double)load->size_bytes;
}

static void print_json(const struct drawn drawn[WAYS])
{
    struct json_object *document = json_object_new_object(), *pairs = json_object_new_object();
    double values[COLUMNS];
    json_add(document, "size", json_object_new_uint64(figures[FIGURE_LOAD].size_bytes));
    json_add(document, "threads", json_object_new_uint64(figures[FIGURE_LOAD].threads));
    json_add(document, "token", json_text(drawn[STRAIGHT].label));
    for (int way = 0; way < WAYS; way++) {
        struct json_object *load = json_object_new_object();
        find_load(values, &drawn[way]);
        for (int i = 0; i < COLUMNS; i++)
            json_add(load, columns[i].key, json_decimal(values[i], 1));
        json_add(document, way_keys[way], load);
    }
    for (int i = FIGURE_LOAD + 1; i < FIGURES; i++) {
        double straight_ns = mean_ns(&drawn[STRAIGHT], i), proxy_ns = mean_ns(&drawn[PROXIED], i);
        bool is_known = straight_ns > 0 && proxy_ns > 0;
        struct json_object *pair = is_known ? json_object_new_object() : NULL;
        if (is_known) {
            json_add(pair, "straight_ns", json_decimal(straight_ns, 1));
            json_add(pair, "proxy_ns", json_decimal(proxy_ns, 1));
        }
        json_add(pairs, figures[i].key, pair);
    }
    json_add(document, "figures", pairs);
    json_write(document);
}

static void put_load(FILE *out)
{
    const struct figure *load = &figures[FIGURE_LOAD];
    fprintf(out, "%lu bytes a draw, %lu thread%s", load->size_bytes, load->threads,
            load->threads == 1 ? "" : "s");
}

static void print_text(const struct drawn drawn[WAYS])
{
    double loads[WAYS][COLUMNS];
    put_load(stdout);
    fputs(", token '", stdout);
    put_plain(stdout, drawn[STRAIGHT].label);
    printf("'\n\n%-18s", "microseconds");
    for (int i = 0; i < COLUMNS; i++)
        printf(" %12s", columns[i].heading);
    for (int way = 0; way < WAYS; way++) {
        find_load(loads[way], &drawn[way]);
        printf("\n%-18s", way_names[way]);
        for (int i = 0; i < COLUMNS; i++)
            printf(" %12.*f", i <= MAX ? 3 : 0, loads[way][i] / columns[i].unit);
    }
    printf("\n\n%.1f times as many draws a second, a median %.1f times as short\n",
           ratio(loads[PROXIED][DRAWS], loads[STRAIGHT][DRAWS]),
           ratio(loads[STRAIGHT][MEDIAN], loads[PROXIED][MEDIAN]));
    printf("\n%-32s %13s %13s %13s\n", "microseconds", "straight", "proxy", "times as fast");
    for (int i = FIGURE_LOAD + 1; i < FIGURES; i++) {
        double straight_ns = mean_ns(&drawn[STRAIGHT], i), proxy_ns = mean_ns(&drawn[PROXIED], i);
        if (straight_ns > 0 && proxy_ns > 0)
            printf("%-32s %13.3f %13.3f %13.2f\n", figures[i].name, straight_ns / 1e3,
                   proxy_ns / 1e3, ratio(straight_ns, proxy_ns));
    }
    if (bench.plot != NULL)
        printf("\nThe plot is in %s; to see it: gnuplot -p FILE\n", bench.plot);
}

/* Writes a program for gnuplot that draws the latencies of both. False, with errno, if it cannot be written. */
static bool plot_write(const struct drawn drawn[WAYS])
{
    enum { CURVE_POINTS = 1000 };
    FILE *out = fopen(bench.plot, "we");
    if (out == NULL)
        return false;
    fputs("set title 'C\\_GenerateRandom, ", out);
    put_load(out);
    fputs("'\n"
          "set xlabel 'at most so many microseconds'\n"
          "set ylabel 'percent of the draws'\n"
          "set logscale x\nset grid\nset key outside bottom center horizontal\n"
          "set yrange [0:100]\n"
          "plot '-' with lines lw 2 title 'straight', "
          "'-' with lines lw 2 title 'through the proxy'\n",
          out);
    for (int way = 0; way < WAYS; way++) {
        /* For each time the share of draws that took no longer. */
        for (int i = 0; i <= CURVE_POINTS; i++) {
            double share = (double)i / CURVE_POINTS;
            fprintf(out, "%.4f %.4f\n", (quantile_ns(drawn[way].times, share) + 1) / 1e3,
                    100 * share);
        }
        fputs("e\n", out);
    }
    return fclose(out) == 0;
}

/* In turns, so that other load of the machine meets both alike. */
static int run(void)
{
    struct drawn *drawn = shared_memory(WAYS * sizeof *drawn);
    struct message message;
    if (config_load(&bench.config, request.module_path, &message) != 0 ||
        config_check_target(bench.config, &message) != 0)
        return say("%s", message.text);
    if (realpath(request.module_path, bench.module_path) == NULL)
        return say("the proxy is not there (%m): %s; --module says where it is",
                   request.module_path);
    int64_t until_ns = clock_exact_ns() + (int64_t)bench.seconds * NS_PER_S;
    do {
        for (enum way way = STRAIGHT; way < WAYS; way++) {
            if (!measure_round(way, &drawn[way]))
                return say("%s: %s", way == STRAIGHT ? bench.config->target : bench.module_path,
                           drawn[way].message.text);
        }
    } while (clock_exact_ns() < until_ns);
    if (request.json)
        print_json(drawn);
    else
        print_text(drawn);
    if (bench.plot != NULL && !plot_write(drawn))
        return say("the plot cannot be written (%m): %s", bench.plot);
    return end_of_output(EXIT_FINE);
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
