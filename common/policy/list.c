/* list.c - reads lists: the inline one, and those in files as java.util.Properties has them. */
#include "policy/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define BLANKS " \t\f\r"

int report_error(struct report *report, const struct policy_rule *at, const char *should)
{
    char came[QUOTE_BYTES];

    message_set(report->message, "%s:%u: %s %s: %s", at->file, at->line,
                at->key ? at->key : INLINE_KEY, should, quote(came, at->text));
    return -EINVAL;
}

void report_warning(struct report *report, const struct policy_rule *at, const char *should)
{
    if (report->warn == NULL || report->warnings > POLICY_WARNINGS_MAX)
        return;
    if (report->warnings++ == POLICY_WARNINGS_MAX)
        should = "is one of more warnings than are shown";
    report_error(report, at, should); /* an error that comes later overwrites it */
    report->warn(report->context, report->message->text);
}

int report_no_memory(struct report *report)
{
    message_set(report->message, "no memory for the list of disabled algorithms");
    return -ENOMEM;
}

/* One pair of double quotes around the whole list is removed, as in the JDK. */
static void remove_quotes(char *value)
{
    char *first = value + strspn(value, BLANKS "\n"), *end = value + strlen(value);

    while (end > first && strchr(BLANKS, end[-1]) != NULL)
        end--;
    if (end - first < 2 || *first != '"' || end[-1] != '"')
        return;
    *first = ' ';
    end[-1] = ' ';
}

const char *list_next(struct list *list, unsigned *line)
{
    char *item = list->value, *from = item, *to = item;
    bool blank = false;

    if (*item == '\0')
        return NULL;
    *line = list->line;
    for (; *from != '\0' && *from != ','; from++) {
        if (*from == '\n') {
            list->line++;
        } else if (strchr(BLANKS, *from) != NULL) {
            blank = true;
        } else {
            if (to == item)
                *line = list->line;
            else if (blank)
                *to++ = ' ';
            *to++ = *from;
            blank = false;
        }
    }
    list->value = from + (*from == ',');
    *to = '\0';
    return item;
}

int lists_add_inline(struct lists *lists, const struct policy_sources *sources,
                     struct report *report)
{
    char *text = lists->text[0] = strdup(sources->list != NULL ? sources->list : "");
    char *from = lists->path[0] = strdup(sources->list_from != NULL ? sources->list_from : "?");

    lists->files = 1;
    if (text == NULL || from == NULL)
        return report_no_memory(report);
    remove_quotes(text);
    lists->list[lists->count++] = (struct list){from, NULL, sources->list_line, text};
    return 0;
}

struct list *lists_find(struct lists *lists, const char *key)
{
    for (size_t i = 0; i < lists->count; i++)
        if (lists->list[i].key != NULL && strcmp(lists->list[i].key, key) == 0)
            return &lists->list[i];
    return NULL;
}

static bool ends_as_list_key(const char *key)
{
    static const char suffix[] = "disabledAlgorithms";
    size_t len = strlen(key);
    return len >= sizeof suffix - 1 && strcmp(key + len - (sizeof suffix - 1), suffix) == 0;
}

static bool is_list_key(const char *key)
{
    static const char *const prefixes[] = {"jdk.tls.", "jdk.certpath.", "jdk.jar.", "jdk.security.",
                                           "jdk.crypto."};

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(key, prefixes[i], strlen(prefixes[i])) == 0)
            return ends_as_list_key(key);
    return strcmp(key, CURVES_KEY) == 0;
}

/* The list takes the place of an earlier one with its key. */
static int put_list(struct lists *lists, const struct list *list, struct report *report)
{
    struct policy_rule at = {list->key, list->file, list->key, list->line, NULL};
    struct list *place = lists_find(lists, list->key);

    if (place == NULL && lists->count == LISTS_MAX)
        return report_error(report, &at, "is one key more than can be held");
    remove_quotes(list->value);
    *(place != NULL ? place : &lists->list[lists->count++]) = *list;
    return 0;
}

/* The path is relative to the file that it stands in. */
static int include_file(struct lists *lists, const struct list *named, struct report *report)
{
    const char *slash = strrchr(named->file, '/');
    const char *path = named->value + strspn(named->value, BLANKS "\n");
    int folder_len = *path != '/' && slash != NULL ? (int)(slash - named->file) + 1 : 0;
    size_t len = strlen(path);
    char *whole;

    while (len > 0 && strchr(BLANKS, path[len - 1]) != NULL)
        len--;
    if (asprintf(&whole, "%.*s%.*s", folder_len, named->file, (int)len, path) < 0)
        return report_no_memory(report);
    struct policy_rule at = {whole, named->file, named->key, named->line, NULL};
    int rc = lists_add_file(lists, &at, report);
    free(whole);
    return rc;
}

