/* item.c - parses one item of a list: "Name keySize < 2048 & denyAfter 2030-01-01". */
#include "policy/internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DAY_S      86400
#define DATE_BYTES (sizeof "YYYY-MM-DD")

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " ");
}

/* Where the text goes on behind the word; NULL if it does not begin with it. */
static const char *behind(const char *at, const char *word)
{
    size_t len = strlen(word);
    bool same = same_text(at, word, len);
    return same && (lower(at[len]) < 'a' || lower(at[len]) > 'z') ? skip_blanks(at + len) : NULL;
}

static bool is_condition(const char *at)
{
    return behind(at, "keySize") || behind(at, "denyAfter") || behind(at, "usage") ||
           behind(at, "jdkCA");
}

static const char *read_key_size(struct rule *rule, const char **at)
{
    static const char *const operators[] = {"<=", "<", "==", "!=", ">=", ">"};
    enum { AT_MOST, BELOW, EQUAL, UNEQUAL, AT_LEAST, ABOVE, OPERATORS } is = AT_MOST;
    struct sizes *sizes = &rule->sizes;
    char *end;

    while (is < OPERATORS && strncmp(*at, operators[is], strlen(operators[is])) != 0)
        is++;
    if (is == OPERATORS)
        return "has no <=, <, ==, !=, >= or > behind keySize";
    const char *digits = skip_blanks(*at + strlen(operators[is]));
    unsigned long bits = strtoul(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || bits > UINT32_MAX)
        return "has no number of bits behind keySize and its operator";
    if (is == UNEQUAL && sizes->but != BITS_UNKNOWN)
        return "has more than one !=";
    if (is == UNEQUAL)
        sizes->but = bits;
    uint64_t from = is == ABOVE ? bits + 1 : is == AT_LEAST || is == EQUAL ? bits : 0;
    uint64_t to = is == BELOW ? bits : is == AT_MOST || is == EQUAL ? bits + 1 : BITS_UNKNOWN;
    sizes->min = from > sizes->min ? from : sizes->min;
    sizes->end = to < sizes->end ? to : sizes->end;
    rule->has_sizes = true;
    *at = end;
    return NULL;
}

/* timegm() takes 30 February for 2 March, so what it made of the date is compared. */
static const char *read_date(struct rule *rule, const char **at)
{
    char date[DATE_BYTES] = "", again[DATE_BYTES] = "";
    struct tm tm = {0};

    strncpy(date, *at, sizeof date - 1);
    const char *end = strptime(date, "%Y-%m-%d", &tm);
    int64_t from_s = (int64_t)timegm(&tm) + DAY_S;
    if (end == NULL || strftime(again, sizeof again, "%Y-%m-%d", &tm) == 0 ||
        strcmp(date, again) != 0 || tm.tm_year + 1900 < 1)
        return "has no date YYYY-MM-DD behind denyAfter";
    *at += strlen(date);
    if (!rule->has_date || from_s > rule->from_s)
        rule->from_s = from_s; /* all conditions must be met, so the latest date counts */
    rule->has_date = true;
    return NULL;
}

static const char *read_condition(struct rule *rule, const char **at)
{
    const char *from = *at;

    if ((*at = behind(from, "keySize")) != NULL)
        return read_key_size(rule, at);
    if ((*at = behind(from, "denyAfter")) != NULL)
        return read_date(rule, at);
    rule->certificates_only = true;
    if ((*at = behind(from, "jdkCA")) != NULL)
        return NULL;
    if ((*at = behind(from, "usage")) == NULL)
        return "has no keySize, denyAfter, usage or jdkCA where a condition begins";
    size_t len = strcspn(*at, "&");
    *at += len;
    return len == 0 ? "has no usage behind usage" : NULL;
}

const char *item_parse(struct rule *rule, const char *text)
{
    const char *at = text;

    rule->name = text;
    rule->name_len = strlen(text);
    rule->sizes = (struct sizes){.end = BITS_UNKNOWN, .but = BITS_UNKNOWN};
    /* The first word is the name, even if it looks like a condition. */
    while ((at = strchr(at, ' ')) != NULL && !is_condition(at + 1))
        at++;
    if (at == NULL)
        return NULL;
    rule->name_len = (size_t)(at - text);
    do {
        at = skip_blanks(at + 1);
        const char *wrong = read_condition(rule, &at);
        if (wrong != NULL)
            return wrong;
        at = skip_blanks(at);
    } while (*at == '&');
    return *at != '\0' ? "has no & between its conditions" : NULL;
}
