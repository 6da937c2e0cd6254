/* plot.c - the latencies as an SVG picture, which gnuplot draws. */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { TAIL_BYTES = 16, CURVE_POINTS = 1000 };

bool plot_is_possible(const char *path, struct message *message)
{
    if (system("gnuplot --version >/dev/null 2>&1") != 0)
        message_set(message, "--plot needs gnuplot, which is not installed or does not run");
    else if (!can_be_written(path, 0))
        message_set(message, "cannot be written (%m): %s", path);
    else
        return true;
    return false;
}

/* For each time the share of draws that took no longer. */
static void put_curve(FILE *script, const struct times *times)
{
    for (int i = 0; i <= CURVE_POINTS; i++) {
        double share = (double)i / CURVE_POINTS;
        fprintf(script, "%.4f %.4f\n", (double)(times_quantile(times, share) + 1) / 1000,
                100 * share);
    }
    fputs("e\n", script);
}

static void put_script(FILE *script, const struct results *results)
{
    const struct request *request = results->request;
    fputs("set terminal svg size 900,540 background 'white'\nset output '", script);
    for (const char *at = request->plot; *at != '\0'; at++)
        fprintf(script, *at == '\'' ? "''" : "%c", *at);
    fprintf(script, "'\nset title 'C\\_GenerateRandom, %lu bytes, %lu thread%s",
            request->size_bytes, request->threads, request->threads == 1 ? "" : "s");
    if (request->simulate_ns > 0)
        fprintf(script, ", token made %g ms slower", (double)request->simulate_ns / NS_PER_MS);
    fputs("'\n"
          "set xlabel 'at most so many microseconds'\n"
          "set ylabel 'percent of the draws'\n"
          "set logscale x\nset grid\nset key outside bottom center horizontal\n"
          "set yrange [0:100]\n"
          "plot '-' with lines lw 2 title 'straight', "
          "'-' with lines lw 2 title 'through the proxy'\n",
          script);
    for (int i = 0; i < WAYS; i++)
        put_curve(script, &results->drawn[i]->times);
}

/* gnuplot ends well on a full disk, too. */
static bool is_whole(const char *path)
{
    char last[TAIL_BYTES + 1] = "";
    FILE *picture = fopen(path, "re");
    bool whole = picture != NULL && fseek(picture, -(long)TAIL_BYTES, SEEK_END) == 0 &&
                 fread(last, 1, TAIL_BYTES, picture) == TAIL_BYTES &&
                 strstr(last, "</svg>") != NULL;
    if (picture != NULL)
        fclose(picture);
    return whole;
}

bool plot_write(const struct results *results, struct message *message)
{
    const char *path = results->request->plot;
    FILE *gnuplot = popen("gnuplot", "we");
    if (gnuplot != NULL) {
        put_script(gnuplot, results);
        if (pclose(gnuplot) == 0 && is_whole(path))
            return true;
    }
    message_set(message, "gnuplot could not draw %s", path);
    return false;
}
