/* list.c - reads lists: files, keys, and items between commas. */
#include "policy/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define WHITE_SPACE " \t\f\r\n"

int report_error(struct report *report, const struct policy_rule *at, int rc, const char *should)
{
    char came[QUOTE_BYTES];

    message_set(report->message, "%s:%u: %s %s: %s", at->file, at->line,
                at->key ? at->key : INLINE_KEY, should, quote(came, at->text));
    return rc;
}

void report_warning(struct report *report, const struct policy_rule *at, const char *should)
{
    if (++report->warnings > POLICY_WARNINGS_MAX || report->warn == NULL)
        return;
    report_error(report, at, 0, should); /* an error that comes later overwrites it */
    report->warn(report->context, report->message->text);
}

int report_no_memory(struct report *report)
{
    message_set(report->message, "no memory for the list of disabled algorithms");
    return -ENOMEM;
}

/* Goes through a text, one logical line after the other. */
struct reader {
    const char *at, *end;
    unsigned line;
    bool properties;   /* lines go on, and characters are escaped, as java.util.Properties has it */
    bool escaped;      /* the last character was */
    const char *wrong; /* what would have been right */
};

static bool is_line_end(const struct reader *in)
{
    return in->at == in->end || *in->at == '\n' || *in->at == '\r';
}

static void skip_blanks(struct reader *in)
{
    while (in->at < in->end && strchr(" \t\f", *in->at) != NULL)
        in->at++;
}

/* "\n", "\r" and "\r\n" each end one line. */
static void skip_line_end(struct reader *in)
{
    if (in->at < in->end && *in->at == '\r' && in->at + 1 < in->end && in->at[1] == '\n')
        in->at++;
    if (in->at < in->end)
        in->at++;
    in->line++;
}

/* The character behind a backslash. No name holds one beyond ASCII, so those are all alike. */
static int read_escaped(struct reader *in)
{
    static const char from[] = "tnrf", to[] = "\t\n\r\f";
    char c = *in->at++;
    const char *special = strchr(from, c);
    char digits[5] = "";

    if (c != 'u')
        return special != NULL ? to[special - from] : (unsigned char)c;
    for (size_t i = 0; i < 4 && in->at < in->end; i++)
        digits[i] = *in->at++;
    if (strspn(digits, "0123456789abcdefABCDEF") != 4) {
        in->wrong = "has no four hexadecimal digits behind \\u";
        return -1;
    }
    unsigned long code = strtoul(digits, NULL, 16);
    return code > 0 && code < 0x80 ? (int)code : '?';
}

/* The next character of a logical line, -1 at its end. */
static int next_char(struct reader *in)
{
    in->escaped = false;
    while (in->properties && in->at < in->end && *in->at == '\\') {
        in->at++;
        if (!is_line_end(in)) {
            in->escaped = true;
            return read_escaped(in);
        }
        skip_line_end(in);
        skip_blanks(in);
        if (in->at >= in->end) {
            in->wrong = "is not whole: its last line goes on";
            return -1;
        }
    }
    if (in->at == in->end || (in->properties && is_line_end(in)))
        return -1;
    return (unsigned char)*in->at++;
}

/* Memory for all that is left of a logical line, and what terminates its texts. */
static char *line_memory(const struct reader *in)
{
    struct reader ahead = *in;
    size_t count = 4;

    while (next_char(&ahead) >= 0)
        count++;
    return malloc(count);
}

static bool add_item(struct list *list, const char *text, unsigned line)
{
    if (list->count == list->room) {
        size_t room = list->room != 0 ? 2 * list->room : 16;
        struct list_item *more = reallocarray(list->item, room, sizeof *more);
        if (more == NULL)
            return false;
        list->item = more;
        list->room = room;
    }
    list->item[list->count++] = (struct list_item){text, line};
    return true;
}

/* One pair of double quotes around the whole list is removed, as in the JDK. */
static void remove_quotes(struct list *list)
{
    if (list->count == 0)
        return;
    struct list_item *first = &list->item[0];
    char *last = list->memory + (list->item[list->count - 1].text - list->memory);
    size_t last_len = strlen(last);

    if (*first->text != '"' || last[last_len - 1] != '"' || (list->count == 1 && last_len == 1))
        return;
    last[--last_len] = '\0';
    if (last_len > 0 && last[last_len - 1] == ' ')
        last[last_len - 1] = '\0';
    first->text++;
    first->text += strspn(first->text, " ");
}

/* Cuts the rest of a logical line into items; to is where in the list's memory their texts go. */
static bool cut_items(struct list *list, struct reader *in, char *to)
{
    int c;

    do {
        char *text = to;
        unsigned line = in->line;
        bool blank = false;
        while ((c = next_char(in)) >= 0 && c != ',') {
            if (strchr(WHITE_SPACE, c) != NULL) {
                blank = true;
                continue;
            }
            if (to == text)
                line = in->line;
            else if (blank)
                *to++ = ' ';
            blank = false;
            *to++ = (char)c;
        }
        if (to == text)
            continue;
        *to++ = '\0';
        if (!add_item(list, text, line))
            return false;
    } while (c >= 0);
    remove_quotes(list);
    return true;
}

static const char *keep_path(struct lists *lists, const char *path)
{
    char *copy = strdup(path);

    if (copy != NULL)
        lists->path[lists->path_count++] = copy;
    return copy;
}

int lists_add_inline(struct lists *lists, const struct policy_sources *sources,
                     struct report *report)
{
    const char *text = sources->list != NULL ? sources->list : "";
    struct reader in = {.at = text, .end = text + strlen(text)};
    struct list *list = &lists->list[lists->count++];

