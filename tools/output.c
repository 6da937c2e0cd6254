/* output.c - how the tool writes: text for people, which is harmless, and JSON. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
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

bool is_screen(FILE *out)
{
    const char *term = getenv("TERM");
    return isatty(fileno(out)) && term != NULL && strcmp(term, "dumb") != 0;
}

bool wants_colour(FILE *out)
{
    const char *no_color = getenv("NO_COLOR");
    return is_screen(out) && (no_color == NULL || no_color[0] == '\0');
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
