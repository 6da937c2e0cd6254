/* bench_plot.c - the latencies as an SVG picture, which gnuplot draws. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

/* Runs gnuplot with these as its input and output; what it complains of shows on stderr. */
static bool run_gnuplot(int in, int out, char *argument)
{
    char *const argv[] = {(char *)"gnuplot", argument, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    int rc = posix_spawnp(&pid, "gnuplot", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return rc == 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

bool plot_is_possible(void)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool possible = nowhere >= 0 && run_gnuplot(nowhere, nowhere, (char *)"--version");

    if (nowhere >= 0)
        close(nowhere);
    return possible;
}

/* Of each time the share of draws that took no longer. */
static void put_curve(FILE *script, const struct latencies *latencies)
{
    uint64_t seen = 0;

    for (unsigned i = 0; i < LATENCY_PLACES; i++) {
        if (latencies->place[i] == 0)
            continue;
        seen += latencies->place[i];
        fprintf(script, "%.4f %.4f\n", (double)(latencies_place_ns(i) + 1) / 1000,
                100.0 * (double)seen / (double)latencies->count);
    }
    fputs("e\n", script);
}

static void put_script(FILE *script, const struct load *load, const struct drawn *straight,
                       const struct drawn *proxied)
{
    fprintf(script,
            "set terminal svg size 900,540 background 'white'\n"
            "set title 'C\\_GenerateRandom, %zu bytes, %u thread%s",
            load->size_bytes, load->threads, load->threads == 1 ? "" : "s");
    if (load->simulate_ns > 0)
        fprintf(script, ", token made %g ms slower", (double)load->simulate_ns / NS_PER_MS);
    fputs("'\n"
          "set xlabel 'at most so many microseconds'\n"
          "set ylabel 'percent of the draws'\n"
          "set logscale x\nset grid\nset key outside bottom center horizontal\n"
          "set yrange [0:100]\n"
          "plot '-' with lines lw 2 title 'straight', "
          "'-' with lines lw 2 title 'through the proxy'\n",
          script);
    put_curve(script, &straight->latencies);
    put_curve(script, &proxied->latencies);
}

int plot_write(const char *path, const struct load *load, const struct drawn *straight,
               const struct drawn *proxied, struct message *message)
{
    FILE *script = tmpfile();
    int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int rc = script != NULL && out >= 0 ? 0 : -EIO;

    if (rc != 0) {
        message_set(message, "cannot be written (%m): %s", path);
    } else {
        put_script(script, load, straight, proxied);
        rewind(script);
        if (ferror(script) || !run_gnuplot(fileno(script), out, NULL)) {
            message_set(message, "gnuplot did not draw it: %s", path);
            rc = -EIO;
        }
    }
    if (script != NULL)
        fclose(script);
    if (out >= 0 && close(out) != 0 && rc == 0) {
        message_set(message, "cannot be written (%m): %s", path);
        rc = -EIO;
    }
    return rc;
}
