/* bench_plot.c - the latencies as an SVG picture, which gnuplot draws. */
#include "bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum { BLOCK_BYTES = 4096, TAIL_BYTES = 16 };

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

static bool has_gnuplot(void)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool has = nowhere >= 0 && run_gnuplot(nowhere, nowhere, (char *)"--version");

    if (nowhere >= 0)
        close(nowhere);
    return has;
}

/* Without making it: there is no picture yet. */
static bool can_be_written(const char *path)
{
    char folder[PATH_MAX];

    if (access(path, W_OK) == 0)
        return true;
    if (errno != ENOENT)
        return false;
    snprintf(folder, sizeof folder, "%s", path);
    return access(dirname(folder), W_OK | X_OK) == 0;
}

bool plot_is_possible(const char *path, struct message *message)
{
    if (!has_gnuplot())
        message_set(message, "--plot needs gnuplot, which is not installed or does not run");
    else if (!can_be_written(path))
        message_set(message, "cannot be written (%m): %s", path);
    else
        return true;
    return false;
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

/* gnuplot does not tell when a disk is full; so it draws into a file of ours, and we look. */
static bool is_whole(FILE *picture)
{
    char last[TAIL_BYTES + 1] = "";
    bool whole = fseek(picture, -(long)TAIL_BYTES, SEEK_END) == 0 &&
                 fread(last, 1, TAIL_BYTES, picture) == TAIL_BYTES &&
                 strstr(last, "</svg>") != NULL;

    rewind(picture);
    return whole;
}

static bool copy_to(const char *path, FILE *picture)
{
    char block[BLOCK_BYTES];
    FILE *out = fopen(path, "we");
    bool copied = out != NULL;
    size_t len;

    while (copied && (len = fread(block, 1, sizeof block, picture)) > 0)
        copied = fwrite(block, 1, len, out) == len;
    return out != NULL && fclose(out) == 0 && copied && !ferror(picture);
}

int plot_write(const char *path, const struct load *load, const struct drawn *straight,
               const struct drawn *proxied, struct message *message)
{
    FILE *script = tmpfile();
    FILE *picture = tmpfile();
    int rc = -EIO;

    if (script == NULL || picture == NULL) {
        message_set(message, "no temporary file can be made: %m");
        goto done;
    }
    put_script(script, load, straight, proxied);
    rewind(script);
    if (ferror(script) || !run_gnuplot(fileno(script), fileno(picture), NULL) || !is_whole(picture))
        message_set(message, "gnuplot did not draw it: %s", path);
    else if (!copy_to(path, picture))
        message_set(message, "cannot be written (%m): %s", path);
    else
        rc = 0;
done:
    if (script != NULL)
        fclose(script);
    if (picture != NULL)
        fclose(picture);
    return rc;
}
