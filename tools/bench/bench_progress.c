/* bench_progress.c - the bar that tells how far p11-proxy bench is: on a terminal, and gone in the end. */
#include "bench/bench.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    CELLS_MOST = 40,
    CELLS_LEAST = 4,
    FRAME_COLUMNS = 8, /* of "[] 100%", and the last column stays free: in it some terminals wrap */
    COLUMNS_IF_UNKNOWN = 80,
    LINE_BYTES = CELLS_MOST + FRAME_COLUMNS + 2
};

/* What removes the bar from its line; "" while there is none. A signal's handler writes it. */
static char eraser[LINE_BYTES];

static void erase(void)
{
    if (eraser[0] != '\0' && write(STDERR_FILENO, eraser, strlen(eraser)) < 0)
        eraser[0] = '\0'; /* the terminal is gone */
}

/* Leaves the shell a clean line, and ends as if it had not been here: SA_RESETHAND. */
static void end_by(int signal_number)
{
    erase();
    raise(signal_number);
}

static void hear_ends(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action;

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (sigaction(ends[i], NULL, &action) != 0 || action.sa_handler != SIG_DFL)
            continue; /* what is ignored stays so */
        action.sa_handler = end_by;
        action.sa_flags = (int)SA_RESETHAND;
        sigaction(ends[i], &action, NULL);
    }
}

/* How many cells the bar has; 0: there is none. */
static int cells_in_all(void)
{
    const char *term = getenv("TERM");
    struct winsize size = {0};
    int columns = COLUMNS_IF_UNKNOWN, cells;

    if (!isatty(STDERR_FILENO) || term == NULL || strcmp(term, "dumb") == 0)
        return 0;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        columns = size.ws_col;
    cells = columns - FRAME_COLUMNS;
    return cells < CELLS_LEAST ? 0 : cells < CELLS_MOST ? cells : CELLS_MOST;
}

void progress_show(int64_t done_ns, int64_t all_ns)
{
    int all = cells_in_all();
    int percent = done_ns < all_ns ? (int)(100 * done_ns / all_ns) : 100;
    int done = all * percent / 100;

    if (all == 0)
        return;
    if (eraser[0] == '\0')
        hear_ends();
    /* It is as long as the bar before it, in a window that may have changed its width since. */
    erase();
    snprintf(eraser, sizeof eraser, "\r%*s\r", all + FRAME_COLUMNS - 1, "");
    fprintf(stderr, "[%.*s%*s] %3d%%", done, "########################################", all - done,
            "", percent);
}

void progress_end(void)
{
    erase();
    eraser[0] = '\0';
}
