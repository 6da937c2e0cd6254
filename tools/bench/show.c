/* show.c - what p11-proxy bench prints: a JSON document, or text made of it, and a program for gnuplot. */
#include "bench/bench.h"

#include <string.h>

#include "base/clock.h"

/* Of the load, for each way. Times are shown in microseconds. */
static const struct {
    const char *key;
    const char *heading;
    double unit;
} columns[] = {{"min_ns", "min", 1e3},        {"median_ns", "median", 1e3},
               {"p99_ns", "p99", 1e3},        {"max_ns", "max", 1e3},
               {"draws_per_s", "draws/s", 1}, {"bytes_per_s", "bytes/s", 1}};

enum { COLUMNS = sizeof columns / sizeof columns[0] };

static const char *const way_keys[WAYS] = {"straight", "proxy"};
static const char *const way_names[WAYS] = {"straight", "through the proxy"};

/* How long a call of a figure takes on average; 0 if it could not be measured. */
static double mean_ns(const struct drawn *drawn, unsigned figure)
{
    const struct measured *measured = &drawn->figures[figure];
    return measured->calls > 0 ? (double)measured->spent_ns / (double)measured->calls : 0;
}

static double ratio(double a, double b)
{
    return a / (b > 0 ? b : 1);
}

static __thread unsigned char floor_bytes[32];

static void copy_and_wipe(unsigned char *to)
{
    memcpy(to, floor_bytes, sizeof floor_bytes);
    explicit_bzero(floor_bytes, sizeof floor_bytes);
}

/* What no draw can do without: an indirect call that copies 32 bytes and wipes them, in ns. */
static double floor_ns(void)
{
    enum { CALLS = 1000 * 1000 };
    void (*volatile call)(unsigned char *) = copy_and_wipe;
    unsigned char bytes[sizeof floor_bytes];
    int64_t begin_ns = clock_exact_ns();
    for (int i = 0; i < CALLS; i++)
        call(bytes);
    return (double)(clock_exact_ns() - begin_ns) / CALLS;
}

static struct json_object *load_json(const struct request *request, const struct drawn *drawn)
{
    struct json_object *object = json_object_new_object();
    double each_s = (double)request->threads * ratio(NS_PER_S, mean_ns(drawn, FIGURE_LOAD));
    const double values[COLUMNS] = {(double)drawn->times.min_ns,
                                    (double)times_quantile(&drawn->times, 0.5),
                                    (double)times_quantile(&drawn->times, 0.99),
                                    (double)drawn->times.max_ns,
                                    each_s,
                                    each_s * (double)request->size_bytes};
    json_add(object, "timed_draws", json_object_new_uint64(drawn->times.count));
    for (size_t i = 0; i < COLUMNS; i++)
        json_add(object, columns[i].key, json_decimal(values[i], 1));
    return object;
}

/* null where the token did not permit it. */
static struct json_object *figures_json(const struct drawn *const drawn[WAYS])
{
    struct json_object *object = json_object_new_object();
    for (unsigned i = FIGURE_LOAD + 1; i < FIGURES; i++) {
        double straight_ns = mean_ns(drawn[STRAIGHT], i), ns = mean_ns(drawn[PROXIED], i);
        struct json_object *pair = NULL;
        if (straight_ns > 0 && ns > 0) {
            pair = json_object_new_object();
            json_add(pair, "straight_ns", json_decimal(straight_ns, 1));
            json_add(pair, "proxy_ns", json_decimal(ns, 1));
        }
        json_add(object, figures[i].key, pair);
    }
    return object;
}

static struct json_object *member(struct json_object *object, const char *key)
{
    return json_object_object_get(object, key);
}

static double number(struct json_object *object, const char *key)
{
    return json_object_get_double(member(object, key));
}

