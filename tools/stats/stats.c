/* stats.c - p11-proxy stats: live counters of the processes that use the proxy. */
#include "stats/stats.h"
#include "tool.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const char help[] =
    "usage: p11-proxy stats [--json] [--format=FORMAT] [--watch[=SECONDS]] [PID]...\n\n"
    "Shows what the proxy counts in the processes PID, or in all that use it: draws served\n"
    "from the pool and by the token, refills, drops, refusals, mechanisms used.\n"
    "Your own processes; root sees those of all users.\n\n"
    "  --format=FORMAT    table (the default), json or openmetrics\n"
    "  --json             the same as --format=json\n"
    "  --watch[=SECONDS]  again and again, each second or 0.1 to 3600, with rates; q ends it\n"
    "  --help             show this\n"
    "  --version          show the version\n\n"
    "Exit code: 0 shown, or no process uses it; 1 a PID cannot be shown; 2 wrong usage.\n";

#define PERIOD_LEAST_S 0.1
#define PERIOD_MOST_S  3600

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_METRICS, FORMATS }; /* the last: none was named */

struct request {
    enum format format;
    bool wants_json; /* --json */
    bool watches;
    int64_t period_ns;
    pid_t *pids;
    size_t pids_count;
};

static bool parse_format(const char *text, enum format *format)
{
    static const char *const words[FORMATS] = {"table", "json", "openmetrics"};

    for (unsigned i = 0; i < FORMATS; i++) {
        if (strcmp(text, words[i]) == 0) {
            *format = (enum format)i;
            return true;
        }
    }
    return false;
}

static bool parse_period(const char *text, int64_t *period_ns)
{
    char *rest;
    double seconds = strtod(text, &rest);

    if (text[strspn(text, "0123456789.")] != '\0' || rest == text || *rest != '\0' ||
        seconds < PERIOD_LEAST_S || seconds > PERIOD_MOST_S)
        return false;
    *period_ns = (int64_t)(seconds * (double)NS_PER_S);
    return true;
}

static bool parse_pid(const char *text, pid_t *pid)
{
    char *rest;

    errno = 0;
    long number = strtol(text, &rest, 10);
    if (!isdigit((unsigned char)text[0]) || *rest != '\0' || errno != 0 || number < 1 ||
        number > INT_MAX)
        return false;
    *pid = (pid_t)number;
    return true;
}

static int show_once(const struct request *request)
{
    struct stats_list list;
    bool all_shown = stats_find(&list, request->pids, request->pids_count, stderr);

    if (request->format == FORMAT_JSON)
        stats_json(stdout, &list);
    else if (request->format == FORMAT_METRICS)
        stats_metrics(stdout, &list);
    else
        stats_table(stdout, &list, /* before= */ NULL, wants_colour(stdout));
    if (request->pids_count == 0)
        stats_put_notes(stderr, "p11-proxy stats: ", &list);
    stats_list_free(&list);
    return end_of_output(all_shown ? EXIT_FINE : EXIT_BAD);
}

static int show(const struct request *request)
{
    const struct stats_watch watch = {
        .pids = request->pids,
        .pids_count = request->pids_count,
        .period_ns = request->period_ns,
        .json = request->format == FORMAT_JSON,
    };

    return request->watches ? stats_watch(&watch) : show_once(request);
}

/* Those that are named. A usage error if one is no number. */
static int run(struct request *request, const char *command, char **names, size_t count)
{
    int code = EXIT_BAD;

    request->pids = calloc(count + 1, sizeof request->pids[0]);
    if (request->pids == NULL) {
        fputs("p11-proxy stats: out of memory\n", stderr);
        return code;
    }
    while (request->pids_count < count &&
           parse_pid(names[request->pids_count], &request->pids[request->pids_count]))
        request->pids_count++;
    if (request->pids_count < count)
        code = usage_error(command, "no process has this number: '%s'", names[request->pids_count]);
    else
        code = show(request);
    free(request->pids);
    return code;
}

int stats_command(int argc, char **argv)
{
    static const struct option options[] = {
        {"format", required_argument, NULL, 'f'},
        {"watch", optional_argument, NULL, 'w'},
        OPTION_JSON,
        OPTIONS_OF_ALL,
    };
    struct request request = {.format = FORMATS, .period_ns = NS_PER_S};
    struct common_options unused;
    int option, code;

    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 'f':
            if (!parse_format(optarg, &request.format))
                return usage_error(argv[0], "--format is not table, json or openmetrics: '%s'",
                                   optarg);
            break;
        case 'j':
            request.wants_json = true;
            break;
        case 'w':
            request.watches = true;
            if (optarg != NULL && !parse_period(optarg, &request.period_ns))
                return usage_error(
                    argv[0], "--watch is not a number of seconds from 0.1 to 3600: '%s'", optarg);
            break;
        default:
            code = common_option(option, argv[0], help, &unused);
            if (code != GO_ON)
                return code;
        }
    }
    if (request.wants_json && request.format != FORMATS && request.format != FORMAT_JSON)
        return usage_error(argv[0], "--json does not go with another --format");
    if (request.format == FORMATS)
        request.format = request.wants_json ? FORMAT_JSON : FORMAT_TABLE;
    if (request.watches && request.format == FORMAT_METRICS)
        return usage_error(argv[0], "--watch does not go with --format=openmetrics");
    return run(&request, argv[0], argv + optind, (size_t)(argc - optind));
}
