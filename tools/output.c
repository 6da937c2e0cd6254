/* output.c - how the tool writes: text for people, wrapped and harmless, and JSON. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int end_of_output(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    /* Where SIGPIPE is ignored, head(1) and its like show as an error that is none. */
    if (errno == EPIPE)
        return code;
    perror("p11-proxy: cannot write");
    return EXIT_BAD;
}

bool wants_colour(FILE *out)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return isatty(fileno(out)) && (no_color == NULL || no_color[0] == '\0') && term != NULL &&
           strcmp(term, "dumb") != 0;
}

unsigned terminal_columns(int descriptor)
{
    struct winsize size = {0};

    return isatty(descriptor) && ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* How many bytes the UTF-8 character at text has; 0 if it is none. */
static size_t utf8_bytes(const char *text)
{
    unsigned char first = (unsigned char)text[0];
    size_t bytes = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

    unsigned char second = bytes > 1 ? (unsigned char)text[1] : 0;

    if (first > 0xf4)
        return 0;
    for (size_t i = 1; i < bytes; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return 0;
    }
    /* Longer than need be, a half of a pair, or beyond the last character. */
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
        return 0;
    return bytes;
}

/* U+200E to U+200F, U+2028 to U+202E, U+2066 to U+2069: they reverse the text, or end the line. */
static bool turns_text(const char *text)
{
    unsigned char last = (unsigned char)text[2];

    if (strncmp(text, "\xe2\x80", 2) == 0)
        return last == 0x8e || last == 0x8f || (last >= 0xa8 && last <= 0xae);
    return strncmp(text, "\xe2\x81", 2) == 0 && last >= 0xa6 && last <= 0xa9;
}

/* How many bytes the first character has; 0 if a terminal would act upon it, or cannot show it. */
static size_t plain_bytes(const char *text)
{
    size_t bytes = utf8_bytes(text);
    /* U+0080 to U+009F are control characters too. */
    bool control =
        (unsigned char)*text < ' ' || *text == '\x7f' ||
        (bytes == 2 && (unsigned char)text[0] == 0xc2 && (unsigned char)text[1] < 0xa0) ||
        (bytes == 3 && turns_text(text));

    return control ? 0 : bytes;
}

void put_plain(FILE *out, const char *text)
{
    while (*text != '\0') {
        size_t bytes = plain_bytes(text);
        if (bytes == 0)
            putc('?', out);
        else
            fwrite(text, 1, bytes, out);
        text += bytes != 0 ? bytes : 1;
    }
}

void make_plain(char *text)
{
    while (*text != '\0') {
        size_t bytes = plain_bytes(text);
        if (bytes == 0)
            *text = '?';
        text += bytes != 0 ? bytes : 1;
    }
}

/* Beyond an escape such as "\033[1m", or one byte. *columns counts what is seen of it. */
static const char *step(const char *at, unsigned *columns)
{
    if (*at == '\033')
        return at + strcspn(at, "m") + 1;
    *columns += ((unsigned char)*at & 0xc0) != 0x80;
    return at + 1;
}

/* Where a line goes on: its last column if that begins in its first half, else a little indented. */
static unsigned hanging_indent(const char *line, const char *end, unsigned columns)
{
    unsigned at_column = 0, indent = 0;
    for (const char *at = line; at < end; at = step(at, &at_column)) {
        bool begins_column = at > line + 1 && at[-1] == ' ' && at[-2] == ' ' && *at != ' ';
        if (begins_column && at_column <= columns / 2)
            indent = at_column;
    }
    return indent;
}

/* Writes what fits of the line. Returns where the rest begins, or NULL if that was all. */
static const char *put_part(FILE *out, const char *line, const char *end, unsigned columns,
                            unsigned indent)
{
    const char *at = line + strspn(line, " "), *stop = NULL;
    unsigned at_column = indent + (unsigned)(at - line);

    /* Stops at the last blank that leaves no word beyond the edge. A word that is too long for a line
     * by itself, such as a path, is for the terminal to break. */
    while (columns != 0 && at < end && (at_column <= columns || stop == NULL)) {
        if (*at == ' ' && at[-1] != ' ' && at > line)
            stop = at;
        at = step(at, &at_column);
    }
    if (columns == 0 || at_column <= columns)
        stop = NULL;
    fwrite(line, 1, (size_t)((stop != NULL ? stop : end) - line), out);
    putc('\n', out);
    if (stop != NULL)
        stop += strspn(stop, " ");
    return stop < end ? stop : NULL;
}

void put_wrapped(FILE *out, const char *text, unsigned columns, unsigned rows)
{
    unsigned row = 0;
    while (*text != '\0' && (rows == 0 || row < rows)) {
        const char *end = strchrnul(text, '\n'), *part = text;
        unsigned indent = hanging_indent(text, end, columns), used = 0;
        for (; part != NULL && (rows == 0 || row < rows); row++) {
            fprintf(out, "%*s", (int)used, "");
            part = put_part(out, part, end, columns, used);
            used = indent;
        }
        text = *end == '\n' ? end + 1 : end;
    }
}

static char *text_bytes;
static size_t text_len;

FILE *text_open(void)
{
    FILE *text = open_memstream(&text_bytes, &text_len);
    return text != NULL ? text : stdout;
}

void text_close(FILE *text)
{
    if (text == stdout || fclose(text) != 0)
        return;
    put_wrapped(stdout, text_bytes, terminal_columns(STDOUT_FILENO), /* rows= */ 0);
    free(text_bytes);
}

bool can_be_written(const char *path, int flags)
{
    char folder[PATH_MAX];
    int fd = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);

    if (fd >= 0)
        close(fd);
    if (fd >= 0 || errno != ENOENT)
        return fd >= 0;
    snprintf(folder, sizeof folder, "%s", path);
    return faccessat(AT_FDCWD, dirname(folder), W_OK | X_OK, AT_EACCESS) == 0;
}

void put_json(FILE *out, const char *text)
{
    struct json_object *string = json_text(text);
    fputs(json_object_to_json_string_ext(string, JSON_C_TO_STRING_NOSLASHESCAPE), out);
    json_object_put(string);
}

struct json_object *json_text(const char *text)
{
    char *valid = NULL;
    size_t valid_len = 0;
    FILE *out = text != NULL ? open_memstream(&valid, &valid_len) : NULL;
    if (out == NULL)
        return NULL;
    while (*text != '\0') {
        size_t bytes = utf8_bytes(text);
        fwrite(bytes != 0 ? text : "\xef\xbf\xbd", 1, bytes != 0 ? bytes : 3, out);
        text += bytes != 0 ? bytes : 1;
    }
    fclose(out);
    struct json_object *string = valid != NULL ? json_object_new_string(valid) : NULL;
    free(valid);
    return string;
}

struct json_object *json_decimal(double value, int digits)
{
    char text[64];
    snprintf(text, sizeof text, "%.*f", digits, value);
    return json_object_new_double_s(value, text);
}

void json_write(FILE *out, struct json_object *document, enum json_layout layout)
{
    int flags = JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE |
                (layout == JSON_PRETTY ? JSON_C_TO_STRING_PRETTY : 0);
    fprintf(out, "%s\n", json_object_to_json_string_ext(document, flags));
    json_object_put(document);
}
