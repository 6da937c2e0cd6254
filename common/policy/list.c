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
    char *at;
    unsigned line;
};

static bool is_line_end(char c)
{
    return c == '\0' || c == '\n' || c == '\r';
}

/* "\n", "\r" and "\r\n" each end one line. */
static void skip_line_end(struct reader *in)
{
    if (in->at[0] == '\r' && in->at[1] == '\n')
        in->at++;
    if (*in->at != '\0')
        in->at++;
    in->line++;
}

/* Takes a logical line: where it goes on there is a '\n' in it. False if the text ends before it does. */
static bool take_line(struct reader *in)
{
    char *to = in->at;

    while (!is_line_end(*in->at)) {
        if (*in->at == '\\' && is_line_end(in->at[1])) {
            in->at++;
            skip_line_end(in);
            in->at += strspn(in->at, " \t\f");
            *to++ = '\n';
            if (*in->at != '\0')
                continue;
            *to = '\0';
            return false;
        }
        if (*in->at == '\\')
            *to++ = *in->at++;
        *to++ = *in->at++;
    }
    skip_line_end(in);
    *to = '\0';
    return true;
}

/* Reads escapes. No name holds a character beyond ASCII, so those are all alike. False if there is a malformed one. */
static bool decode(char *text, bool is_key)
{
    char *to = text;
    unsigned code;

    for (; *text != '\0'; text++) {
        char c = *text;
        if (c == '\n' && is_key)
            continue;
        if (c == '\\' && *++text == 'u') {
            if (strspn(text + 1, "0123456789abcdefABCDEF") < 4 ||
                sscanf(text + 1, "%4x", &code) != 1)
                return false;
            text += 4;
            c = code == 0 || code >= 0x80 ? '?' : code == '\n' ? ' ' : (char)code;
        } else if (c == '\\') {
            c = strchr("tnrf", *text) != NULL ? ' ' : *text;
        }
        *to++ = c;
    }
    *to = '\0';
    return true;
}

/* Key, separator, value. */
static int read_property(struct lists *lists, struct reader *in, const char *file,
                         struct report *report)
{
    char *key = in->at, *value = key;
    struct list list = {file, key, in->line, NULL};
    struct policy_rule at = {key, file, key, in->line, NULL};
    bool is_whole = take_line(in);

    for (; *value != '\0' && strchr("=: \t\f", *value) == NULL; value++)
        value += *value == '\\';
    if (*value != '\0') { /* blanks, at most one '=' or ':', blanks */
        char *separator = value + strspn(value, " \t\f\n");
        if (*separator == '=' || *separator == ':')
            *separator = ' ';
        *value++ = '\0';
    }
    list.value = value;
    bool is_read = decode(key, true) && decode(value, false);
    if (!is_whole || !is_read)
        return report_error(report, &at,
                            is_whole ? "has no four hexadecimal digits behind \\u"
                                     : "is not whole: its last line goes on");
    if (strcmp(key, "include") == 0)
        return include_file(lists, &list, report);
    if (is_list_key(key))
        return put_list(lists, &list, report);
    if (ends_as_list_key(key))
        report_warning(report, &at, "is a key of which nothing is in force");
    return 0;
}

static int read_properties(struct lists *lists, char *text, const char *file, struct report *report)
{
    size_t mark = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    struct reader in = {text + mark, 1};
    int rc = 0;

    while (*in.at != '\0' && rc == 0) {
        in.at += strspn(in.at, " \t\f");
        if (!is_line_end(*in.at) && *in.at != '#' && *in.at != '!') {
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
