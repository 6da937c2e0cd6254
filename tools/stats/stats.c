/* stats.c - p11-proxy stats: live counters of the processes that use the proxy. */
#include "stats/stats.h"
#include "tool.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/words.h"

static const char help[] =
    "usage: p11-proxy stats [--json] [--format=FORMAT] [--watch[=SECONDS]] [PID]...\n\n"
    "Shows what the proxy counts in the processes PID, or in all that use it: draws served\n"
    "from the pool and by the token, fills, drops, refusals, mechanisms used.\n"
    "You see your own processes; root sees those of all users.\n\n"
    "  --format=FORMAT    table (the default), json or openmetrics\n"
    "  --json             the same as --format=json\n"
    "  --watch[=SECONDS]  again every second, or every 0.1 to 3600 seconds, with rates; q ends it\n"
    "  --help             show this\n"
    "  --version          show the version\n\n"
    "Exit code: 0 shown, or no process uses it; 1 a PID cannot be shown; 2 wrong usage.\n";

#define PERIOD_LEAST_S 0.1
#define PERIOD_MOST_S  3600

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_METRICS };

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

uint64_t stats_call_ns(const struct statistics_pool *pool)
{
    return pool->pool_draws > 0
               ? statistics_call_ns(pool, pool->pool_drawn_bytes / pool->pool_draws)
               : 0;
}

uint64_t stats_saved_ns(const struct statistics_pool *pool)
{
    uint64_t saved_ns;
    if (__builtin_mul_overflow(stats_call_ns(pool), statistic_read(&pool->pool_draws), &saved_ns))
        saved_ns = UINT64_MAX;
    return saved_ns;
}

bool stats_has(const struct statistics *counters, enum statistics_flag flag)
{
    return (counters->flags & flag) != 0;
}

const char *stats_policy_word(const struct statistics *counters)
{
    return stats_has(counters, STATISTICS_AUDIT)    ? "audit"
           : stats_has(counters, STATISTICS_POLICY) ? "enforce"
                                                    : "none";
}

const char *stats_trust_word(uint64_t trust)
{
    return trust == STATISTICS_TRUSTED   ? "trusted"
           : trust == STATISTICS_SUSPECT ? "suspect"
                                         : "latched";
}

static int show_once(const struct stats_watch *what, int format)
{
    struct counted_list list;
    bool all_shown = counters_find(&list, what->pids, what->pids_count, stderr);
    if (format == FORMAT_JSON)
        stats_json(stdout, &list);
    else if (format == FORMAT_METRICS)
        stats_metrics(stdout, &list);
    else
        stats_table(stdout, &list, /* before= */ NULL, wants_colour(stdout));
    if (what->pids_count == 0)
        counters_put_notes(stderr, "p11-proxy stats: ", &list);
    counters_free(&list);
    return end_of_output(all_shown ? EXIT_FINE : EXIT_BAD);
}

int stats_command(int argc, char **argv)
{
    static const struct option options[] = {
        {"format", required_argument, NULL, 'f'},
        {"watch", optional_argument, NULL, 'w'},
        OPTION_JSON,
        OPTIONS_OF_ALL,
    };
    int format = -1; /* enum format; none was named */
    struct stats_watch what = {.period_ns = NS_PER_S};
    struct common_options common = {.json = false};
    bool watches = false;
    int option, code;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option == 'f')
            format = word_number(optarg, "table, json, openmetrics");
        if (option == 'f' && format < 0)
            return usage_error(argv[0], "--format is not table, json or openmetrics: '%s'", optarg);
        if (option == 'w' && optarg != NULL && !parse_period(optarg, &what.period_ns))
            return usage_error(argv[0], "--watch is not a number of seconds from 0.1 to 3600: '%s'",
                               optarg);
        watches |= option == 'w';
        code =
            option == 'f' || option == 'w' ? GO_ON : common_option(option, argv[0], help, &common);
        if (code != GO_ON)
            return code;
    }
    if (common.json && format >= 0 && format != FORMAT_JSON)
        return usage_error(argv[0], "--json does not go with another --format");
    if (common.json)
        format = FORMAT_JSON;
    if (watches && format == FORMAT_METRICS)
        return usage_error(argv[0], "--watch does not go with --format=openmetrics");

    pid_t *pids = calloc((size_t)(argc - optind) + 1, sizeof pids[0]); /* until the program ends */
    for (; pids != NULL && optind < argc; optind++) {
        const char *rest;
        unsigned long number;
        if (!parse_number(argv[optind], 1, INT_MAX, &number, &rest) || *rest != '\0')
            return usage_error(argv[0], "no process has this number: '%s'", argv[optind]);
        pids[what.pids_count++] = (pid_t)number;
    }
    what.pids = pids;
    what.json = format == FORMAT_JSON;
    return watches ? stats_watch(&what) : show_once(&what, format);
}
