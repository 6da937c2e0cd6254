/* item.c - parses one item of a list: "Name keySize < 2048 & denyAfter 2030-01-01". */
#include "policy/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DAY_S          86400
#define DATE_BYTES     (sizeof "YYYY-MM-DD")
#define VENDOR_DEFINED 0x80000000u

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " ");
}

/* Where the text goes on behind the word; NULL if it does not begin with it. */
static const char *behind(const char *at, const char *word)
{
    size_t len = strlen(word);
    bool same = same_text(at, word, len);
    return same && (lower(at[len]) < 'a' || lower(at[len]) > 'z') ? at + len : NULL;
}

static bool is_condition(const char *at)
{
    return behind(at, "keySize") || behind(at, "denyAfter") || behind(at, "usage") ||
           behind(at, "jdkCA");
}

/* Leaves of the item's denied sizes those that are in one of the ranges too; false if too many. */
static bool narrow(struct item *item, const struct size_range *ranges, size_t count)
{
    struct size_range left[SIZE_RANGES_MAX];
    size_t left_count = 0;

    if (!item->has_sizes)
        item->denied[item->denied_count++] = (struct size_range){0, LARGEST_SIZE};
    item->has_sizes = true;
    for (size_t i = 0; i < item->denied_count; i++) {
        for (size_t j = 0; j < count; j++) {
            struct size_range both = item->denied[i];
            both.from = both.from < ranges[j].from ? ranges[j].from : both.from;
            both.to = both.to > ranges[j].to ? ranges[j].to : both.to;
            if (both.from > both.to)
                continue;
            if (left_count == SIZE_RANGES_MAX)
                return false;
            left[left_count++] = both;
        }
    }
    memcpy(item->denied, left, left_count * sizeof *left);
    item->denied_count = left_count;
    return true;
}

static const char *read_key_size(struct item *item, const char **at)
{
    static const struct {
        char text[3];
        bool below, equal, above; /* which sizes are denied */
    } operators[] = {{"<=", 1, 1, 0}, {"<", 1, 0, 0}, {"==", 0, 1, 0}, {"!=", 1, 0, 1},
                     {">=", 0, 1, 1}, {">", 0, 0, 1}, {"", 0, 0, 0}};
    struct size_range ranges[3];
    size_t i = 0, count = 0;
    uint64_t size = 0;

    *at = skip_blanks(*at);
    while (strncmp(*at, operators[i].text, strlen(operators[i].text)) != 0)
        i++;
    if (operators[i].text[0] == '\0')
        return "has no <=, <, ==, !=, >= or > behind keySize";
    const char *digits = *at = skip_blanks(*at + strlen(operators[i].text));
    for (; **at >= '0' && **at <= '9' && size <= UINT32_MAX; ++*at)
        size = size * 10 + (uint64_t)(**at - '0');
    if (*at == digits || size > UINT32_MAX)
        return "has no number of bits behind keySize and its operator";
    if (operators[i].below && size > 0)
        ranges[count++] = (struct size_range){0, size - 1};
    if (operators[i].equal)
        ranges[count++] = (struct size_range){size, size};
    if (operators[i].above)
        ranges[count++] = (struct size_range){size + 1, LARGEST_SIZE};
    return narrow(item, ranges, count) ? NULL : "has more conditions than can be held";
}

/* timegm() takes 30 February for 2 March, so what it made of the date is compared. */
static const char *read_date(struct item *item, const char **at)
{
    char date[DATE_BYTES] = "", again[DATE_BYTES] = "";
    struct tm tm = {0};

    *at = skip_blanks(*at);
    strncpy(date, *at, sizeof date - 1);
    const char *end = strptime(date, "%Y-%m-%d", &tm);
    int64_t from_s = (int64_t)timegm(&tm) + DAY_S;
    if (end == NULL || strftime(again, sizeof again, "%Y-%m-%d", &tm) == 0 ||
        strcmp(date, again) != 0 || tm.tm_year + 1900 < 1)
        return "has no date YYYY-MM-DD behind denyAfter";
    *at += strlen(date);
    if (!item->has_date || from_s > item->from_s)
        item->from_s = from_s; /* all conditions must be met, so the latest date counts */
    item->has_date = true;
    return NULL;
}

static const char *read_condition(struct item *item, const char **at)
{
    const char *next;

    if ((next = behind(*at, "keySize")) != NULL) {
        *at = next;
        return read_key_size(item, at);
    }
    if ((next = behind(*at, "denyAfter")) != NULL) {
        *at = next;
        return read_date(item, at);
    }
    item->certificates_only = true;
    if ((next = behind(*at, "jdkCA")) != NULL) {
        *at = next;
        return NULL;
    }
    if ((next = behind(*at, "usage")) == NULL)
        return "has no keySize, denyAfter, usage or jdkCA where a condition begins";
    *at = skip_blanks(next);
    if (**at == '\0' || **at == '&')
        return "has no usage behind usage";
    *at += strcspn(*at, "&");
    return NULL;
}

const char *item_parse(struct item *item, const char *text)
{
    const char *at = text;

    *item = (struct item){.name = text, .name_len = strlen(text)};
    /* The first word is the name, even if it looks like a condition. */
    while ((at = strchr(at, ' ')) != NULL && !is_condition(at + 1))
        at++;
    if (at == NULL)
        return NULL;
    item->name_len = (size_t)(at - text);
    do {
        at = skip_blanks(at + 1);
        const char *wrong = read_condition(item, &at);
        if (wrong != NULL)
            return wrong;
        at = skip_blanks(at);
    } while (*at == '&');
    return *at != '\0' ? "has no & between its conditions" : NULL;
}

enum number_kind item_number(const char *text, size_t len, uint64_t *number)
{
    static const char vendor[] = "CKM_VENDOR_DEFINED+";
    char digits[32], *end;
    bool is_offset = same_text(text, vendor, sizeof vendor - 1);
    bool has_sign = !is_offset && (text[0] == '-' || text[0] == '+');
    size_t skip = is_offset ? sizeof vendor - 1 : has_sign;
    size_t digits_len = len - skip;

    snprintf(digits, sizeof digits, "%.*s", (int)digits_len, text + skip);
    bool is_hex = digits[0] == '0' && lower(digits[1]) == 'x';
    if (!is_hex && !is_offset &&
        (digits_len == 0 || strspn(text + skip, "0123456789") < digits_len))
        return NUMBER_NONE;

    errno = 0;
    *number = strtoull(digits, &end, is_hex ? 16 : 10);
    bool is_octal =
        !is_hex && digits[0] == '0' && digits[1] != '\0'; /* to some, decimal to others */
    if (has_sign || is_octal || digits_len >= sizeof digits || end == digits || *end != '\0' ||
        errno != 0 || *number == NO_MECHANISM)
        return NUMBER_WRONG;
    if (is_offset && *number < VENDOR_DEFINED)
        *number += VENDOR_DEFINED;
    else if (is_offset || (!is_hex && *number < VENDOR_DEFINED && mechanism_find(*number) == NULL))
        return NUMBER_WRONG;
    return NUMBER_RIGHT;
}
