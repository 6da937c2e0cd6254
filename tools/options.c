/* options.c - the options that commands share, and complaints about usage. */
#include "tool.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

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

int print_help(const char *text)
{
    fputs(text, stdout);
    return end_of_output(EXIT_FINE);
}

int print_version(void)
{
    puts("p11-proxy " VERSION);
    return end_of_output(EXIT_FINE);
}

int common_option(int option, const char *command, const char *help, struct common_options *common)
{
    switch (option) {
    case 'm':
        if (optarg[0] == '\0')
            return usage_error(command, "--module is no path: ''");
        common->module_path = optarg;
        return GO_ON;
    case 'j':
        common->json = true;
        return GO_ON;
    case 'h':
        return print_help(help);
    case 'v':
        return print_version();
    default: /* getopt_long() has said what is wrong */
        return usage_hint(command);
    }
}

int common_options(int argc, char **argv, const char *help, struct common_options *common)
{
    static const struct option options[] = {
        OPTION_MODULE,
        OPTION_JSON,
        OPTIONS_OF_ALL,
    };
    int option;
    *common = (struct common_options){.module_path = default_module()};
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        int code = common_option(option, argv[0], help, common);
        if (code != GO_ON)
            return code;
    }
    return GO_ON;
}

bool parse_number(const char *text, unsigned long least, unsigned long most, unsigned long *number,
                  const char **rest)
{
    char *end;
    errno = 0;
    *number = strtoul(text, &end, 10);
    *rest = end;
    return isdigit((unsigned char)text[0]) && errno == 0 && *number >= least && *number <= most;
}