    *list = (struct list){.line = sources->list_line, .memory = line_memory(&in)};
    list->file = keep_path(lists, sources->list_from != NULL ? sources->list_from : "?");
    if (list->file == NULL || list->memory == NULL || !cut_items(list, &in, list->memory))
        return report_no_memory(report);
    for (size_t i = 0; i < list->count; i++)
        list->item[i].line = list->line;
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
    struct list *earlier = lists_find(lists, list->key);
    struct policy_rule at = {list->key, list->file, list->key, list->line};

    if (earlier == NULL && lists->count == LISTS_MAX)
        return report_error(report, &at, -EINVAL, "is one key more than can be held");
    if (earlier != NULL) {
        struct policy_rule before = {earlier->key, earlier->file, earlier->key, earlier->line};
        report_warning(report, &before, "comes again later, and only the last one holds");
        free(earlier->memory);
        free(earlier->item);
    }
    *(earlier != NULL ? earlier : &lists->list[lists->count++]) = *list;
    return 0;
}

/* The rest of a logical line is a path, from the file that it stands in if it is relative. */
static int include_file(struct lists *lists, struct policy_rule *at, struct reader *in, char *to,
                        struct report *report)
{
    const char *slash = strrchr(at->file, '/');
    char *path = to, *whole = NULL;
    int c;

    while ((c = next_char(in)) >= 0)
        *to++ = (char)c;
    while (to > path && strchr(WHITE_SPACE, to[-1]) != NULL)
        to--;
    *to = '\0';
    int folder_len = *path != '/' && slash != NULL ? (int)(slash - at->file) + 1 : 0;
    if (in->wrong != NULL)
        return 0; /* told by the caller */
    if (asprintf(&whole, "%.*s%s", folder_len, at->file, path) < 0)
        return report_no_memory(report);
    at->text = whole;
    int rc = lists_add_file(lists, at, report);
    free(whole);
    at->text = at->key;
    return rc;
}

/* Key, separator, value. */
static int read_property(struct lists *lists, struct reader *in, const char *file,
                         struct report *report)
{
    struct list list = {.file = file, .line = in->line, .memory = line_memory(in)};
    char *to = list.memory;
    int c, rc = 0;

    if (list.memory == NULL)
        return report_no_memory(report);
    while ((c = next_char(in)) >= 0 && (in->escaped || strchr("=: \t\f", c) == NULL))
        *to++ = (char)c;
    *to++ = '\0';
    list.key = list.memory;

    /* Blanks, at most one '=' or ':', blanks. */
    bool seen = c == '=' || c == ':';
    struct reader before = *in;
    while ((c = next_char(in)) >= 0 && !in->escaped &&
           strchr(seen ? " \t\f" : "=: \t\f", c) != NULL) {
        seen = seen || c == '=' || c == ':';
        before = *in;
    }
    *in = before;

    struct policy_rule at = {list.key, file, list.key, list.line};
    bool kept = false;
    if (strcmp(list.key, "include") == 0) {
        rc = include_file(lists, &at, in, to, report);
    } else if (is_list_key(list.key)) {
        kept = cut_items(&list, in, to);
        rc = kept ? put_list(lists, &list, report) : report_no_memory(report);
        kept = kept && rc == 0;
    } else {
        if (ends_as_list_key(list.key))
            report_warning(report, &at, "is a key of which nothing is in force");
        while (next_char(in) >= 0)
            continue;
    }
    if (rc == 0 && in->wrong != NULL) {
        at.line = in->line;
        rc = report_error(report, &at, -EINVAL, in->wrong);
    }
    if (!kept) {
        free(list.memory);
        free(list.item);
    }
    return rc;
}

static int read_properties(struct lists *lists, const char *text, const char *file,
                           struct report *report)
{
    size_t len = strlen(text);
    size_t mark = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    struct reader in = {.at = text + mark, .end = text + len, .line = 1, .properties = true};
    int rc = 0;

    while (in.at < in.end && rc == 0) {
        skip_blanks(&in);
        if (in.at < in.end && (*in.at == '#' || *in.at == '!'))
            in.at += strcspn(in.at, "\r\n");
        else if (!is_line_end(&in))
            rc = read_property(lists, &in, file, report);
        skip_line_end(&in);
    }
    return rc;
}

/* Apart from its caller, which may be called within itself on a small stack. */
__attribute__((noinline)) static int read_text(char **text, const struct policy_rule *named,
                                               struct report *report)
{
    struct message why;
    int rc = file_read(text, named->text, /* secure= */ false, &why);

    if (rc != 0)
        message_set(report->message, "%s:%u: %s: %s", named->file, named->line, named->key,
                    why.text);
    return rc;
}

int lists_add_file(struct lists *lists, const struct policy_rule *named, struct report *report)
{
    char *text;

    if (lists->path_count >= FILES_MAX)
        return report_error(report, named, -EINVAL,
                            "is one file more than can be included (does one include itself?)");
    int rc = read_text(&text, named, report);
    if (rc != 0)
        return rc;
    const char *file = keep_path(lists, named->text);
    rc = file != NULL ? read_properties(lists, text, file, report) : report_no_memory(report);

    size_t len = strlen(text);
    struct policy_rule end = {file, file, FILE_KEY, 1};
    if (rc == 0 && len > 0 && strchr("\r\n", text[len - 1]) == NULL)
        report_warning(report, &end, "does not end with a line end, it may have been cut off");
    free(text);
    return rc;
}

void lists_free(struct lists *lists)
{
    for (size_t i = 0; i < lists->count; i++) {
        free(lists->list[i].memory);
        free(lists->list[i].item);
    }
    for (size_t i = 0; i < lists->path_count; i++)
        free(lists->path[i]);
}
