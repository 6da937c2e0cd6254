/* show.c - what p11-proxy bench prints. */
#include "bench/bench.h"

#include <string.h>

#include "base/clock.h"

/* How long a call of a figure takes on average; 0 if it could not be measured. */
static double mean_ns(const struct drawn *drawn, unsigned figure)
{
    const struct measured *measured = &drawn->figures[figure];
    return measured->calls > 0 ? (double)measured->spent_ns / (double)measured->calls : 0;
}

/* Of all threads of the load together. */
static double draws_per_s(const struct results *results, enum way way)
{
    double ns = mean_ns(results->drawn[way], FIGURE_LOAD);
    return (double)results->request->threads * NS_PER_S / (ns > 0 ? ns : 1);
}

static double ratio(double a, double b)
{
    return a / (b > 0 ? b : 1);
}

static double median_ratio(const struct results *results)
{
    return ratio((double)times_quantile(&results->drawn[STRAIGHT]->times, 0.5),
                 (double)times_quantile(&results->drawn[PROXIED]->times, 0.5));
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

static void put_load(FILE *out, const struct results *results, enum way way, const char *name)
{
    const struct times *times = &results->drawn[way]->times;
    double each_s = draws_per_s(results, way);
    fprintf(out, "%-18s %11.3f %11.3f %11.3f %11.3f %11.0f %14.0f\n", name,
            (double)times->min_ns / 1e3, (double)times_quantile(times, 0.5) / 1e3,
            (double)times_quantile(times, 0.99) / 1e3, (double)times->max_ns / 1e3, each_s,
            each_s * (double)results->request->size_bytes);
}

static void put_figures(FILE *out, const struct results *results)
{
    double warm_ns = results->drawn[PROXIED]->figures[FIGURE_SMALL].least_ns, least_ns = floor_ns();
    fprintf(out, "\n%-32s %13s %13s %13s\n", "microseconds", "straight", "proxy", "times as fast");
    for (unsigned i = FIGURE_LOAD + 1; i < FIGURES; i++) {
        double straight_ns = mean_ns(results->drawn[STRAIGHT], i),
               ns = mean_ns(results->drawn[PROXIED], i);
        if (straight_ns > 0 && ns > 0)
            fprintf(out, "%-32s %13.3f %13.3f %13.2f\n", figures[i].name, straight_ns / 1e3,
                    ns / 1e3, straight_ns / ns);
    }
    if (warm_ns > 0)
        fprintf(out,
                "\nWhile the pool has bytes, a draw of 32 takes %.1f ns, %.1f times as long as\n"
                "copying and wiping them (%.1f ns).\n",
                warm_ns, ratio(warm_ns, least_ns), least_ns);
}

static void print_text(const struct results *results)
{
    const struct request *request = results->request;
    FILE *out = text_open();
    fprintf(out, "%lu bytes a draw, %lu thread%s, token '", request->size_bytes, request->threads,
            request->threads == 1 ? "" : "s");
    put_plain(out, results->drawn[STRAIGHT]->label);
    fputs("'", out);
    if (request->simulate_ns > 0)
        fprintf(out, ", made %g ms slower", (double)request->simulate_ns / NS_PER_MS);
    fprintf(out, "\n\n%-18s %11s %11s %11s %11s %11s %14s\n", "microseconds", "min", "median",
            "p99", "max", "draws/s", "bytes/s");
    put_load(out, results, STRAIGHT, "straight");
    put_load(out, results, PROXIED, "through the proxy");
    fprintf(out, "\n%.1f times as many draws a second, a median %.1f times as short\n",
            ratio(draws_per_s(results, PROXIED), draws_per_s(results, STRAIGHT)),
            median_ratio(results));
    if (results->all_draws > 0)
        fprintf(out, "the pool served %.2f %% of the proxy's draws\n",
                100 * (double)results->pool_draws / (double)results->all_draws);
    put_figures(out, results);
    if (results->request->plot != NULL)
        fprintf(out, "\nThe plot is in %s.\n", results->request->plot);
    text_close(out);
}

static struct json_object *load_json(const struct results *results, enum way way)
{
    const struct times *times = &results->drawn[way]->times;
    struct json_object *object = json_object_new_object();
    double each_s = draws_per_s(results, way);
    json_add(object, "timed_draws", json_object_new_uint64(times->count));
    json_add(object, "min_ns", json_object_new_int64(times->min_ns));
    json_add(object, "median_ns", json_object_new_int64(times_quantile(times, 0.5)));
    json_add(object, "p99_ns", json_object_new_int64(times_quantile(times, 0.99)));
    json_add(object, "max_ns", json_object_new_int64(times->max_ns));
    json_add(object, "draws_per_s", json_decimal(each_s, 1));
    json_add(object, "bytes_per_s", json_decimal(each_s * (double)results->request->size_bytes, 1));
    return object;
}

/* null where the token did not permit it. */
static struct json_object *figures_json(const struct results *results)
{
    struct json_object *object = json_object_new_object();
    for (unsigned i = FIGURE_LOAD + 1; i < FIGURES; i++) {
        double straight_ns = mean_ns(results->drawn[STRAIGHT], i),
               ns = mean_ns(results->drawn[PROXIED], i);
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

static void print_json(const struct results *results)
{
    const struct request *request = results->request;
    struct json_object *document = json_object_new_object();
    struct json_object *ratios = json_object_new_object();
    json_add(document, "size", json_object_new_uint64(request->size_bytes));
    json_add(document, "threads", json_object_new_uint64(request->threads));
    json_add(document, "seconds", json_object_new_uint64(request->seconds));
    json_add(document, "simulate_ns", json_object_new_int64(request->simulate_ns));
    json_add(document, "token", json_text(results->drawn[STRAIGHT]->label));
    json_add(document, "straight", load_json(results, STRAIGHT));
    json_add(document, "proxy", load_json(results, PROXIED));
    json_add(document, "pool_share",
             results->all_draws > 0
                 ? json_decimal((double)results->pool_draws / (double)results->all_draws, 6)
                 : NULL);
    json_add(ratios, "draws_per_s",
             json_decimal(ratio(draws_per_s(results, PROXIED), draws_per_s(results, STRAIGHT)), 3));
    json_add(ratios, "median", json_decimal(median_ratio(results), 3));
    json_add(document, "ratio", ratios);
    json_add(document, "figures", figures_json(results));
    json_add(document, "warm_ns",
             json_decimal(results->drawn[PROXIED]->figures[FIGURE_SMALL].least_ns, 1));
    json_add(document, "floor_ns", json_decimal(floor_ns(), 1));
    json_write(stdout, document, JSON_PRETTY);
}

void results_print(const struct results *results)
{
    if (results->request->common.json)
        print_json(results);
    else
        print_text(results);
}
