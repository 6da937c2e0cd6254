/* stats_units.c - numbers and times for people. */
#include "stats/stats.h"

#include <inttypes.h>
#include <time.h>

#include "base/clock.h"

enum { NUMBER_BYTES = 32 }; /* 20 digits, commas and NUL */

/* 1234567 as 1,234,567. */
static const char *number(char text[NUMBER_BYTES], uint64_t value)
{
    char *at = text + NUMBER_BYTES - 1;
    unsigned digits = 0;

    *at = '\0';
    do {
        if (digits > 0 && digits % 3 == 0)
            *--at = ',';
        *--at = (char)('0' + value % 10);
        value /= 10;
        digits++;
    } while (value > 0);
    return at;
}

void stats_put_number(FILE *out, uint64_t value)
{
    char text[NUMBER_BYTES];

    fputs(number(text, value), out);
}

void stats_put_right(FILE *out, uint64_t value)
{
    char text[NUMBER_BYTES];

    fprintf(out, "%*s", STATS_NUMBER_WIDTH, number(text, value));
}

void stats_put_duration(FILE *out, uint64_t ns)
{
    static const struct {
        const char *word;
        uint64_t seconds;
    } units[] = {{"d", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}};
    uint64_t seconds = ns / (uint64_t)NS_PER_S;
    size_t unit = 0;

    if (ns < (uint64_t)NS_PER_MS)
        fprintf(out, "%.1f us", (double)ns / 1000);
    else if (seconds == 0)
        fprintf(out, "%.1f ms", (double)ns / NS_PER_MS);
    else if (seconds < 60)
        fprintf(out, "%.1f s", (double)ns / NS_PER_S);
    if (seconds < 60)
        return;
    while (seconds < units[unit].seconds)
        unit++;
    stats_put_number(out, seconds / units[unit].seconds);
    fprintf(out, " %s", units[unit].word);
    seconds = seconds % units[unit].seconds / units[unit + 1].seconds;
    if (seconds > 0)
        fprintf(out, " %" PRIu64 " %s", seconds, units[unit + 1].word);
}

void stats_put_age(FILE *out, uint64_t began_s)
{
    uint64_t now_s = (uint64_t)time(NULL);
    uint64_t age_s = now_s > began_s ? now_s - began_s : 0;

    if (age_s < 60)
        fprintf(out, "%" PRIu64 " s", age_s);
    else
        stats_put_duration(out, age_s * (uint64_t)NS_PER_S);
}