/* Goes through the text of a file. Keys and values stay in it: they get no longer when escapes are read. */
struct reader {
    char *at, *end;
    unsigned line;
    bool escaped;      /* the last character was */
    bool ended;        /* the logical line, whose line end was read too */
    const char *wrong; /* what would have been right */
};

static bool is_line_end(const struct reader *in)
{
    return in->at == in->end || *in->at == '\n' || *in->at == '\r';
}

static void skip_blanks(struct reader *in)
{
    in->at += strspn(in->at, " \t\f");
}

/* "\n", "\r" and "\r\n" each end one line. */
static void skip_line_end(struct reader *in)
{
    if (in->at[0] == '\r' && in->at[1] == '\n')
        in->at++;
    if (in->at < in->end)
        in->at++;
    in->line++;
}

/* The character behind a backslash. No name holds one beyond ASCII, so those are all alike. */
static int read_escaped(struct reader *in)
{
    char c = *in->at++, digits[5] = "";

    if (c != 'u')
        return strchr("tnrf", c) != NULL ? ' ' : (unsigned char)c;
    for (size_t i = 0; i < 4 && in->at < in->end; i++)
        digits[i] = *in->at++;
    if (strspn(digits, "0123456789abcdefABCDEF") != 4) {
        in->wrong = "has no four hexadecimal digits behind \\u";
        return -1;
    }
    unsigned long code = strtoul(digits, NULL, 16);
    return code == 0 || code >= 0x80 ? '?' : code == '\n' ? ' ' : (int)code;
}

/* The next character of a logical line; a line end where the line goes on; -1 at its end. */
static int next_char(struct reader *in)
{
    in->escaped = false;
    if (!in->ended && is_line_end(in)) {
        skip_line_end(in);
        in->ended = true;
    }
    if (in->ended)
        return -1;
    if (*in->at != '\\')
        return (unsigned char)*in->at++;
    in->at++;
    if (!is_line_end(in)) {
        in->escaped = true;
        return read_escaped(in);
    }
    skip_line_end(in);
    skip_blanks(in);
    if (in->at == in->end) {
        in->wrong = "is not whole: its last line goes on";
        in->ended = true;
    }
    return '\n';
}

/* Key, separator, value. */
static int read_property(struct lists *lists, struct reader *in, const char *file,
                         struct report *report)
{
    struct list list = {file, in->at, in->line, NULL};
    struct policy_rule at = {list.key, file, list.key, list.line, NULL};
    char *to = in->at;
    int c;

    in->ended = false;
    while ((c = next_char(in)) >= 0 && (in->escaped || strchr("=: \t\f", c) == NULL))
        if (c != '\n')
            *to++ = (char)c;
    *to = '\0';
    list.value = c < 0 ? to : ++to;

    /* Blanks, at most one '=' or ':', blanks. */
    bool separated = c == '=' || c == ':', begun = false;
    while (c >= 0 && (c = next_char(in)) >= 0) {
        begun = begun || in->escaped || strchr(separated ? " \t\f\n" : "=: \t\f\n", c) == NULL;
        separated = separated || c == '=' || c == ':';
        if (begun || c == '\n')
            *to++ = (char)c;
    }
    *to = '\0';

    if (in->wrong != NULL) {
        at.line = in->line;
        return report_error(report, &at, in->wrong);
    }
    if (strcmp(list.key, "include") == 0)
        return include_file(lists, &list, report);
    if (is_list_key(list.key))
        return put_list(lists, &list, report);
    if (ends_as_list_key(list.key))
        report_warning(report, &at, "is a key of which nothing is in force");
    return 0;
}

static int read_properties(struct lists *lists, char *text, const char *file, struct report *report)
{
    size_t mark = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    struct reader in = {.at = text + mark, .end = text + strlen(text), .line = 1};
    int rc = 0;

    while (in.at < in.end && rc == 0) {
        skip_blanks(&in);
        if (!is_line_end(&in) && *in.at != '#' && *in.at != '!') {
            rc = read_property(lists, &in, file, report);
        } else {
            in.at += strcspn(in.at, "\r\n");
            skip_line_end(&in);
        }
    }
    return rc;
}

int lists_add_file(struct lists *lists, const struct policy_rule *named, struct report *report)
{
    if (lists->files > FILES_MAX)
        return report_error(report, named,
                            "is one file more than can be included (does one include itself?)");
    char **text = &lists->text[lists->files], **path = &lists->path[lists->files];
    int rc = file_read(text, named->text, &report->why);
    if (rc != 0) {
        message_set(report->message, "%s:%u: %s: %s", named->file, named->line, named->key,
                    report->why.text);
        return rc;
    }
    lists->files++;
    *path = strdup(named->text);
    if (*path == NULL)
        return report_no_memory(report);
    return read_properties(lists, *text, *path, report);
}

void lists_free(struct lists *lists)
{
    for (size_t i = 0; i < lists->files; i++) {
        free(lists->text[i]);
        free(lists->path[i]);
    }
}
