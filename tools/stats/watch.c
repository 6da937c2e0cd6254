/* watch.c - p11-proxy stats --watch: in place on a terminal, else one block after another. */
#include "stats/stats.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tool.h"

#define CLEAR_SCREEN "\033[2J"
#define DRAW_AT_TOP  "\033[H\033[J"
#define CUT_LINES    "\033[?7l" /* at the right edge */
#define WRAP_LINES   "\033[?7h"

enum { ROWS_IF_UNKNOWN = 24 };

/* Signals wait in a descriptor, so none comes while the program draws. What is ignored stays so. */
static int open_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
    struct sigaction action;
    sigset_t awaited;
    sigemptyset(&awaited);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&awaited, numbers[i]);
    }
    signal(SIGPIPE, SIG_IGN); /* a reader that has gone is the end, and no error */
    sigprocmask(SIG_BLOCK, &awaited, NULL);
    return signalfd(-1, &awaited, SFD_CLOEXEC);
}

/* Keys come one by one and unseen. False where no terminal is to be read. */
static bool take_keys(struct termios *before)
{
    struct termios keys;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, before) != 0)
        return false;
    keys = *before;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    return tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
}

/* Until it is time to show it again, or the window has changed. False when it is to end. */
static bool wait_until(int64_t until_ns, bool has_keys, int signals)
{
    struct pollfd fds[] = {{.fd = STDOUT_FILENO}, /* has an event when its reader closes it */
                           {.fd = has_keys ? STDIN_FILENO : -1, .events = POLLIN},
                           {.fd = signals, .events = POLLIN}};
    int64_t left_ns;
    while ((left_ns = until_ns - clock_exact_ns()) > 0) {
        const struct timespec left = {.tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S};
        struct signalfd_siginfo info;
        char key;
        if (ppoll(fds, 3, &left, NULL) <= 0)
            continue;
        if (fds[2].revents != 0)
            return read(signals, &info, sizeof info) == sizeof info && info.ssi_signo == SIGWINCH;
        if (fds[0].revents != 0 || read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q')
            return false;
    }
    return true;
}

static void put_title(FILE *out, const struct stats_watch *watch)
{
    char clock_text[16] = "";
    time_t now_s = time(NULL);
    struct tm now;
    if (localtime_r(&now_s, &now) != NULL)
        strftime(clock_text, sizeof clock_text, "%H:%M:%S", &now);
    fprintf(out, "p11-proxy stats, %s, every %g s; q ends it\n\n", clock_text,
            (double)watch->period_ns / (double)NS_PER_S);
}

static void put_block(FILE *out, const struct stats_watch *watch, const struct counted_list *list,
                      const struct counted_list *before)
{
    stats_table(out, list, before, wants_colour(stdout));
    if (watch->pids_count == 0)
        counters_put_notes(out, "", list);
}

/* As many rows of it as there is room for. */
static void redraw(const struct stats_watch *watch, const struct counted_list *list,
                   const struct counted_list *before)
{
    struct winsize size = {.ws_row = 0};
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *out = open_memstream(&text, &text_bytes);
    if (out == NULL)
        return;
    put_title(out, watch);
    put_block(out, watch, list, before);
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 2)
        size.ws_row = ROWS_IF_UNKNOWN;
    fputs(DRAW_AT_TOP, stdout);
    if (fclose(out) == 0) {
        char *end = text;
        for (int row = 1; row < size.ws_row && *end != '\0'; row++)
            end = strchr(end, '\n') + 1;
        printf(CUT_LINES "%.*s" WRAP_LINES, (int)(end - text), text);
    }
    free(text);
}

static void show(const struct stats_watch *watch, bool redraws, const struct counted_list *list,
                 const struct counted_list *before)
{
    if (watch->json)
        stats_json(stdout, list);
    else if (redraws)
        redraw(watch, list, before);
    else {
        put_block(stdout, watch, list, before);
        putc('\n', stdout);
    }
}

int stats_watch(const struct stats_watch *watch)
{
    const char *term = getenv("TERM");
    bool redraws =
        !watch->json && isatty(STDOUT_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
    struct counted_list list, before = {.count = 0};
    bool all_shown = counters_find(&list, watch->pids, watch->pids_count, stderr);
    int signals = open_signals();
    struct termios keys_before;
    bool has_keys = take_keys(&keys_before), written = true, goes_on = true;
    fputs(redraws ? CLEAR_SCREEN : "", stdout);
    while (goes_on && (watch->pids_count == 0 || list.count > 0)) {
        show(watch, redraws, &list, before.count > 0 ? &before : NULL);
        counters_free(&before);
        before = list;
        list = (struct counted_list){.count = 0};
        written = fflush(stdout) == 0 || errno == EPIPE;
        if (!written)
            fprintf(stderr, "p11-proxy stats: cannot write: %m\n");
        goes_on =
            !ferror(stdout) && wait_until(clock_exact_ns() + watch->period_ns, has_keys, signals);
        if (goes_on)
            counters_find(&list, watch->pids, watch->pids_count, /* complaints= */ NULL);
    }
    counters_free(&list);
    counters_free(&before);
    if (has_keys)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &keys_before);
    return all_shown && written ? EXIT_FINE : EXIT_BAD;
}
