/* policy_parse.c - one item of a list: "Name keySize < 2048 & denyAfter 2030-01-01". */
#include "policy/policy_parse.h"

#include <string.h>

#include "policy/mechanisms.h"
#include "policy/policy_fold.h"

#define DAY_S          86400
#define VENDOR_DEFINED 0x80000000u

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " ");
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
}

/* Where the text goes on behind the word, or NULL if it does not begin with it. */
static const char *behind(const char *at, const char *word)
{
    size_t len = strlen(word);
    return fold_same(at, word, len) && !is_letter(at[len]) ? at + len : NULL;
}

static bool is_condition(const char *at)
{
    return behind(at, "keySize") || behind(at, "denyAfter") || behind(at, "usage") ||
           behind(at, "jdkCA");
}

/* The digits at *at, which it steps over; false if there are none or too many for a size. */
static bool read_size(const char **at, uint64_t *size)
{
    const char *from = *at;

    *size = 0;
    for (; is_digit(**at); ++*at) {
        if (*size > UINT32_MAX)
            return false;
        *size = *size * 10 + (uint64_t)(**at - '0');
    }
    return *at > from;
}

/* Leaves of the item's sizes those that are in one of the spans too. */
static bool narrow(struct item *item, const struct size_span *spans, size_t count)
{
    struct size_span left[SIZE_SPANS_MAX];
    size_t left_count = 0;

    for (size_t i = 0; i < item->denied_count; i++) {
        for (size_t j = 0; j < count; j++) {
            struct size_span both = item->denied[i];
            if (both.from < spans[j].from)
                both.from = spans[j].from;
            if (both.to > spans[j].to)
                both.to = spans[j].to;
            if (both.from > both.to)
                continue;
            if (left_count == SIZE_SPANS_MAX)
                return false;
            left[left_count++] = both;
        }
    }
    memcpy(item->denied, left, left_count * sizeof *left);
    item->denied_count = left_count;
    return true;
}

static bool deny_sizes(struct item *item, const char *operator, uint64_t size)
{
    struct size_span below = {0, size - 1}, above = {size + 1, LARGEST_SIZE};
    struct size_span spans[2];
    size_t count = 0;
    bool equal = operator[0] != '!' && strchr(operator, '=') != NULL;

    if (!item->has_sizes) {
        item->has_sizes = true;
        item->denied[0] = (struct size_span){0, LARGEST_SIZE};
        item->denied_count = 1;
    }
    if ((operator[0] == '<' || operator[0] == '!') && size > 0)
        spans[count++] = below;
    if (equal && operator[0] == '<' && count> 0)
        spans[0].to = size;
    else if (equal && operator[0] == '>')
        above.from = size;
    else if (equal)
        spans[count++] = (struct size_span){size, size};
    if (operator[0] == '>' || operator[0] == '!')
        spans[count++] = above;
    return narrow(item, spans, count);
}

static const char *read_key_size(struct item *item, const char **at)
{
    static const char *const operators[] = {"<=", "<", "==", "!=", ">=", ">"};
    const char *operator= NULL;
    uint64_t size;

    *at = skip_blanks(*at);
    for (size_t i = 0; i < sizeof operators / sizeof *operators && !operator; i++) {
        if (strncmp(*at, operators[i], strlen(operators[i])) == 0)
            operator= operators[i];
    }
    if (!operator)
        return "has no <=, <, ==, !=, >= or > behind keySize";
    *at = skip_blanks(*at + strlen(operator));
    if (!read_size(at, &size))
        return "has no number of bits behind keySize and its operator";
    return deny_sizes(item, operator, size) ? NULL : "has more conditions than we can hold";
}

