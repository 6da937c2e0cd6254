/* policy_list.c - the syntax of java.util.Properties, as its load() documents it. */
#include "policy/policy_list.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *at, *end;
    unsigned line;
    int rc;
    struct list_problem *problem;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

static bool is_line_end(char c)
{
    return c == '\n' || c == '\r';
}

static void skip_blanks(struct reader *in)
{
    while (in->at < in->end && is_blank(*in->at))
        in->at++;
}

/* "\n", "\r" and "\r\n" each end one line. */
static void skip_line_end(struct reader *in)
{
    if (in->at == in->end)
        return;
    if (*in->at == '\r' && in->at + 1 < in->end && in->at[1] == '\n')
        in->at++;
    in->at++;
    in->line++;
}

static void skip_line(struct reader *in)
{
    while (in->at < in->end && !is_line_end(*in->at))
        in->at++;
    skip_line_end(in);
}

static void fail(struct reader *in, int rc, const char *should)
{
    in->rc = rc;
    *in->problem = (struct list_problem){in->line, should, 0};
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return -1;
}

/*
 * The four digits behind \u, written as UTF-8 by at most three bytes. Halves of a pair stay halves.
 */
static char *put_unicode(struct reader *in, char *to)
{
    unsigned code = 0;

    for (int i = 0; i < 4; i++) {
        int digit = in->at < in->end ? hex_digit(*in->at) : -1;
        if (digit < 0) {
            fail(in, -EINVAL, "has no four hexadecimal digits behind \\u");
            return to;
        }
        code = code << 4 | (unsigned)digit;
        in->at++;
    }
    if (code == 0) {
        fail(in, -EINVAL, "has a character that no name can hold, \\u0000");
        return to;
    }
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

/*
 * One character of a key or value that is no line end; an escape is at least as long as what it
 * means.
 */
static char *put_char(struct reader *in, char *to)
{
    char c = *in->at++;

    if (c != '\\') {
        *to++ = c;
        return to;
    }
    c = *in->at++; /* there is one: the caller has looked */
    switch (c) {
    case 'u':
        return put_unicode(in, to);
    case 't':
        *to++ = '\t';
        break;
    case 'n':
        *to++ = '\n';
        break;
    case 'r':
        *to++ = '\r';
        break;
    case 'f':
        *to++ = '\f';
        break;
    default:
        *to++ = c;
        break;
    }
    return to;
}

/* Steps over a backslash at the line's end and the blanks that begin the next line. */
static bool skip_continuation(struct reader *in)
{
    if (*in->at != '\\' || in->at + 1 == in->end || !is_line_end(in->at[1]))
        return false;
    in->at++;
    skip_line_end(in);
    skip_blanks(in);
    if (in->at == in->end)
        fail(in, -EINVAL, "is not a whole file, its last line goes on");
    return true;
}

static bool at_end_of_text(struct reader *in)
{
    if (in->rc != 0 || in->at == in->end || is_line_end(*in->at))
        return true;
    if (*in->at == '\\' && in->at + 1 == in->end) {
        fail(in, -EINVAL, "is not a whole file, its last line goes on");
        return true;
    }
    return false;
}

static char *read_key(struct reader *in, char *to)
{
    while (!at_end_of_text(in)) {
        if (skip_continuation(in))
            continue;
        if (is_blank(*in->at) || *in->at == '=' || *in->at == ':')
            break;
        to = put_char(in, to);
    }
    *to++ = '\0';
    return to;
}

/* Blanks, at most one '=' or ':', blanks; lines may go on in between. */
static void skip_separator(struct reader *in)
{
    bool seen = false;

    while (!at_end_of_text(in)) {
        if (skip_continuation(in))
            continue;
        if (!is_blank(*in->at)) {
            if (seen || (*in->at != '=' && *in->at != ':'))
                break;
            seen = true;
        }
        in->at++;
    }
}

static bool note_line(struct property *property, size_t *room, size_t offset, unsigned line)
{
    if (property->lines_count == *room) {
        size_t more = *room ? 2 * *room : 8;
        struct line_start *lines = reallocarray(property->lines, more, sizeof *lines);
        if (!lines)
            return false;
        property->lines = lines;
        *room = more;
    }
    property->lines[property->lines_count++] = (struct line_start){offset, line};
    return true;
}

static char *read_value(struct reader *in, struct property *property, char *to)
{
    size_t room = 0;
    unsigned line = in->line; /* the separator may have ended in a later line than the key */

    property->value = to;
    if (line != property->line && !note_line(property, &room, 0, line))
        fail(in, -ENOMEM, "does not fit into memory");
    while (!at_end_of_text(in)) {
        if (skip_continuation(in)) {
            if (!note_line(property, &room, (size_t)(to - property->value), in->line))
                fail(in, -ENOMEM, "does not fit into memory");
            continue;
        }
        to = put_char(in, to);
    }
    *to++ = '\0';
    return to;
}

static struct property *add_property(struct properties *properties)
{
    if (properties->count == properties->room) {
        size_t room = properties->room ? 2 * properties->room : 16;
        struct property *more = reallocarray(properties->property, room, sizeof *more);
        if (!more)
            return NULL;
        properties->property = more;
        properties->room = room;
    }
    struct property *property = &properties->property[properties->count++];
    memset(property, 0, sizeof *property);
    return property;
}

/* Key and value share one piece of memory, which the key's pointer owns. */
static void read_property(struct reader *in, struct properties *properties)
{
    struct property *property = add_property(properties);
    struct reader ahead = *in;

    if (!property) {
        fail(in, -ENOMEM, "does not fit into memory");
        return;
    }
    /* How long can it get? As long as its lines are, and two NULs. */
    struct list_problem ignored;
    ahead.problem = &ignored;
    while (!at_end_of_text(&ahead)) {
        if (!skip_continuation(&ahead))
            ahead.at += *ahead.at == '\\' ? 2 : 1;
    }
    property->line = in->line;
    property->key = malloc((size_t)(ahead.at - in->at) + 2);
    if (!property->key) {
        fail(in, -ENOMEM, "does not fit into memory");
        return;
    }
    char *value = read_key(in, property->key);
    skip_separator(in);
    read_value(in, property, value);
    skip_line_end(in);
}

static int by_key(const void *left, const void *right)
{
    const struct property *const *l = left, *const *r = right;
    int order = strcmp((*l)->key, (*r)->key);

    if (order != 0)
        return order;
    return *l < *r ? -1 : *l > *r; /* the order in the file */
}

static void mark_overridden(struct reader *in, struct properties *properties)
{
    struct property **sorted = calloc(properties->count + 1, sizeof *sorted);

    if (!sorted) {
        fail(in, -ENOMEM, "does not fit into memory");
        return;
    }
    for (size_t i = 0; i < properties->count; i++)
        sorted[i] = &properties->property[i];
    qsort(sorted, properties->count, sizeof *sorted, by_key);
    for (size_t i = 1; i < properties->count; i++)
        sorted[i - 1]->overridden = strcmp(sorted[i - 1]->key, sorted[i]->key) == 0;
    free(sorted);
}

int properties_parse(struct properties *properties, const char *text, size_t len,
                     struct list_problem *problem)
{
    struct reader in = {text, text + len, 1, 0, problem};

    *properties = (struct properties){0};
    while (in.rc == 0) {
        skip_blanks(&in);
        if (in.at == in.end)
            break;
        if (is_line_end(*in.at))
            skip_line_end(&in);
        else if (*in.at == '#' || *in.at == '!')
            skip_line(&in);
        else
            read_property(&in, properties);
    }
    if (in.rc == 0)
        mark_overridden(&in, properties);
    if (in.rc != 0)
        properties_free(properties);
    return in.rc;
}

void properties_free(struct properties *properties)
{
    for (size_t i = 0; i < properties->count; i++) {
        free(properties->property[i].key);
        free(properties->property[i].lines);
    }
    free(properties->property);
    *properties = (struct properties){0};
}

unsigned property_line(const struct property *property, size_t offset)
{
    size_t from = 0, to = property->lines_count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (property->lines[middle].offset <= offset)
            from = middle + 1;
        else
            to = middle;
    }
    return from == 0 ? property->line : property->lines[from - 1].line;
}
