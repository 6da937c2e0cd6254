/* list.c - reads lists, the inline one and those in files as java.util.Properties has them, and their items. */
#include "policy/internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"

#define BLANKS     " \t\f\r"
#define DAY_S      86400
#define DATE_BYTES (sizeof "YYYY-MM-DD")

int report_error(struct compiler *c, const struct policy_rule *at, const char *should, ...)
{
    char came[QUOTE_BYTES];
    va_list args;

    va_start(args, should);
    vsnprintf(c->part.text, sizeof c->part.text, should, args);
    va_end(args);
    message_set(c->message, "%s:%u: %s %s: %s", at->file, at->line, at->key ? at->key : INLINE_KEY,
                c->part.text, quote(came, at->text));
    return -EINVAL;
}

void report_warning(struct compiler *c, const struct policy_rule *at, const char *should)
{
    if (c->sources->warn == NULL || c->warning_count > POLICY_WARNINGS_MAX)
        return;
    if (c->warning_count++ == POLICY_WARNINGS_MAX)
        should = "is one of more warnings than are shown";
    report_error(c, at, "%s", should); /* an error that comes later overwrites it */
    c->sources->warn(c->message->text);
}

int report_no_memory(struct compiler *c)
{
    message_set(c->message, "no memory for the list of disabled algorithms");
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

const char *list_next(struct policy_rule *list, unsigned *line)
{
    char *item = (char *)list->text, *from = item, *to = item; /* ours, see policy->text */
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
    list->text = from + (*from == ',');
    *to = '\0';
    return item;
}

/* Keeps the text of a file, which it takes over, and a copy of the path. */
static int keep_file(struct compiler *c, char *text, const char *path)
{
    size_t place = c->policy->file_count++;

    c->policy->text[place] = text;
    c->policy->path[place] = strdup(path);
    return text != NULL && c->policy->path[place] != NULL ? 0 : report_no_memory(c);
}

int lists_add_inline(struct compiler *c)
{
    struct policy *policy = c->policy;
    const struct policy_rule *list = &c->sources->list;
    int rc = keep_file(c, strdup(list->text), list->file);

    if (rc != 0)
        return rc;
    remove_quotes(policy->text[0]);
    policy->list[policy->list_count++] =
        (struct policy_rule){policy->text[0], policy->path[0], NULL, list->line, NULL};
    return 0;
}

struct policy_rule *lists_find(struct policy *policy, const char *key)
{
    for (size_t i = 0; i < policy->list_count; i++)
        if (policy->list[i].key != NULL && strcmp(policy->list[i].key, key) == 0)
            return &policy->list[i];
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

/* The path is relative to the file that it stands in. */
static int include_file(struct compiler *c, const struct policy_rule *named)
{
    const char *slash = strrchr(named->file, '/');
    const char *path = named->text + strspn(named->text, BLANKS "\n");
    int folder_len = *path != '/' && slash != NULL ? (int)(slash - named->file) + 1 : 0;
    size_t len = strlen(path);
    struct policy_rule at = *named;
    char *whole;

    while (len > 0 && strchr(BLANKS, path[len - 1]) != NULL)
        len--;
    if (asprintf(&whole, "%.*s%.*s", folder_len, named->file, (int)len, path) < 0)
        return report_no_memory(c);
    at.text = whole;
    int rc = lists_add_file(c, &at);
    free(whole);
    return rc;
}

/* Goes through the text of a file. Keys and values stay in it: they get no longer when escapes are read. */
struct reader {
    char *at;
    unsigned line;
    const char *wrong; /* what the text should not be; NULL: nothing is wrong */
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

enum { LINE_END = -1, ESCAPED = 0x100 };

/*
 * Takes a character of a logical line: '\n' where it goes on in the next line, with ESCAPED if it has no other meaning
 * than itself, LINE_END behind the last. No name holds a character beyond ASCII, so those are all alike.
 */
static int next_character(struct reader *in)
{
    char digits[] = "0000";

    if (is_line_end(*in->at)) {
        skip_line_end(in);
        return LINE_END;
    }
    if (*in->at != '\\')
        return (unsigned char)*in->at++;
    in->at++;
    if (is_line_end(*in->at)) {
        skip_line_end(in);
        in->at += strspn(in->at, " \t\f");
        if (*in->at == '\0')
            in->wrong = "is not whole: its last line goes on";
        return '\n';
    }
    char escaped = *in->at++;
    if (escaped != 'u')
        return ESCAPED | (strchr("tnrf", escaped) != NULL ? ' ' : (unsigned char)escaped);
    strncpy(digits, in->at, sizeof digits - 1);
    if (strspn(digits, "0123456789abcdefABCDEF") < sizeof digits - 1) {
        in->wrong = "has no four hexadecimal digits behind \\u";
        return ESCAPED | '?';
    }
    in->at += sizeof digits - 1;
    long code = strtol(digits, NULL, 16);
    return ESCAPED | (code == 0 || code >= 0x80 ? '?' : code == '\n' ? ' ' : (int)code);
}

/* Key, separator, value. The separator is blanks, at most one '=' or ':', and blanks. */
static int read_property(struct compiler *c, struct reader *in, const char *file)
{
    struct policy_rule list = {NULL, file, in->at, in->line, NULL};
    char *to = in->at;
    int one = next_character(in);

    for (; one != LINE_END && (one >= ESCAPED || strchr("=: \t\f", one) == NULL);
         one = next_character(in))
        if (one != '\n')
            *to++ = (char)one;
    *to = '\0';
    to += one != LINE_END;
    list.text = to;
    for (bool may_be_sign = one != '=' && one != ':';
         one != LINE_END && (one = next_character(in)) != LINE_END;) {
        bool is_sign = may_be_sign && (one == '=' || one == ':');
        may_be_sign = may_be_sign && one < ESCAPED && strchr(" \t\f\n", one) != NULL;
        *to++ = is_sign ? ' ' : (char)one;
    }
    *to = '\0';
    if (in->wrong != NULL)
        return report_error(c, &list, "%s", in->wrong);
    if (strcmp(list.key, "include") == 0)
        return include_file(c, &list);
    if (!is_list_key(list.key)) {
        if (ends_as_list_key(list.key))
            report_warning(c, &list, "is a key of which nothing is in force");
        return 0;
    }
    /* It takes the place of an earlier one with its key. */
    struct policy_rule *place = lists_find(c->policy, list.key);
    if (place == NULL && c->policy->list_count == LISTS_MAX)
        return report_error(c, &list, "is one key more than can be held");
    remove_quotes((char *)list.text);
    *(place != NULL ? place : &c->policy->list[c->policy->list_count++]) = list;
    return 0;
}

int lists_add_file(struct compiler *c, const struct policy_rule *named)
{
    struct reader in = {NULL, 1, NULL};

    if (c->policy->file_count > FILES_MAX)
        return report_error(c, named,
                            "is one file more than can be included (does one include itself?)");
    int rc = file_read(&in.at, named->text, &c->part);
    if (rc != 0) {
        message_set(c->message, "%s:%u: %s: %s", named->file, named->line, named->key,
                    c->part.text);
        return rc;
    }
    rc = keep_file(c, in.at, named->text);
    const char *path = c->policy->path[c->policy->file_count - 1];
    in.at += strncmp(in.at, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (*in.at != '\0' && rc == 0) {
        in.at += strspn(in.at, " \t\f");
        if (!is_line_end(*in.at) && *in.at != '#' && *in.at != '!') {
            rc = read_property(c, &in, path);
        } else {
            in.at += strcspn(in.at, "\r\n");
            skip_line_end(&in);
        }
    }
    return rc;
}

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