static bool read_digits(const char **at, int count, int *number)
{
    *number = 0;
    for (int i = 0; i < count; i++, ++*at) {
        if (!is_digit(**at))
            return false;
        *number = *number * 10 + (**at - '0');
    }
    return true;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

/* Days from 1970-01-01 in the Gregorian calendar, counted in years that begin in March. */
static int64_t days_since_1970(int year, int month, int day)
{
    int64_t y = month > 2 ? year : year - 1;
    int64_t m = month > 2 ? month - 3 : month + 9;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static const char *read_date(struct item *item, const char **at)
{
    static const char right[] = "has no date YYYY-MM-DD behind denyAfter";
    int year, month, day;

    *at = skip_blanks(*at);
    if (!read_digits(at, 4, &year) || *(*at)++ != '-' || !read_digits(at, 2, &month) ||
        *(*at)++ != '-' || !read_digits(at, 2, &day))
        return right;
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return right;

    int64_t from_s = (days_since_1970(year, month, day) + 1) * DAY_S;
    if (!item->has_date || from_s > item->from_s)
        item->from_s = from_s; /* all conditions must be met: the latest counts */
    item->has_date = true;
    return NULL;
}

static const char *read_condition(struct item *item, const char **at)
{
    const char *next;

    if ((next = behind(*at, "keySize"))) {
        *at = next;
        return read_key_size(item, at);
    }
    if ((next = behind(*at, "denyAfter"))) {
        *at = next;
        return read_date(item, at);
    }
    if ((next = behind(*at, "jdkCA"))) {
        *at = next;
    } else if ((next = behind(*at, "usage"))) {
        *at = skip_blanks(next);
        if (**at == '\0' || **at == '&')
            return "has no usage behind usage";
        *at += strcspn(*at, "&");
    } else {
        return "has no keySize, denyAfter, usage or jdkCA where a condition begins";
    }
    item->certificates_only = true;
    return NULL;
}

/* AES_128 and so on: how the JDK names AES with a key of that size. */
static bool split_aes(struct item *item)
{
    static const uint64_t sizes[] = {128, 192, 256};
    const char *at = item->name + 4;
    uint64_t size;

    if (item->name_len != 7 || !fold_same(item->name, "AES_", 4) || !read_size(&at, &size))
        return true;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i] == size) {
            item->name_len = 3;
            return deny_sizes(item, "==", size);
        }
    }
    return true;
}

const char *item_parse(struct item *item, const char *text)
{
    const char *at = text;

    *item = (struct item){.name = text, .name_len = strlen(text)};
    /* The first word is the name, even if it looks like a condition. */
    while ((at = strchr(at, ' ')) && !is_condition(at + 1))
        at++;
    if (at) {
        item->name_len = (size_t)(at - text);
        do {
            at = skip_blanks(at + 1);
            const char *wrong = read_condition(item, &at);
            if (wrong)
                return wrong;
            at = skip_blanks(at);
        } while (*at == '&');
        if (*at)
            return "has no & between its conditions";
    }
    item->said_len = item->name_len;
    return split_aes(item) ? NULL : "has more conditions than we can hold";
}

static bool read_number(const char *at, const char *end, uint64_t *number, bool *hexadecimal)
{
    unsigned base = 10;

    *hexadecimal = end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x';
    if (*hexadecimal) {
        base = 16;
        at += 2;
    } else if (end - at > 1 && *at == '0') {
        return false; /* octal to some, decimal to others */
    }
    *number = 0;
    for (; at < end; at++) {
        unsigned digit = is_digit(*at) ? (unsigned)(*at - '0') : 99;
        if (base == 16 && (*at | 0x20) >= 'a' && (*at | 0x20) <= 'f')
            digit = (unsigned)((*at | 0x20) - 'a' + 10);
        if (digit >= base || __builtin_mul_overflow(*number, base, number) ||
            __builtin_add_overflow(*number, digit, number))
            return false;
    }
    return *number != NO_MECHANISM;
}

/* "3DES" does not; "-1" and "0xyz" do. */
static bool looks_like_number(const char *text, size_t len)
{
    if (len > 1 && (text[0] == '-' || text[0] == '+') && is_digit(text[1]))
        return true;
    if (len > 1 && text[0] == '0' && (text[1] | 0x20) == 'x')
        return true;
    return len > 0 && strspn(text, "0123456789") >= len;
}

enum number_kind item_number(const char *text, size_t len, uint64_t *number)
{
    static const char vendor[] = "CKM_VENDOR_DEFINED+";
    size_t skip = 0;
    bool hexadecimal;

    if (len >= sizeof vendor - 1 && fold_same(text, vendor, sizeof vendor - 1))
        skip = sizeof vendor - 1;
    else if (!looks_like_number(text, len))
        return NUMBER_NONE;

    if (skip == len || !read_number(text + skip, text + len, number, &hexadecimal))
        return NUMBER_WRONG;
    if (skip) {
        if (*number >= VENDOR_DEFINED)
            return NUMBER_WRONG;
        *number += VENDOR_DEFINED;
    } else if (!hexadecimal && *number < VENDOR_DEFINED && !mechanism_find(*number)) {
        return NUMBER_WRONG;
    }
    return NUMBER_RIGHT;
}
