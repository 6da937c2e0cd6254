/* config_lines.c - takes a text in the format of pkcs11.conf(5) apart. */
#include "config/config_lines.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* Not isspace(): the application's locale must not change what a file means. '\r' is for CRLF. */
static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static char *trim(char *text)
{
    size_t len;

    while (is_blank(*text))
        text++;
    for (len = strlen(text); len > 0 && is_blank(text[len - 1]); len--)
        ;
    text[len] = '\0';
    return text;
}

/* An editor's byte order mark must not turn the first key into an unknown, ignored name. */
static char *skip_byte_order_mark(char *text)
{
    static const char mark[] = "\xEF\xBB\xBF";

    return strncmp(text, mark, sizeof mark - 1) == 0 ? text + sizeof mark - 1 : text;
}

int config_lines_next(struct config_lines *lines, char **name, char **value,
                      struct message *message)
{
    char quoted[QUOTE_BYTES];

    if (lines->line == 0)
        lines->rest = skip_byte_order_mark(lines->rest);
    while (*lines->rest != '\0') {
        char *start = lines->rest;
        char *end = strchrnul(start, '\n');
        char *line, *colon;

        lines->rest = *end == '\0' ? end : end + 1;
        lines->line++;
        *end = '\0';
        line = trim(start);
        if (line[0] == '\0' || line[0] == '#')
            continue;

        colon = strchr(line, ':');
        if (colon == NULL || colon == line) {
            /* What it is cannot be known, so it may be a secret: show only how it starts. */
            line[strcspn(line, " \t=:")] = '\0';
            message_set(message, "a line that is not `name: value`, starting with %s",
                        quote(quoted, line));
            return -EINVAL;
        }
        *colon = '\0';
        *name = trim(line);
        *value = trim(colon + 1);
        return 1;
    }
    return 0;
}
