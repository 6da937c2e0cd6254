/* secrets.c - looks through a text for bytes that must not be in it, in any form that a program might print. */
#include "secrets.h"

#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECRETS_MOST = 4 * 1024 * 1024 };

static uint64_t *secrets;
static size_t count;
static bool sorted;

static uint64_t as_number(const uint8_t bytes[SECRET_BYTES])
{
    uint64_t number;
    memcpy(&number, bytes, sizeof number);
    return number;
}

void secrets_add(const uint8_t *bytes, size_t len_bytes)
{
    if (secrets == NULL)
        secrets = malloc(SECRETS_MOST * sizeof *secrets);
    ck_assert_ptr_nonnull(secrets);
    for (size_t at = 0; at + SECRET_BYTES <= len_bytes; at++) {
        ck_assert_uint_lt(count, SECRETS_MOST);
        secrets[count++] = as_number(bytes + at);
    }
    sorted = false;
}

static int compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one;
    uint64_t b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

static bool is_secret(uint64_t number)
{
    return bsearch(&number, secrets, count, sizeof number, compare) != NULL;
}

/* Bytes in either order. */
static bool are_secret(const uint8_t bytes[SECRET_BYTES])
{
    return is_secret(as_number(bytes)) || is_secret(__builtin_bswap64(as_number(bytes)));
}

/* What programs put between two bytes: nothing, a blank, ", 0x", "\x", ... */
static const char *skip_separators(const char *text, const char *end)
{
    while (text < end && strchr(" ,;:-_.|[](){}\t\n\\", *text) != NULL)
        text++;
    if (end - text >= 2 && text[0] == '0' && tolower(text[1]) == 'x')
        return text + 2;
    return text < end && tolower(*text) == 'x' ? text + 1 : text;
}

static int digit(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

static bool has_hex_bytes(const char *text, const char *end)
{
    uint8_t bytes[SECRET_BYTES];
    for (int i = 0; i < SECRET_BYTES; i++) {
        if (i != 0)
            text = skip_separators(text, end);
        if (end - text < 2 || !isxdigit((unsigned char)text[0]) ||
            !isxdigit((unsigned char)text[1]))
            return false;
        bytes[i] = (uint8_t)(digit(text[0]) * 16 + digit(text[1]));
        text += 2;
    }
    return are_secret(bytes);
}

static bool has_decimal_bytes(const char *text, const char *end)
{
    uint8_t bytes[SECRET_BYTES];
    for (int i = 0; i < SECRET_BYTES; i++) {
        const char *start = i != 0 ? skip_separators(text, end) : text;
        unsigned number = 0;
        if (i != 0 && start == text)
            return false;
        for (text = start; text < end && text - start < 3 && isdigit((unsigned char)*text); text++)
            number = number * 10 + (unsigned)digit(*text);
        if (text == start || number > UINT8_MAX)
            return false;
        bytes[i] = (uint8_t)number;
    }
    return are_secret(bytes);
}

/* One with fewer digits than any other form needs; leading zeros are not printed. */
static bool has_number(const char *text, const char *end, unsigned base)
{
    const char *at = text;
    uint64_t number = 0;
    for (; at < end && at - text < 20 && isxdigit((unsigned char)*at) && digit(*at) < (int)base;
         at++)
        number = number * base + (unsigned)digit(*at);
    if (at - text < SECRET_BYTES)
        return false;
    return are_secret((const uint8_t *)&number) ||
           are_secret((const uint8_t *)&(uint64_t){-number});
}

const char *secrets_find(const char *text, size_t len_bytes)
{
    const char *end = text + len_bytes;
    if (!sorted)
        qsort(secrets, count, sizeof *secrets, compare);
    sorted = true;
    for (const char *at = text; at < end; at++) {
        bool starts = at == text || !isxdigit((unsigned char)at[-1]);
        if (end - at >= SECRET_BYTES && are_secret((const uint8_t *)at))
            return at;
        if (has_hex_bytes(at, end) || has_decimal_bytes(at, end))
            return at;
        if (starts && (has_number(at, end, 16) || has_number(at, end, 10)))
            return at;
    }
    return NULL;
}
