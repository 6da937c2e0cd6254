/* list.c - reads lists: files, keys, and items between commas. */
#include "policy/internal.h"

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

/* Goes through a text, one logical line after the other. What was read may be overwritten, so keys and items stay
 * in the text: they get no longer, and each ends where a separator stood. */
struct reader {
    char *at, *end;
    unsigned line;
    bool properties;   /* lines go on, and characters are escaped, as java.util.Properties has it */
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
    while (!in->ended && in->properties && in->at < in->end && *in->at == '\\') {
        in->at++;
        if (!is_line_end(in)) {
            in->escaped = true;
            return read_escaped(in);
        }
        skip_line_end(in);
        skip_blanks(in);
        if (in->at >= in->end) {
            in->wrong = "is not whole: its last line goes on";
            in->ended = true;
        }
    }
    if (!in->ended && in->at < in->end && !(in->properties && is_line_end(in)))
        return (unsigned char)*in->at++;
    if (!in->ended)
        skip_line_end(in);
    in->ended = true;
    return -1;
}

static bool add_item(struct list *list, char *text, unsigned line)
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
    char *last = list->item[list->count - 1].text;
    size_t last_len = strlen(last);

    if (*first->text != '"' || last[last_len - 1] != '"' || (list->count == 1 && last_len == 1))
        return;
    last[--last_len] = '\0';
    if (last_len > 0 && last[last_len - 1] == ' ')
        last[last_len - 1] = '\0';
    first->text++;
    first->text += strspn(first->text, " ");
}

/* Cuts the rest of a logical line into items; to is where their texts go. */
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

/* A text that lasts as long as the lists; takes NULL for no memory. */
static char *keep(struct lists *lists, char *text)
{
    return lists->kept[lists->kept_count++] = text;
}

int lists_add_inline(struct lists *lists, const struct policy_sources *sources,
                     struct report *report)
{
    char *text = keep(lists, strdup(sources->list != NULL ? sources->list : ""));
    char *from = keep(lists, strdup(sources->list_from != NULL ? sources->list_from : "?"));
    struct list *list = &lists->list[lists->count++];

    if (text == NULL || from == NULL)
        return report_no_memory(report);
    struct reader in = {.at = text, .end = text + strlen(text), .line = sources->list_line};
    *list = (struct list){.file = from, .line = in.line};
    return cut_items(list, &in, text) ? 0 : report_no_memory(report);
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
    int folder_len = *path != '/' && slash != NULL ? (int)(slash - at->file) + 1 : 0;
    if (in->wrong != NULL)
        return 0; /* told by the caller */
    if (asprintf(&whole, "%.*s%.*s", folder_len, at->file, (int)(to - path), path) < 0)
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
    struct list list = {.file = file, .key = in->at, .line = in->line};
    char *to = in->at;
    int c, rc = 0;

    in->ended = false;
    while ((c = next_char(in)) >= 0 && (in->escaped || strchr("=: \t\f", c) == NULL))
        *to++ = (char)c;
    *to++ = '\0';

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
    if (!kept)
        free(list.item);
    return rc;
}

static int read_properties(struct lists *lists, char *text, const char *file, struct report *report)
{
    size_t len = strlen(text);
    size_t mark = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    struct reader in = {.at = text + mark, .end = text + len, .line = 1, .properties = true};
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

    if (lists->kept_count >= KEPT_MAX - 1)
        return report_error(report, named, -EINVAL,
                            "is one file more than can be included (does one include itself?)");
    int rc = read_text(&text, named, report);
    if (rc != 0)
        return rc;
    keep(lists, text);
    const char *file = keep(lists, strdup(named->text));
    if (file == NULL)
        return report_no_memory(report);
    size_t len = strlen(text);
    struct policy_rule end = {file, file, FILE_KEY, 1};
    if (len > 0 && strchr("\r\n", text[len - 1]) == NULL)
        report_warning(report, &end, "does not end with a line end, it may have been cut off");
    return read_properties(lists, text, file, report);
}

void lists_free(struct lists *lists)
{
    for (size_t i = 0; i < lists->count; i++)
        free(lists->list[i].item);
    for (size_t i = 0; i < lists->kept_count; i++)
        free(lists->kept[i]);
}
