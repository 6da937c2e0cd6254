/* output.c - how the tool writes: text for people, wrapped and harmless, and JSON. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

enum { LAST_CHARACTER = 0x10ffff }; /* libc knows more */

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

/* The columns that the first character takes on a terminal; less than 1 if a terminal cannot show it or would
 * act upon it, -2 if it is no UTF-8. */
static int char_columns(const char *text, size_t *bytes)
{
    mbstate_t state = {0};
    wchar_t wide;
    size_t len = mbrtowc(&wide, text, strnlen(text, MB_LEN_MAX), &state);
    bool valid = len != 0 && len < (size_t)-2 && wide <= LAST_CHARACTER;
    *bytes = valid ? len : 1;
    return valid ? wcwidth(wide) : -2;
}

void make_plain(char *text)
{
    for (size_t bytes; *text != '\0'; text += bytes) {
        if (char_columns(text, &bytes) < 1)
            memset(text, '?', bytes);
    }
}

void put_plain(FILE *out, const char *text)
{
    char *copy = strdup(text);
    if (copy == NULL)
        return;
    make_plain(copy);
    fputs(copy, out);
    free(copy);
}

/* Beyond an escape such as "\033[1m", or one character. *column is that of what follows. */
static const char *step(const char *at, unsigned *column)
{
    size_t bytes;
    int columns = *at != '\033' ? char_columns(at, &bytes) : 0;
    *column += columns > 0 ? (unsigned)columns : 0;
    return *at != '\033' ? at + bytes : at + strcspn(at, "m") + 1;
}

/* Where a line goes on: its last column of text if that begins in its first half, else under its start. */
static unsigned hanging_indent(const char *line, const char *end, unsigned columns)
{
    unsigned column = 0, indent = 0;
    for (const char *at = line; at < end; at = step(at, &column)) {
        bool begins = at > line + 1 && at[-1] == ' ' && at[-2] == ' ' && *at != ' ';
        if (begins && column <= columns / 2)
            indent = column;
    }
    return indent;
}

/* Writes what fits of the line. Returns where the rest begins, or NULL if that was all. */
static const char *put_part(FILE *out, const char *line, const char *end, unsigned columns,
                            unsigned indent)
{
    const char *at = line + strspn(line, " "), *stop = NULL;
    unsigned column = indent + (unsigned)(at - line);
    /* Stops at the last blank that leaves no word beyond the edge. A word that is too long for a line
     * by itself, such as a path, is for the terminal to break. */
    while (columns != 0 && at < end && (column <= columns || stop == NULL)) {
        if (*at == ' ' && at[-1] != ' ' && at > line)
            stop = at;
        at = step(at, &column);
    }
    if (columns == 0 || column <= columns)
        stop = NULL;
    fprintf(out, "%.*s\n", (int)((stop != NULL ? stop : end) - line), line);
    if (stop != NULL)
        stop += strspn(stop, " ");
    return stop < end ? stop : NULL;
}

void put_wrapped(FILE *out, const char *text, unsigned columns, unsigned rows)
{
    for (unsigned row = 0; *text != '\0' && row < rows;) {
        const char *end = strchrnul(text, '\n'), *part = text;
        unsigned indent = hanging_indent(text, end, columns), used = 0;
        for (; part != NULL && row < rows; row++, used = indent) {
            fprintf(out, "%*s", (int)used, "");
            part = put_part(out, part, end, columns, used);
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
    put_wrapped(stdout, text_bytes, terminal_columns(STDOUT_FILENO), UINT_MAX);
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

struct json_object *json_text(const char *text)
{
    struct json_object *string = NULL;
    char *valid = NULL;
    size_t valid_len = 0, bytes;
    FILE *out = text != NULL ? open_memstream(&valid, &valid_len) : NULL;
    for (; out != NULL && *text != '\0'; text += bytes) {
        bool is_utf8 = char_columns(text, &bytes) != -2;
        fprintf(out, "%.*s", is_utf8 ? (int)bytes : 3, is_utf8 ? text : "\xef\xbf\xbd");
    }
    if (out != NULL && fclose(out) == 0)
        string = json_object_new_string(valid);
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
