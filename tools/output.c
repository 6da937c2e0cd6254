/* output.c - how the tool writes: text for people, which is harmless, and JSON. */
#include "tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

enum { LAST_CHARACTER = 0x10ffff }; /* libc knows more */

int end_of_output(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    /* If SIGPIPE is ignored, a reader that stops early, such as head(1), gives this error. It is none. */
    if (errno == EPIPE)
        return code;
    perror("p11-proxy: cannot write");
    return EXIT_BAD;
}

void make_plain(char *text)
{
    size_t len;
    for (char *at = text; *at != '\0'; at += len) {
        mbstate_t state = {0};
        wchar_t wide;
        len = mbrtowc(&wide, at, strnlen(at, MB_LEN_MAX), &state);
        bool is_valid = len < (size_t)-2 && wide <= LAST_CHARACTER;
        len = is_valid ? len : 1;
        if (!is_valid || wcwidth(wide) < 1)
            memset(at, '?', len);
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

int say(const char *format, ...)
{
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    int len = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (len >= 0)
        make_plain(text);
    fprintf(stderr, "%s: %s\n", request.command, len >= 0 ? text : "out of memory");
    if (len >= 0)
        free(text);
    return EXIT_BAD;
}

struct json_object *json_text(const char *text)
{
    struct json_object *string = NULL;
    char *copy = text != NULL ? strdup(text) : NULL;
    if (copy != NULL) {
        make_plain(copy);
        string = json_object_new_string(copy);
    }
    free(copy);
    return string;
}

struct json_object *json_decimal(double value, int digits)
{
    char text[64];
    snprintf(text, sizeof text, "%.*f", digits, value);
    return json_object_new_double_s(value, text);
}

void json_write(struct json_object *document)
{
    int flags = JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE;
    puts(json_object_to_json_string_ext(document, flags));
    json_object_put(document);
}
