/* stats.c - p11-proxy stats: live counters of the processes that use the proxy. */
#include "stats/stats.h"
#include "tool.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy/tables.h"

static const char help[] =
    "usage: p11-proxy stats [--json] [--format=FORMAT] [--watch[=SECONDS]] [PID]...\n\n"
    "Shows what the proxy counts in the processes PID, or in all that use it: draws served\n"
    "from the pool and by the token, fills, drops, refusals.\n"
    "You see your own processes; root sees those of all users.\n\n"
    "  --format=FORMAT    table (the default), json or openmetrics\n"
    "  --json             the same as --format=json\n"
    "  --watch[=SECONDS]  again every second, or every 1 to 3600 seconds\n"
    "  --help             show this\n"
    "  --version          show the version\n\n"
    "Exit code: 0 shown, or no process uses it; 1 a PID cannot be shown; 2 wrong usage.\n";

#define DRAW_ANEW "\033[H\033[2J" /* at the top of an empty screen */

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_METRICS };

struct request {
    int format; /* enum format */
    unsigned long period_s;
    bool watches;
    const pid_t *pids; /* as for counters_find() */
    size_t pids_count;
};

const char *stats_policy_word(const struct statistics *counters)
{
    return counters->flags & STATISTICS_AUDIT    ? "audit"
           : counters->flags & STATISTICS_POLICY ? "enforce"
                                                 : "none";
}

const char *stats_mechanism(uint64_t mechanism, char text[MECHANISM_BYTES])
{
    return mechanism == STATISTICS_NO_MECHANISM ? "key"
                                                : mechanism_name(mechanism, text, MECHANISM_BYTES);
}

/* Whether stdout is a terminal that can move. */
static bool is_screen(void)
{
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
}

/* Of processes that the list only counts. */
static void put_notes(const struct counted_list *list)
{
    if (list->count == 0)
        fprintf(stderr,
                "p11-proxy stats: no process that may be read uses the proxy; not readable: %zu\n",
                list->forbidden);
    if (list->strange > 0)
        fprintf(stderr,
                "p11-proxy stats: with counters of another kind: %zu; name one to see why\n",
                list->strange);
}

/* Once, or until stdout is closed or none of the processes that were named can be shown. */
static int show(const struct request *what)
{
    bool redraws = what->watches && what->format == FORMAT_TABLE && is_screen();
    struct counted_list list;
    bool all_shown = counters_find(&list, what->pids, what->pids_count, /* complains= */ true);
    int code;
    do {
        if (what->format == FORMAT_JSON)
            stats_json(&list);
        else if (what->format == FORMAT_METRICS)
            stats_metrics(&list);
        else {
            fputs(redraws ? DRAW_ANEW : "", stdout);
            stats_table(&list);
            fputs(what->watches && !redraws ? "\n" : "", stdout);
        }
        code = end_of_output(all_shown ? EXIT_FINE : EXIT_BAD);
        if (what->pids_count == 0 && !(what->watches && what->format == FORMAT_JSON))
            put_notes(&list);
        if (!what->watches || ferror(stdout))
            break;
        sleep((unsigned)what->period_s);
        counters_free(&list);
        counters_find(&list, what->pids, what->pids_count, /* complains= */ false);
    } while (what->pids_count == 0 || list.count > 0);
    counters_free(&list);
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
    struct request what = {.format = FORMAT_TABLE, .period_s = 1};
    int option;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 'j':
            what.format = FORMAT_JSON;
            break;
        case 'f':
            what.format = word_number(optarg, "table, json, openmetrics");
            if (what.format < 0)
                usage_error(argv[0], "--format is not table, json or openmetrics: '%s'", optarg);
            break;
        case 'w':
            what.watches = true;
            if (optarg != NULL && !parse_number(optarg, 3600, &what.period_s))
                usage_error(argv[0], "--watch is not a number from 1 to 3600: '%s'", optarg);
            break;
        default:
            common_option(option, argv[0], help, &(struct common_options){0});
        }
    }
    if (what.watches && what.format == FORMAT_METRICS)
        usage_error(argv[0], "--watch does not go with --format=openmetrics");

    pid_t *pids = calloc((size_t)(argc - optind) + 1, sizeof pids[0]); /* until the program ends */
    for (; pids != NULL && optind < argc; optind++) {
        unsigned long number;
        if (!parse_number(argv[optind], INT_MAX, &number))
            usage_error(argv[0], "no process has this number: '%s'", argv[optind]);
        pids[what.pids_count++] = (pid_t)number;
    }
    what.pids = pids;
    return show(&what);
}