static struct json_object *document_of(const struct request *request,
                                       const struct drawn *const drawn[WAYS])
{
    struct json_object *document = json_object_new_object(), *ratios = json_object_new_object();
    struct json_object *loads[WAYS];
    const struct drawn *proxied = drawn[PROXIED];
    json_add(document, "size", json_object_new_uint64(request->size_bytes));
    json_add(document, "threads", json_object_new_uint64(request->threads));
    json_add(document, "seconds", json_object_new_uint64(request->seconds));
    json_add(document, "simulate_ns", json_object_new_int64(request->simulate_ns));
    json_add(document, "token", json_text(drawn[STRAIGHT]->label));
    for (int i = 0; i < WAYS; i++) {
        loads[i] = load_json(request, drawn[i]);
        json_add(document, way_keys[i], loads[i]);
    }
    json_add(document, "pool_share",
             proxied->all_draws > 0
                 ? json_decimal((double)proxied->pool_draws / (double)proxied->all_draws, 6)
                 : NULL);
    json_add(ratios, "draws_per_s",
             json_decimal(ratio(number(loads[PROXIED], "draws_per_s"),
                                number(loads[STRAIGHT], "draws_per_s")),
                          3));
    json_add(
        ratios, "median",
        json_decimal(
            ratio(number(loads[STRAIGHT], "median_ns"), number(loads[PROXIED], "median_ns")), 3));
    json_add(document, "ratio", ratios);
    json_add(document, "figures", figures_json(drawn));
    json_add(document, "warm_ns", json_decimal(proxied->figures[FIGURE_SMALL].least_ns, 1));
    json_add(document, "floor_ns", json_decimal(floor_ns(), 1));
    return document;
}

static void put_simulated(FILE *out, const struct request *request)
{
    if (request->simulate_ns > 0)
        fprintf(out, ", made %g ms slower", (double)request->simulate_ns / NS_PER_MS);
}

static void put_text(FILE *out, const struct request *request, struct json_object *document)
{
    struct json_object *ratios = member(document, "ratio"), *pairs = member(document, "figures");
    double warm_ns = number(document, "warm_ns"), least_ns = number(document, "floor_ns");
    fprintf(out, "%lu bytes a draw, %lu thread%s, token '", request->size_bytes, request->threads,
            request->threads == 1 ? "" : "s");
    put_plain(out, json_object_get_string(member(document, "token")));
    fputs("'", out);
    put_simulated(out, request);
    fprintf(out, "\n\n%-18s", "microseconds");
    for (size_t i = 0; i < COLUMNS; i++)
        fprintf(out, " %12s", columns[i].heading);
    for (int way = 0; way < WAYS; way++) {
        fprintf(out, "\n%-18s", way_names[way]);
        for (size_t i = 0; i < COLUMNS; i++)
            fprintf(out, " %12.*f", columns[i].unit > 1 ? 3 : 0,
                    number(member(document, way_keys[way]), columns[i].key) / columns[i].unit);
    }
    fprintf(out, "\n\n%.1f times as many draws a second, a median %.1f times as short\n",
            number(ratios, "draws_per_s"), number(ratios, "median"));
    if (member(document, "pool_share") != NULL)
        fprintf(out, "the pool served %.2f %% of the proxy's draws\n",
                100 * number(document, "pool_share"));
    fprintf(out, "\n%-32s %13s %13s %13s\n", "microseconds", "straight", "proxy", "times as fast");
    for (unsigned i = FIGURE_LOAD + 1; i < FIGURES; i++) {
        struct json_object *pair = member(pairs, figures[i].key);
        if (pair != NULL)
            fprintf(out, "%-32s %13.3f %13.3f %13.2f\n", figures[i].name,
                    number(pair, "straight_ns") / 1e3, number(pair, "proxy_ns") / 1e3,
                    ratio(number(pair, "straight_ns"), number(pair, "proxy_ns")));
    }
    if (warm_ns > 0)
        fprintf(out,
                "\nWhile the pool has bytes, a draw of 32 takes %.1f ns, %.1f times as long as\n"
                "copying and wiping them (%.1f ns).\n",
                warm_ns, ratio(warm_ns, least_ns), least_ns);
    if (request->plot != NULL)
        fprintf(out, "\nThe plot is in %s; to see it: gnuplot -p FILE\n", request->plot);
}

void results_print(const struct request *request, const struct drawn *const drawn[WAYS])
{
    struct json_object *document = document_of(request, drawn);
    if (request->common.json) {
        json_write(stdout, document, JSON_PRETTY);
        return;
    }
    put_text(stdout, request, document);
    json_object_put(document);
}

bool plot_write(const struct request *request, const struct drawn *const drawn[WAYS])
{
    enum { CURVE_POINTS = 1000 };
    FILE *out = fopen(request->plot, "we");
    if (out == NULL)
        return false;
    fprintf(out, "set title 'C\\_GenerateRandom, %lu bytes, %lu thread%s", request->size_bytes,
            request->threads, request->threads == 1 ? "" : "s");
    put_simulated(out, request);
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
            fprintf(out, "%.4f %.4f\n",
                    (double)(times_quantile(&drawn[way]->times, share) + 1) / 1e3, 100 * share);
        }
        fputs("e\n", out);
    }
    return fclose(out) == 0;
}
