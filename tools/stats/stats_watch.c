/* stats_watch.c - p11-proxy stats --watch: in place on a terminal, else one block after another. */
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

/* The alternate screen, no cursor, long lines cut; and all of it back. */
#define ENTER_SCREEN "\033[?1049h\033[?25l\033[?7l"
#define LEAVE_SCREEN "\033[?7h\033[?25h\033[?1049l"

enum { ROWS_IF_UNKNOWN = 24 };

struct watcher {
    const struct stats_watch *watch;
    int signal_fd;
    bool has_screen; /* stdout is a terminal that can be redrawn */
    bool has_keys;   /* and stdin is one too */
    struct termios keys_before;
};

enum waited { WAITED, WAS_ENDED };

static bool can_redraw(const struct stats_watch *watch)
{
    const char *term = getenv("TERM");

    return !watch->json && isatty(STDOUT_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
}

static void enter(struct watcher *watcher)
{
    struct termios keys;

    watcher->has_keys = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
                        tcgetattr(STDIN_FILENO, &watcher->keys_before) == 0;
    if (watcher->has_keys) {
        keys = watcher->keys_before;
        keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    if (watcher->has_screen)
        fputs(ENTER_SCREEN, stdout);
}

static void leave(struct watcher *watcher)
{
    if (watcher->has_screen)
        fputs(LEAVE_SCREEN, stdout);
    fflush(stdout);
    if (watcher->has_keys)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &watcher->keys_before);
}

/* Signals that it answers come one by one, and none in the midst of drawing. What is ignored stays
 * so. */
static int open_signals(bool has_screen)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action;
    sigset_t answered;

    sigemptyset(&answered);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (sigaction(ends[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&answered, ends[i]);
    }
    if (has_screen) {
        sigaddset(&answered, SIGTSTP);
        sigaddset(&answered, SIGWINCH);
    }
    sigprocmask(SIG_BLOCK, &answered, NULL);
    signal(SIGPIPE, SIG_IGN); /* that nobody reads any more is the end, and no error */
    return signalfd(-1, &answered, SFD_CLOEXEC);
}

static enum waited answer_signal(struct watcher *watcher)
{
    struct signalfd_siginfo signal_info;

    if (read(watcher->signal_fd, &signal_info, sizeof signal_info) != sizeof signal_info)
        return WAS_ENDED;
    if (signal_info.ssi_signo == SIGWINCH)
        return WAITED;
    if (signal_info.ssi_signo != SIGTSTP)
        return WAS_ENDED;
    leave(watcher);
    raise(SIGSTOP);
    enter(watcher);
    return WAITED;
}

static enum waited answer_key(void)
{
    char key;
    ssize_t bytes = read(STDIN_FILENO, &key, 1);

    return bytes != 1 || key == 'q' || key == 'Q' ? WAS_ENDED : WAITED;
}

/* Until it is time to show it again. */
static enum waited wait_for(struct watcher *watcher, int64_t until_ns)
{
    struct pollfd fds[] = {
        {.fd = watcher->signal_fd, .events = POLLIN},
        {.fd = STDOUT_FILENO}, /* tells when it closes */
        {.fd = watcher->has_keys ? STDIN_FILENO : -1, .events = POLLIN},
    };
    int64_t left_ns;

    while ((left_ns = until_ns - clock_exact_ns()) > 0) {
        const struct timespec left = {.tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S};
        int ready = ppoll(fds, sizeof fds / sizeof fds[0], &left, NULL);
        if (ready < 0 && errno != EINTR)
            return WAS_ENDED;
        if (ready <= 0)
            continue;
        if (fds[1].revents != 0)
            return WAS_ENDED;
        if (fds[0].revents != 0)
            return answer_signal(watcher);
        if (fds[2].revents != 0 && answer_key() == WAS_ENDED)
            return WAS_ENDED;
    }
    return WAITED;
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

/* As many lines of text as there is room for. */
static void draw(const char *text)
{
    struct winsize size = {0};
    unsigned rows = ROWS_IF_UNKNOWN;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1)
        rows = size.ws_row;
    fputs("\033[H", stdout);
    for (unsigned row = 1; *text != '\0' && row < rows; row++) {
        size_t len = strcspn(text, "\n");
        fwrite(text, 1, len, stdout);
        fputs("\033[K\n", stdout);
        text += len + (text[len] == '\n');
    }
    fputs(*text != '\0' ? "...\033[J" : "\033[J", stdout);
}

static void put_block(FILE *out, const struct watcher *watcher, const struct stats_list *list,
                      const struct stats_list *before)
{
    bool none_named = watcher->watch->pids_count == 0;

    if (watcher->has_screen)
        put_title(out, watcher->watch);
    stats_table(out, list, before, wants_colour(stdout));
    if (none_named)
        stats_put_notes(out, "", list);
    if (!watcher->has_screen)
        putc('\n', out);
}

/* In memory first, so that a terminal gets it in one piece. */
static void redraw(const struct watcher *watcher, const struct stats_list *list,
                   const struct stats_list *before)
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *out = open_memstream(&text, &text_bytes);

    if (out == NULL)
        return;
    put_block(out, watcher, list, before);
    if (fclose(out) == 0)
        draw(text);
    free(text);
}

static void show(const struct watcher *watcher, const struct stats_list *list,
                 const struct stats_list *before)
{
    if (watcher->watch->json)
        stats_json(stdout, list);
    else if (watcher->has_screen)
        redraw(watcher, list, before);
    else
        put_block(stdout, watcher, list, before);
}

/* list is what was found first, and is freed. False if output could not be written. */
static bool go_on(struct watcher *watcher, struct stats_list *list)
{
    const struct stats_watch *watch = watcher->watch;
    struct stats_list before = {.count = 0};
    int64_t next_ns = clock_exact_ns();
    bool written;

    for (;;) {
        show(watcher, list, before.count > 0 ? &before : NULL);
        stats_list_free(&before);
        before = *list;
        /* A slow look at many processes is not made up for by looks without a pause. */
        next_ns += watch->period_ns;
        if (next_ns < clock_exact_ns())
            next_ns = clock_exact_ns() + watch->period_ns;
        written = fflush(stdout) == 0 || errno == EPIPE;
        if (ferror(stdout) || wait_for(watcher, next_ns) == WAS_ENDED)
            break;
        stats_find(list, watch->pids, watch->pids_count, /* complaints= */ NULL);
        if (watch->pids_count > 0 && list->count == 0) {
            stats_list_free(list);
            break;
        }
    }
    stats_list_free(&before);
    return written;
}

int stats_watch(const struct stats_watch *watch)
{
    struct watcher watcher = {.watch = watch, .has_screen = can_redraw(watch)};
    struct stats_list list;
    bool all_shown = stats_find(&list, watch->pids, watch->pids_count, stderr);

    if (watch->pids_count > 0 && list.count == 0) {
        stats_list_free(&list);
        return EXIT_BAD;
    }
    watcher.signal_fd = open_signals(watcher.has_screen);
    enter(&watcher);
    bool written = go_on(&watcher, &list);
    int reason = errno;
    leave(&watcher);
    close(watcher.signal_fd);
    if (!written)
        fprintf(stderr, "p11-proxy stats: cannot write: %s\n", strerror(reason));
    return all_shown && written ? EXIT_FINE : EXIT_BAD;
}
