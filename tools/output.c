/* output.c - how the tool writes: plain or coloured text, JSON, and complaints about usage. */
#include "tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int usage_hint(const char *command)
{
    fprintf(stderr, "Try '%s --help'.\n", command);
    return EXIT_USAGE;
}

int usage_error(const char *command, const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "%s: ", command);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    putc('\n', stderr);
    return usage_hint(command);
}

int print_version(void)
{
    puts("p11-proxy " VERSION);
    return end_of_output(EXIT_FINE);
}

int end_of_output(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    /* Who reads no further, as head(1) does, wants none; that is where SIGPIPE is ignored. */
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

/* U+200E to U+200F, U+2028 to U+202E, U+2066 to U+2069: they turn the writing round, or end the line. */
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

void put_json(FILE *out, const char *text)
{
    if (text == NULL) {
        fputs("null", out);
        return;
    }
    putc('"', out);
    while (*text != '\0') {
        size_t bytes = utf8_bytes(text);
        if (bytes == 0)
            fputs("\\ufffd", out);
        else if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < ' ' || *text == '\x7f')
            fprintf(out, "\\u%04x", (unsigned)*text);
        else
            fwrite(text, 1, bytes, out);
        text += bytes != 0 ? bytes : 1;
    }
    putc('"', out);
}
