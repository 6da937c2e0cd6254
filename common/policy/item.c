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

bool sizes_deny(const struct sizes *sizes, uint64_t bits)
{
    for (size_t i = 0; i < sizes->count; i++) {
        uint64_t other = sizes->condition[i].bits;
        int is = bits < other ? BELOW : bits == other ? EQUAL : ABOVE;
        if (!(sizes->condition[i].met & is))
            return false;
    }
    return true;
}

uint64_t sizes_next(const struct sizes *sizes, uint64_t bits)
{
    uint64_t next = BITS_UNKNOWN;

    for (size_t i = 0; i < sizes->count; i++)
        for (uint64_t at = sizes->condition[i].bits, end = at + 1; at <= end; at++)
            next = at > bits && at < next ? at : next;
    return next;
}

bool sizes_can_deny(const struct sizes *sizes)
{
    uint64_t bits = 0;

    while (bits != BITS_UNKNOWN && !sizes_deny(sizes, bits))
        bits = sizes_next(sizes, bits);
    return bits != BITS_UNKNOWN;
}

static const char *read_key_size(struct sizes *sizes, const char **at)
{
    static const struct {
        const char *text;
        uint8_t met;
    } operators[] = {{"<=", BELOW | EQUAL}, {"<", BELOW},          {"==", EQUAL},
                     {"!=", BELOW | ABOVE}, {">=", EQUAL | ABOVE}, {">", ABOVE}};
    const size_t count = sizeof operators / sizeof *operators;
    size_t i = 0;
    char *end;

    while (i < count && strncmp(*at, operators[i].text, strlen(operators[i].text)) != 0)
        i++;
    if (i == count)
        return "has no <=, <, ==, !=, >= or > behind keySize";
    const char *digits = skip_blanks(*at + strlen(operators[i].text));
    unsigned long bits = strtoul(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || bits > UINT32_MAX)
        return "has no number of bits behind keySize and its operator";
    if (sizes->count == SIZES_MAX)
        return "has more conditions than can be held";
    sizes->condition[sizes->count].bits = (uint32_t)bits;
    sizes->condition[sizes->count++].met = operators[i].met;
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
        return read_key_size(&rule->sizes, at);
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
